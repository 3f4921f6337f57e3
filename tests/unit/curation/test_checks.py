from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rapidfuzz import fuzz

from data.rule_cases import cases
from overread.core.text import normalise, sentences
from overread.curation.candidates import Wording
from overread.curation.checks import (
    answer_among_options,
    answer_of,
    dimension_named,
    evidence_in_report,
    four_distinct_options,
    lesion_located,
    no_forbidden_phrase,
    sizes_spaced,
)
from overread.curation.evidence import find, quotations
from overread.curation.measures import size_of
from overread.curation.rules import read_rules

RULES = read_rules()


def wording(stem="Where is the mass?", options="left|right|front|back", answer=None):
    texts = tuple(options.split("|"))
    return Wording(stem=stem, options=texts, answer=texts[0] if answer is None else answer)


@pytest.mark.parametrize("case", cases("spacing"))
def test_sizes_are_told_apart_as_a_person_would(case):
    verdict = sizes_spaced(wording(case["stem"], case["options"]), RULES)
    assert (verdict is None) == (case["verdict"] == "ok"), verdict


@pytest.mark.parametrize("case", cases("spacing"))
def test_the_order_of_the_options_does_not_change_their_spacing(case):
    turned = "|".join(reversed(case["options"].split("|")))
    verdict = sizes_spaced(wording(case["stem"], turned), RULES)
    assert (verdict is None) == (case["verdict"] == "ok"), verdict


@pytest.mark.parametrize("case", cases("dimensions"))
def test_a_size_needs_its_dimensions_named(case):
    verdict = dimension_named(wording(case["stem"], case["options"]), RULES)
    assert (verdict is None) == (case["verdict"] == "ok"), verdict


@pytest.mark.parametrize("case", cases("location"))
def test_a_lesion_needs_a_place_unless_the_place_is_asked_for(case):
    verdict = lesion_located(wording(case["stem"]), RULES)
    assert (verdict is None) == (case["verdict"] == "named"), verdict


@pytest.mark.parametrize("case", cases("forbidden"))
def test_forbidden_phrases_are_found_and_others_are_not(case):
    verdict = no_forbidden_phrase(wording(case["stem"], case["options"]), RULES)
    assert (verdict is None) == (case["verdict"] == "fine"), verdict


@pytest.mark.parametrize("case", cases("options"))
def test_options_are_four_and_distinct_and_hold_the_answer(case):
    asked = wording(options=case["options"], answer=case["answer"])
    failed = next(
        (
            name
            for name, check in (("options", four_distinct_options), ("answer", answer_among_options))
            if check(asked, RULES)
        ),
        "",
    )
    assert failed == case["check"]


@pytest.mark.parametrize("case", cases("evidence"))
def test_a_quotation_is_found_if_it_is_in_the_report(case):
    grounds = evidence_in_report((case["quotation"],), "", {"findings": case["report"]}, RULES)
    verdict = "found" if grounds.problem is None else grounds.problem.split(" ")[0]
    assert verdict == {"found": "found", "differs": "differs", "not found": "not"}[case["verdict"]], grounds


def test_evidence_leads_back_to_the_whole_sentence_and_its_section():
    report = {"findings": "Swelling. A 3.5 cm mass is seen in the left lobe. No shift.", "impression": "Glioma."}
    match = find("3.5 cm mass is seen", report)
    assert (match.section, match.sentence) == ("findings", "A 3.5 cm mass is seen in the left lobe.")


def test_every_quotation_counts_and_not_the_best_one():
    report = {"findings": "A mass is seen in the left lobe."}
    quoted = ("A mass is seen in the left lobe.", "It was biopsied last year in another hospital.")
    assert evidence_in_report(quoted, "", report, RULES).problem is not None
    assert evidence_in_report(quoted[:1], "", report, RULES).problem is None


def test_without_evidence_the_quotes_in_the_reasoning_are_taken():
    reasoning = 'It is on the left, since "A mass is seen in the left lobe." says so.'
    assert quotations((), reasoning) == ["A mass is seen in the left lobe."]
    assert (
        evidence_in_report((), "It is on the left.", {"findings": "Left mass."}, RULES).problem == "nothing is quoted"
    )


def test_a_number_ends_no_sentence():
    assert sentences("1. A 3.5 cm mass.\n2. No shift. Edema") == ["1. A 3.5 cm mass.", "2. No shift.", "Edema"]


def test_lengths_are_exact_millimetres():
    size = size_of("3.1 x 2.9 x 3.8 cm")
    assert [low for low, _ in size.axes] == [Decimal(31), Decimal(29), Decimal(38)]
    assert size_of("5 mm").axes == size_of("0.5 cm").axes
    assert size_of("1 to 2 cm").axes == ((Decimal(10), Decimal(20)),)
    assert size_of("3-4 mm x 1 cm").axes == ((Decimal(3), Decimal(4)), (Decimal(10), Decimal(10)))
    assert size_of("a 2 cm mass with 5 mm shift") is None
    assert size_of("T2 hyperintense") is None


@given(st.text(max_size=60))
def test_normal_form_is_its_own_normal_form(text):
    once = normalise(text)
    assert normalise(f"x {once}") == f"x {once}".strip()


@given(st.lists(st.text(max_size=20), min_size=4, max_size=4), st.integers(0, 3))
def test_the_answer_is_always_one_of_the_options_or_none(options, place):
    found = answer_of(Wording(stem="s", options=tuple(options), answer=options[place]))
    assert found is None or found in options


@given(
    st.lists(st.decimals("0.1", "99.9", places=1), min_size=1, max_size=3),
    st.sampled_from(["mm", "cm"]),
    st.sampled_from([" x ", "x", " × ", " by "]),
)
def test_a_written_size_is_read_as_it_was_meant(values, unit, between):
    scale = {"mm": 1, "cm": 10}[unit]
    for text in (f"{between.join(map(str, values))} {unit}", between.join(f"{value}{unit}" for value in values)):
        assert size_of(text).axes == tuple((value * scale, value * scale) for value in values), text


SENTENCES = st.builds(
    "{} {} {} in the {} {} {}.".format,
    st.sampled_from(["There is", "There is no", "A scan shows", "We see"]),
    st.sampled_from(["thick", "thin", "solid", "patchy"]),
    st.sampled_from(["enhancement", "edema", "haemorrhage", "necrosis"]),
    st.sampled_from(["left", "right"]),
    st.sampled_from(["frontal lobe", "temporal lobe", "thalamus"]),
    st.builds("over {}.{} cm".format, st.integers(1, 9), st.integers(1, 9)),
)


@given(st.lists(SENTENCES, min_size=1, max_size=8, unique=True), st.data())
def test_every_sentence_of_a_report_is_found_in_it(report, data):
    quoted = data.draw(st.sampled_from(report))
    grounds = evidence_in_report((quoted,), "", {"findings": " ".join(report)}, RULES)
    assert grounds.problem is None, grounds
    assert quoted in grounds.text


@given(st.lists(SENTENCES, min_size=1, max_size=8, unique=True), st.data())
def test_a_sentence_on_the_other_side_is_not_found(report, data):
    quoted = data.draw(st.sampled_from(report))
    swapped = quoted.replace("left", "?").replace("right", "left").replace("?", "right")
    # A sentence on that side that is all but the same would be found, and rightly.
    side = "left" if "left" in swapped else "right"
    assume(not any(side in one and fuzz.ratio(one, swapped) >= RULES.evidence.score for one in report))
    assert evidence_in_report((swapped,), "", {"findings": " ".join(report)}, RULES).problem is not None
