import random

from hypothesis import given
from hypothesis import strategies as st

from overread.core.records import Picture, Study
from overread.trials.substitutes import choose_substitutes


def study(name: str, patient: str, **labels: str) -> Study:
    return Study(
        study=name, patient=patient, dataset="d", modality="xray", images={}, report={}, labels=labels, restricted=False
    )


def picture(name: str, pixels: str | None = None) -> Picture:
    return Picture(
        study=name,
        view="v",
        order=0,
        name="v",
        path=f"{name}.png",
        pixels=pixels or name,
        width=1,
        height=1,
        series="s",
    )


def chosen(studies, pictures=None, seed=0):
    pictures = pictures if pictures is not None else [picture(one.study) for one in studies]
    return {one.study: one for one in choose_substitutes(studies, pictures, seed)}


def test_the_same_patients_study_with_other_findings_comes_first():
    studies = [
        study("a1", "a", Edema="positive"),
        study("a2", "a", Edema="positive"),
        study("a3", "a", Edema="negative"),
        study("b1", "b", Pneumonia="positive"),
    ]
    one = chosen(studies)["a1"]
    assert (one.substitute, one.why, one.within_patient) == ("a3", "same patient, other findings", True)


def test_a_patient_with_one_study_gets_another_patients():
    studies = [study("a1", "a", Edema="positive"), study("b1", "b", Edema="positive"), study("c1", "c")]
    one = chosen(studies)["a1"]
    assert (one.substitute, one.why, one.within_patient) == ("c1", "another patient, other findings", False)


def test_the_same_findings_are_taken_where_there_are_no_others():
    studies = [study("a1", "a", Edema="positive"), study("a2", "a", Edema="positive")]
    assert chosen(studies)["a1"].why == "same patient, same findings"


def test_the_same_pixels_are_no_substitute():
    studies = [study("a1", "a"), study("a2", "a"), study("b1", "b")]
    pictures = [picture("a1", "same"), picture("a2", "same"), picture("b1")]
    assert chosen(studies, pictures)["a1"].substitute == "b1"


def test_a_study_without_a_picture_takes_no_part():
    studies = [study("a1", "a"), study("a2", "a"), study("b1", "b")]
    assert set(chosen(studies, [picture("a1"), picture("b1")])) == {"a1", "b1"}
    assert chosen(studies, [picture("a1"), picture("b1")])["a1"].substitute == "b1"


def test_a_lone_study_has_no_substitute():
    assert chosen([study("a1", "a")]) == {}


cohorts = st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.booleans()), min_size=2, max_size=25).map(
    lambda rows: [
        study(
            f"s{number}",
            f"p{patient}",
            Edema="positive" if edema else "negative",
            Fracture="positive" if broken else "",
        )
        for number, (patient, edema, broken) in enumerate(rows)
    ]
)


@given(cohorts, st.randoms())
def test_choices_are_the_same_in_any_order(studies: list[Study], draw: random.Random):
    mixed = list(studies)
    draw.shuffle(mixed)
    assert chosen(mixed) == chosen(studies)


@given(cohorts)
def test_never_itself_and_within_the_patient_when_possible(studies: list[Study]):
    patients = [one.patient for one in studies]
    for one in chosen(studies).values():
        assert one.substitute != one.study
        assert one.within_patient == (patients.count(one.patient) > 1)


@given(cohorts)
def test_an_added_study_changes_only_the_pairs_that_it_wins(studies: list[Study]):
    before, after = chosen(studies[:-1]), chosen(studies)
    for name, one in before.items():
        assert after[name] == one or after[name].substitute == studies[-1].study
