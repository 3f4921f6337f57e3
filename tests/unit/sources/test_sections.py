import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.rule_cases import cases
from overread.sources.shared.sections import find_sections


@pytest.mark.parametrize("case", cases("sections"))
def test_a_report_gives_the_sections_that_a_person_finds(case):
    found = find_sections(case["report"])
    assert (found.findings, found.impression, found.problem or "") == (
        case["findings"],
        case["impression"],
        case["problem"],
    )


OTHERS = ["HISTORY", "Clinical History", "INDICATION", "TECHNIQUE", "Comparison", "EXAM", "RECOMMENDATIONS", "ADDENDUM",
          "PROCEDURE", "REASON FOR EXAM", "CONTRAST", "QUALITY MEASURES", "DICTATED BY"]  # fmt: skip


@given(
    st.lists(
        st.tuples(st.sampled_from([*OTHERS, "FINDINGS", "Findings", "impression", "IMPRESSION"]), st.integers(0, 99)),
        max_size=8,
    )
)
def test_no_other_section_gets_through_whatever_the_order(parts):
    text = "\n".join(f"{name}:\nSentence {number} of {name.split()[0].lower()} text." for name, number in parts)
    found = find_sections(text)
    for section in ("findings", "impression"):
        wanted = dict.fromkeys(
            f"Sentence {number} of {section} text." for name, number in parts if name.lower() == section
        )
        assert getattr(found, section).split("\n") == (list(wanted) or [""])
    assert (found.problem is None) == bool(found.report)


@given(st.text(max_size=200))
def test_any_text_gives_sections_that_stand_in_it_or_a_problem(text):
    found = find_sections(text)
    assert (found.problem is None) == bool(found.report)


def test_a_report_without_line_breaks_keeps_its_sections_apart():
    text = "TECHNIQUE: 3 T. FINDINGS: Mass of 3 cm. Edema. IMPRESSION: 1. Glioma. 2. No shift. RECOMMENDATION: Biopsy."
    assert find_sections(text).report == {"findings": "Mass of 3 cm. Edema.", "impression": "1. Glioma. 2. No shift."}
