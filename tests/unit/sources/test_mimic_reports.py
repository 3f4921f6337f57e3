"""Findings and impression of MIMIC-CXR's reports."""

from __future__ import annotations

from overread.sources.mimic_cxr.reader import sections


def test_the_last_section_of_a_name_wins_over_an_addendum_and_a_preliminary_reading() -> None:
    text = (
        "                 FINAL ADDENDUM\n ADDENDUM:  The IMPRESSION was changed.\n \n IMPRESSION:  Effusion.\n \n"
        "                 FINAL REPORT\n EXAMINATION:  CHEST (PA AND LAT)\n \n INDICATION:  ___ year old man\n \n"
        " FINDINGS: \n \n No effusion.  Dr. ___ was\n called.\n \n IMPRESSION: \n \n Normal.\n"
    )
    assert sections(text) == {"findings": "No effusion. Dr. ___ was called.", "impression": "Normal."}


def test_an_empty_last_section_does_not_erase_an_earlier_one() -> None:
    assert sections(" FINDINGS:  Clear lungs.\n \n IMPRESSION:  Normal.\n IMPRESSION: \n")["impression"] == "Normal."


def test_other_sections_end_the_one_before_and_are_left_out() -> None:
    text = " FINDINGS:  Clear.\n RECOMMENDATION(S):  None.\n IMPRESSION:  Normal.\n NOTIFICATION:  Dr. ___ at 9:15.\n"
    assert sections(text) == {"findings": "Clear.", "impression": "Normal."}


def test_findings_under_the_name_of_the_views() -> None:
    text = (
        " HISTORY:  Cough.\n \n PA AND LATERAL VIEWS OF THE CHEST:  The heart is large and both lungs are clear.\n \n"
        " IMPRESSION:  Large heart.\n"
    )
    assert sections(text) == {
        "findings": "The heart is large and both lungs are clear.",
        "impression": "Large heart.",
    }


def test_without_sections_the_body_is_the_findings() -> None:
    assert sections(" " * 33 + "FINAL REPORT\n \n AP chest on ___: lungs\n clear.\n") == {
        "findings": "AP chest on ___: lungs clear."
    }
    assert sections(" \n") == {}


def test_only_impression_is_no_findings() -> None:
    assert sections(" IMPRESSION:  Normal.\r\n") == {"impression": "Normal."}


def test_a_colon_inside_a_sentence_is_no_header() -> None:
    assert sections(" FINDINGS:  Compared with ___: no change.\n NG tube: in the stomach.\n") == {
        "findings": "Compared with ___: no change. NG tube: in the stomach."
    }
