"""A verdict in words: each kind, its number, its opponent, its doubts; and the sentence on a data set."""

from __future__ import annotations

from typing import Any

import pytest

from overread.config import Setting
from overread.estimates.inference.decide import CLASSES, SUBCLASSES
from overread.reporting.conclusion import KINDS, NO_SIGHT, ORDER, Conclusion, conclude, summary
from overread.reporting.contrasts import Tables
from overread.reporting.evidence import Answer
from overread.reporting.rows import Row
from overread.reporting.words import SPACE

SETTINGS = {
    name: Setting.model_validate({"images": "frontal", **one})
    for name, one in {
        "own": {}, "other": {"source": "substitute"}, "report": {"report": "full"},
        "report-other": {"report": "full", "source": "substitute"},
        "neutral": {"report": "neutral"}, "neutral-other": {"report": "neutral", "source": "substitute"},
    }.items()
}  # fmt: skip
SPEC: dict[str, Any] = {
    "settings": SETTINGS,
    "comparisons": {
        "swap": {"flips": ["own", "other"]}, "with": {"flips": ["report", "report-other"]},
        "neutral-swap": {"flips": ["neutral", "neutral-other"]},
    },
    "statistics": {"level": 0.95, "lost": 0.1},
}  # fmt: skip


def row(**values: object) -> Row:
    return {"dataset": "d", "model": "m"} | {name: "" if one is None else str(one) for name, one in values.items()}


def verdict(which: str, subclass: str, **more: object) -> Row:
    base: dict[str, object] = {
        "verdict": which, "subclass": subclass, "comparison": "swap", "following": 0.412, "low": 0.3, "high": 0.5,
        "p_holm": 0.0001, "smallest_effect": 0.1, "questions": 400, "patients": 50, "lost": 0.0,
        "floor_kind": "placebo",
        "reasons": "", "auc": None, "auc_low": None, "auc_high": None,
    }  # fmt: skip
    return row(**(base | more))


def following(comparison: str, low: float, high: float, p_equivalent: float) -> Row:
    return row(comparison=comparison, group="all", low=low, high=high, p_equivalent=p_equivalent)


def against(opponent: str, gain: float, low: float, high: float) -> Row:
    return row(setting="own", opponent=opponent, gain=gain, low=low, high=high)


def concluded(
    verdict: Row, following: tuple[Row, ...] = (), gain: tuple[Row, ...] = (), sight: tuple[Row, ...] = ()
) -> Conclusion:
    tables = Tables((), (), (), (), verdicts=(verdict,), following=following, gain=gain, sight=sight)
    return conclude("d", "m", tables, SPEC)


def told(conclusion: Conclusion) -> str:
    return conclusion.sentence.replace(SPACE, " ")


def test_every_kind_of_verdict_that_can_be_reached_has_its_words() -> None:
    assert {subclass for _, subclass in KINDS} == {*SUBCLASSES, ""}
    assert {which for which, _ in KINDS} == set(CLASSES)
    for (which, _), kind in KINDS.items():
        expected = {"uses": Answer.MORE, "does not use": Answer.NONE, "cannot tell": Answer.CANNOT_TELL}
        assert kind.answer is expected.get(which, Answer.DESCRIPTION)


def test_a_reader_is_told_with_its_number_and_its_strongest_opponent() -> None:
    found = concluded(
        verdict("uses", "reads"),
        gain=(against("black image", 0.4, 0.3, 0.5), against("no image", -0.183, -0.3, -0.067)),
    )
    assert found.words.headline == "Reads the image"
    assert told(found) == (
        "Its answers follow the picture that is shown by +41.2 points [30.0, 50.0], adjusted p < 0.001. "
        "It does worse with the image than without an image: −18.3 points [−30.0, −6.7] balanced accuracy."
    )
    assert found.behind.replace(SPACE, " ") == "swap, 400 pairs, 50 patients"


def test_no_use_is_told_with_the_smallest_effect_that_it_lies_within() -> None:
    found = concluded(verdict("does not use", "blind", following=0.01, low=-0.02, high=0.04, p_holm=0.3))
    assert "+1.0 points [−2.0, 4.0], adjusted p = 0.300; the smallest effect that matters is +10.0 points" in told(
        found
    )


def test_a_gain_that_is_not_shown_is_not_said_to_be_one() -> None:
    found = concluded(verdict("does not use", "blind"), gain=(against("majority of the finding", 0.0, -0.1, 0.1),))
    assert "It does not show that it does better with the image than by always giving each finding's" in told(found)


def test_what_was_not_measured_or_is_missing_is_said_beside_the_verdict() -> None:
    text = told(
        concluded(verdict("uses", "reads", floor_kind="not measured", lost=0.04, reasons="decoding-unknown;few-events"))
    )
    assert "How many answers change without a reason was not measured" in text
    assert "4.0 % of the pairs lack an answer; beyond 10 % nothing is concluded." in text
    assert "How it draws its answers is not known" in text and "Few patients show any change" in text
    assert "lack an answer" not in told(concluded(verdict("uses", "reads", lost=0.02)))


def test_below_the_answer_is_told_with_its_auc() -> None:
    kind = ("cannot tell", "image reaches it, below the answer")
    found = concluded(verdict(*kind, auc=0.81, auc_low=0.7, auc_high=0.9))
    assert "tell the picture's label with an AUC of 0.81 [0.70, 0.90]" in told(found)


@pytest.mark.parametrize(
    ("beside", "word"),
    [
        (following("with", -0.02, 0.03, 0.001), "silences"),
        (following("with", 0.1, 0.29, 0.6), "weakens"),
        (following("with", 0.1, 0.31, 0.6), ""),
        (following("neutral-swap", -0.02, 0.03, 0.001), ""),
    ],
)
def test_what_the_full_report_does_to_a_reader_is_said_where_it_is_shown(beside: Row, word: str) -> None:
    assert concluded(verdict("uses", "reads"), (following("swap", 0.3, 0.5, 1.0), beside)).report == word
    assert concluded(verdict("does not use", "blind"), (beside,)).report == ""


def test_a_model_without_a_verdict_was_not_tested() -> None:
    assert conclude("d", "m", Tables((), (), (), ()), SPEC).words.headline == "Use of the image was not tested"
    assert concluded(verdict("not tested", "")).sentence == ""


READS, BLIND, REACTS = ("uses", "reads"), ("does not use", "blind"), ("does not use", "reacts without reading")


def many(*kinds: tuple[str, str], report: str = "") -> list[Conclusion]:
    return [Conclusion("d", str(n), kind, report=report if kind == READS else "") for n, kind in enumerate(kinds)]


@pytest.mark.parametrize(
    ("conclusions", "text"),
    [
        (
            many(READS, BLIND, READS, REACTS, report="silences"),
            "Of 4 models, 2 read the image, 1 reacts without reading and 1 does not use the image; the report silences "
            "the image in both that read it.",
        ),
        (many(READS), "The one model reads the image."),
        (many(BLIND, BLIND), "Of 2 models, 2 do not use the image."),
        (
            many(READS, READS, READS, report="weakens"),
            "Of 3 models, 3 read the image; the report weakens the image in all 3 that read it.",
        ),
        (
            [*many(READS, report="silences"), *many(READS, BLIND)],
            "Of 3 models, 2 read the image and 1 does not use the image; the report silences the image in 1 of the 2 "
            "that read it.",
        ),
        ([], ""),
    ],
)
def test_a_data_set_is_told_in_one_sentence(conclusions: list[Conclusion], text: str) -> None:
    assert summary(conclusions) == text


def test_the_order_goes_from_no_use_to_use() -> None:
    places = {which: [ORDER.index(kind) for kind in ORDER if kind[0] == which] for which in CLASSES}
    assert max(places["does not use"]) < min(places["not tested"]) < min(places["cannot tell"])
    assert max(places["cannot tell"]) < min(places["uses"])


def seen(sees: str, size: float = 0.15, accuracy: float = 0.98) -> Row:
    return row(
        setting="marks", asked_about="all", mark_size=size, mark_contrast=1.0, accuracy=accuracy, low=0.9, high=1.0,
        chance=0.4, sees=sees,
    )  # fmt: skip


def test_who_sees_marks_and_does_not_read_is_told_so() -> None:
    found = concluded(verdict("does not use", "blind"), sight=(seen("not shown", size=0.02), seen("yes")))
    assert found.words.headline == "Does not use the image"
    assert "It sees: of questions about marks drawn on the picture it answers 98.0 % [90.0, 100.0] correctly" in told(
        found
    )
    assert NO_SIGHT not in told(found)


def test_who_does_not_see_marks_either_is_a_doubt_about_the_set_up() -> None:
    found = concluded(verdict("does not use", "blind"), sight=(seen("not shown", accuracy=0.41),))
    assert found.words.headline == "May not see the image at all: look at the set-up first"
    assert found.words.answer is Answer.CANNOT_TELL
    reader = concluded(verdict("uses", "reads"), sight=(seen("not shown"),))
    assert reader.words.headline == "Reads the image"
    assert "correctly, no more than chance (40.0 %)" in told(reader) and "may not see" not in told(reader)
    other = concluded(verdict("does not use", "blind"), sight=(seen("yes"),))
    assert summary([found, reader, other]) == (
        "Of 3 models, 1 reads the image, 1 may not see the image and 1 does not use the image."
    )


def test_where_nobody_asked_about_marks_the_doubt_stays() -> None:
    assert NO_SIGHT in told(concluded(verdict("does not use", "blind")))
    assert NO_SIGHT not in told(concluded(verdict("uses", "reads")))
