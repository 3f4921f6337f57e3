"""What substitutes can be asked to be like, over random cohorts."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overread.config import FindingQuestions, GrammarQuestions, Substitutes
from overread.core.records import Picture, Study, Substitute, read_substitutes, write_substitutes
from overread.questions import truth
from overread.questions.findings import COMPOSITE
from overread.trials.substitutes import choose_substitutes

ASKED = FindingQuestions(origin="findings", findings=("Edema", "Fracture"), composite=("Edema",))


def study(name: str, patient: str, view: str = "AP", **labels: str) -> Study:
    return Study(
        study=name, patient=patient, dataset="d", modality="xray", images={}, report={}, labels=labels,
        attributes={"ViewPosition": view} if view else {}, restricted=False,
    )  # fmt: skip


def choose(studies: list[Study], questions: Any = ASKED, seed: int = 0, **wanted: Any) -> list[Substitute]:
    pictures = [
        Picture(study=one.study, view="v", order=0, name="v", path="p", pixels=one.study, width=1, height=1, series="s")
        for one in studies
    ]
    return choose_substitutes(studies, pictures, seed, Substitutes(**wanted), questions)


labels = st.sampled_from(["positive", "negative", "uncertain", None])
cohorts = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(["AP", "PA", ""]), labels, labels), min_size=2, max_size=18
).map(
    lambda rows: [
        study(f"s{place}", f"p{patient}", view, **{
            name: value for name, value in (("Edema", edema), ("Fracture", broken)) if value is not None
        })
        for place, (patient, view, edema, broken) in enumerate(rows)
    ]
)  # fmt: skip


def positives(one: Study) -> set[str]:
    return {name for name, label in one.labels.items() if label == "positive"}


def fits(one: Study, other: Study, topic: str, wanted: dict[str, Any]) -> bool:
    """Whether `other` may stand for `one`: worked out again, from the options' descriptions."""
    if other.study == one.study:
        return False
    if "same_attributes" in wanted:
        views = {each.attributes.get("ViewPosition") for each in (one, other)}
        if len(views) != 1 or None in views:
            return False
    if "finding" in wanted:
        same = truth(ASKED, one, topic) == truth(ASKED, other, topic)
        if same != (wanted["finding"] == "kept"):
            return False
    if wanted.get("same_other_findings"):
        asked = {"Edema"} if topic == COMPOSITE else {topic}
        if positives(one) - asked != positives(other) - asked:
            return False
    patient = wanted.get("patient")
    return patient is None or (one.patient == other.patient) == (patient == "same")


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"count": 3},
        {"patient": "another"},
        {"patient": "same"},
        {"same_attributes": ("ViewPosition",)},
        {"finding": "changed"},
        {"finding": "kept", "same_attributes": ("ViewPosition",)},
        {"same_other_findings": True, "finding": "changed"},
        {"same_other_findings": True, "count": 2},
    ],
    ids=str,
)
@settings(deadline=None, max_examples=40)
@given(cohorts, st.randoms())
def test_substitutes_are_what_was_asked_for(wanted: dict[str, Any], studies: list[Study], draw: random.Random) -> None:
    """All that fit are candidates, the patient's own and those with other findings first, in any order of the input."""
    by_name = {one.study: one for one in studies}
    found = choose(studies, **wanted)
    mixed = list(studies)
    draw.shuffle(mixed)
    assert choose(mixed, **wanted) == found
    by_topic = "finding" in wanted or "same_other_findings" in wanted
    chosen: dict[tuple[str, str], list[Substitute]] = {}
    for one in found:
        chosen.setdefault((one.study, one.topic), []).append(one)
    for one in studies:
        for topic in ("Edema", "Fracture", COMPOSITE) if by_topic else ("",):
            able = [other for other in studies if fits(one, other, topic, wanted)]
            mine = chosen.get((one.study, topic), [])
            assert [each.number for each in mine] == list(range(1, min(wanted.get("count", 1), len(able)) + 1))
            assert len({each.substitute for each in mine}) == len(mine)
            ranks = {other.study: (other.patient != one.patient, positives(other) == positives(one)) for other in able}
            taken = [ranks[each.substitute] for each in mine]  # KeyError if it does not fit
            assert taken == sorted(ranks.values())[: len(taken)]
            for each in mine:
                same = by_name[each.substitute].patient == one.patient
                assert each.within_patient == same and each.why.startswith("same" if same else "another")


def test_an_mri_takes_the_place_of_another_side_and_lobe() -> None:
    studies = [
        study(name, name, side=side, lobe=lobe)
        for name, side, lobe in [("a", "left", "frontal"), ("b", "left", "temporal"), ("c", "right", "frontal"),
                                 ("d", "right", "parietal"), ("e", "right", "")]
    ]  # fmt: skip
    found = {one.study: one.substitute for one in choose(studies, None, other=("side", "lobe"))}
    assert found == {"a": "d", "b": found["b"], "c": "b", "d": found["d"]} and found["b"] in "cd" and found["d"] in "ab"


def test_an_mris_topics_have_substitutes_of_their_own() -> None:
    studies = [study("a", "a", side="left", size="3 cm"), study("b", "b", side="left", size="5 cm"),
               study("c", "c", side="right", size="3 cm")]  # fmt: skip
    asked = GrammarQuestions(origin="grammar")
    found = {(one.study, one.topic): one.substitute for one in choose(studies, asked, finding="changed")}
    assert found == {
        ("a", "side"): "c", ("b", "side"): "c", ("c", "side"): found["c", "side"],
        ("a", "size"): "b", ("b", "size"): found["b", "size"], ("c", "size"): "b",
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_use_is_balanced(seed: int) -> None:
    """300 equals: by chance alone a study stands for 1 other one on average, and hardly any for more than 6."""
    uses = Counter(one.substitute for one in choose([study(f"s{n}", f"p{n}") for n in range(300)], seed=seed))
    assert max(uses.values()) <= 8
    assert len(uses) > 0.55 * 300  # 1 - 1/e, but for chance


def test_another_seed_is_another_choice() -> None:
    studies = [study(f"s{n}", f"p{n}") for n in range(20)]
    assert choose(studies, seed=1) != choose(studies, seed=2)


def test_substitutes_of_topics_come_back_as_they_were_written(tmp_path: Any) -> None:
    studies = [study("a", "p", Edema="positive"), study("b", "p"), study("c", "q", Edema="positive")]
    found = choose(studies, finding="changed", count=2)
    write_substitutes(found, tmp_path / "s.csv")
    assert read_substitutes(tmp_path / "s.csv") == sorted(found, key=lambda one: (one.study, one.topic, one.number))


def test_topics_of_their_own_need_the_questions() -> None:
    with pytest.raises(ValueError, match="need the questions"):
        choose([study("a", "p")], None, finding="changed")
