"""The test of an image swap against reruns: by hand, calibrated, and with power."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from data.handmade import Asked, read, write_cell
from overread.config import Comparison, Setting
from overread.estimates.tables.significance import TABLE, is_tested, significance_table

SETTINGS = {
    name: Setting.model_validate(one)
    for name, one in {
        "own": {"images": "frontal"},
        "other": {"images": "frontal", "source": "substitute"},
        "report": {"images": "frontal", "report": "full"},
        "report-other": {"images": "frontal", "report": "full", "source": "substitute"},
        "black": {"images": "frontal", "source": "black"},
        "hidden": {"images": "frontal", "report": "full", "attention": "from-0"},
        "hidden-other": {"images": "frontal", "report": "full", "attention": "from-0", "source": "substitute"},
        "neutral": {"images": "frontal", "report": "neutral"},
        "neutral-other": {"images": "frontal", "report": "neutral", "source": "substitute"},
    }.items()
}
SWAP = {"swap": Comparison(flips=("own", "other"))}


def asked(answers: dict[str, list[str | None]], image: str) -> list[Asked]:
    """By patient: the answers to its questions."""
    return [
        Asked(f"{patient}-{place}", patient, "yes", one, image=(image, patient, "yes"))
        for patient, given in answers.items()
        for place, one in enumerate(given)
    ]


def table_of(tmp_path: Path, own: list[dict[str, Any]], other: list[dict[str, Any]]) -> list[dict[str, Any]]:
    cells = read(
        tmp_path,
        write_cell(tmp_path, "own", *(asked(run, "s1") for run in own)),
        write_cell(tmp_path, "other", *(asked(run, "s2") for run in other)),
    )
    table = significance_table(cells, SWAP, SETTINGS)
    assert tuple(table.columns) == TABLE.names
    return table.to_dict("records")


def test_the_swap_is_set_against_the_rerun_question_by_question(tmp_path: Path):
    """From run 1 to run 2, of either picture; no answer is an outcome of its own. Swapped against still:

    p1 (own y y, other y n) from own 1 - 0, from other 0 - 1; twice. p2 (y n, y y) 0 - 1 and 1 - 0; (y y, y n) 1 - 0 and
    0 - 1. p3 (y y, n y) 0 - 0 and 1 - 1; (y -, n n) 1 - 1 and 1 - 0. In all 7 and 6 of 12; p3 has the surplus: p = 1/2.
    """
    own = [
        {"p1": ["yes", "yes"], "p2": ["yes", "yes"], "p3": ["yes", "yes"]},
        {"p1": ["yes", "yes"], "p2": ["no", "yes"], "p3": ["yes", None]},
    ]
    other = [
        {"p1": ["yes", "yes"], "p2": ["yes", "yes"], "p3": ["no", "no"]},
        {"p1": ["no", "no"], "p2": ["yes", "no"], "p3": ["yes", "no"]},
    ]
    (row,) = table_of(tmp_path, own, other)
    assert (row["floor_basis"], row["floor_kind"], row["report_shown"]) == ("measured", "reruns", "none")
    assert (row["pairs"], row["patients"]) == (6, 3)
    assert (row["flip_rate"], row["floor_rate"]) == (7 / 12, 6 / 12)
    assert (row["surplus"], row["p"], row["p_holm"]) == (pytest.approx(1 / 12), 0.5, 0.5)


def test_without_a_floor_there_are_flips_and_no_p(tmp_path: Path):
    own, other = {"p1": ["yes"], "p2": ["yes", "no"], "p3": ["no"]}, {"p1": ["no"], "p2": ["no", "no"], "p3": ["no"]}
    (row,) = table_of(tmp_path, [own], [other])
    assert (row["floor_basis"], row["floor_kind"], row["pairs"], row["flip_rate"]) == (
        "not measured",
        "not measured",
        4,
        0.5,
    )
    assert [row[name] for name in ("floor_rate", "surplus", "p", "p_holm")] == [None] * 4


def test_a_model_is_adjusted_by_its_own_tests_alone(tmp_path: Path):
    """p of 1/8 and 1/4 of one model with two swaps: 1/4 and 1/4. Another model changes nothing."""
    both = SWAP | {"other-swap": Comparison(flips=("report", "report-other"))}

    def cells_of(model: str, flipped: tuple[int, int]) -> dict[tuple[str, str, str], Any]:
        found = {}
        for (own, other), count in zip((("own", "other"), ("report", "report-other")), flipped, strict=True):
            still = {f"p{place}": ["yes"] for place in range(4)}
            moved = {f"p{place}": ["no" if place < count else "yes"] for place in range(4)}
            found |= read(
                tmp_path,
                write_cell(tmp_path, own, asked(still, "s1"), asked(still, "s1"), model=model),
                write_cell(tmp_path, other, asked(moved, "s2"), asked(moved, "s2"), model=model),
            )
        return found

    alone = significance_table(cells_of("one", (3, 2)), both, SETTINGS).set_index("comparison")
    assert alone["p"].to_dict() == {"swap": 1 / 8, "other-swap": 1 / 4}
    assert alone["p_holm"].to_dict() == {"swap": 1 / 4, "other-swap": 1 / 4}
    beside = significance_table(cells_of("one", (3, 2)) | cells_of("two", (0, 4)), both, SETTINGS)
    assert beside[beside["model"] == "one"].set_index("comparison")["p_holm"].to_dict() == alone["p_holm"].to_dict()


@pytest.mark.parametrize(
    ("pair", "tested"),
    [
        (("own", "other"), True), (("report", "report-other"), True), (("own", "black"), False),
        (("other", "own"), False), (("own", "report-other"), False), (("own", "own"), False),
        (("hidden", "hidden-other"), False), (("neutral", "neutral-other"), False),
    ],
)  # fmt: skip
def test_what_is_tested_is_a_swap_of_images_beside_the_whole_report_or_none(pair: tuple[str, str], tested: bool):
    assert is_tested(Comparison(flips=pair), SETTINGS) is tested
    assert not is_tested(Comparison.model_construct(flips=None, accuracy=pair), SETTINGS)
