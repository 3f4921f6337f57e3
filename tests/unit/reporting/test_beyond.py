"""The sentence about the noise floor, layer curves, reruns and effects of effects, on tables made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from overread.config import Setting
from overread.reporting.contrasts import Statement, Tables
from overread.reporting.evidence import Answer
from overread.reporting.rows import Row
from overread.reporting.verdict import Judgement, judge
from overread.reporting.words import SPACE

SETTINGS = {
    name: Setting.model_validate({"images": "frontal", **one})
    for name, one in {
        "own": {}, "other": {"source": "substitute"}, "report": {"report": "full"},
        "report-other": {"report": "full", "source": "substitute"}, "first": {"readout": "first-token"},
        "first-other": {"readout": "first-token", "source": "substitute"}, "text": {"order": "text-first"},
        "text-other": {"order": "text-first", "source": "substitute"},
        "text-report": {"order": "text-first", "report": "full"},
        "text-report-other": {"order": "text-first", "report": "full", "source": "substitute"},
        "hidden": {"report": "full", "attention": "from-0"},
        "hidden-other": {"report": "full", "attention": "from-0", "source": "substitute"},
    }.items()
}  # fmt: skip
COMPARISONS: dict[str, Any] = {
    "swap": {"flips": ["own", "other"]}, "a-first": {"flips": ["first", "first-other"]},
    "with": {"flips": ["report", "report-other"]}, "text-swap": {"flips": ["text", "text-other"]},
    "text-with": {"flips": ["text-report", "text-report-other"]}, "hiding": {"flips": ["hidden", "hidden-other"]},
    "again": {"flips": ["own", "own"]},
}  # fmt: skip
EFFECTS = {
    "effect": {"minus": ["swap", "with"]}, "text-effect": {"minus": ["text-swap", "text-with"]},
    "order": {"minus": ["effect", "text-effect"]}, "turned": {"minus": ["text-effect", "effect"]},
}  # fmt: skip


def row(**values: object) -> Row:
    return {"dataset": "d", "model": "m"} | {name: "" if one is None else str(one) for name, one in values.items()}


def flip(comparison: str, rate: float, low: float, high: float, floor: tuple[float, float, float] | None = None) -> Row:
    floors = dict(zip(("floor", "floor_low", "floor_high"), floor or (None,) * 3, strict=True))
    return row(
        comparison=comparison, group="all", pairs=400, patients=50, flip_rate=rate, low=low, high=high,
        mean_abs_margin_change=None, margin_moved_over_0_5=None, yes_rate_a=None, yes_rate_b=None, **floors,
    )  # fmt: skip


def judged(temperature: float = 0, comparisons: Any = COMPARISONS, **tables: list[Row]) -> Judgement:
    spec = {
        "settings": SETTINGS, "comparisons": comparisons, "effects": EFFECTS,
        "statistics": {"level": 0.95, "draws": 1000, "seed": 0},
        "models": {"m": {"label": "M", "decoding": {"temperature": temperature}}},
    }  # fmt: skip
    parts = ("accuracy", "flips", "effects", "positions", "significance", "layers")
    return judge("d", "m", Tables(*(tables.get(name, []) for name in parts)), spec)


def statement(about: str, **tables: Any) -> Statement:
    (found,) = [one for one in judged(**tables).statements if one.about == about]
    return replace(found, text=found.text.replace(SPACE, " "))


SWAP = flip("swap", 0.209, 0.197, 0.221, (0.03, 0.02, 0.04))
WITH = flip("with", 0.043, 0.0395, 0.046, (0.03, 0.02, 0.05))


@pytest.mark.parametrize(
    ("floor", "answer"),
    [((0.0, 0.0, 0.0), Answer.MORE), ((0.05, 0.02, 0.09), Answer.MORE), ((0.08, 0.05, 0.12), Answer.CANNOT_TELL)],
)
def test_a_flip_rate_is_shown_only_where_its_interval_is_clear_of_the_noise_floor(floor: Any, answer: Answer):
    found = statement("swap", flips=[flip("swap", 0.2, 0.1, 0.3, floor)])
    assert found.answer is answer
    assert ("not clear of the noise floor" in found.text) == (answer is Answer.CANNOT_TELL)
    assert f"When the same is asked again, {100 * floor[0]:.1f} %" in found.text


def test_no_flip_at_all_stays_no_flip_at_all_above_any_floor():
    assert statement("swap", flips=[flip("swap", 0, 0, 0, (0.1, 0.05, 0.15))]).answer is Answer.NONE


def test_a_setting_against_itself_is_told_as_a_rerun():
    found = statement("again", flips=[flip("again", 0.1, 0.05, 0.15)])
    assert (found.aspect, found.answer, found.title) == ("other", Answer.MORE, "Its answers change by themselves")
    assert found.text.startswith("10.0 % [5.0, 15.0] of its answers under own change when the same is asked again")
    assert statement("again", flips=[flip("again", 0, 0, 0)]).title == "No answer changes by itself"


def test_a_layer_curve_is_one_statement_with_its_ends_and_lines():
    layers = [
        row(mode="from", layer=place, flip_rate=rate, low=rate - 0.01, high=rate + 0.01, patients=50,
            comparison=f"hiding-{place}", in_view="with", no_report="swap")
        for place, rate in ((10, 0.045), (0, 0.08), (9, 0.05))
    ]  # fmt: skip
    hiding = {f"hiding-{place}": COMPARISONS["hiding"] for place in (0, 9, 10)}
    flips = [SWAP, WITH, *(flip(name, 0.08, 0.07, 0.09) for name in hiding)]
    whole = judged(comparisons={**COMPARISONS, **hiding}, flips=flips, layers=layers)
    (found,) = [one for one in whole.statements if one.about.startswith("hiding")]
    assert found.answer is Answer.DESCRIPTION
    assert found.text.replace(SPACE, " ").endswith(
        "hidden from layer 0 on, 8.0 % [7.0, 9.0]; hidden from layer 10 on, 4.5 % [3.5, 5.5]; in full view, 4.3 % "
        "[4.0, 4.6]; left out, 20.9 % [19.7, 22.1] (3 layers tried, 50 patients)."
    )


@pytest.mark.parametrize(("name", "sign"), [("order", 1), ("turned", -1)])
def test_the_order_contrast_is_told_by_what_comes_first_whichever_way_it_is_written(name: str, sign: int):
    ends = sorted((sign * 0.02, sign * 0.07))
    found = statement(name, effects=[row(effect=name, estimate=sign * 0.046, low=ends[0], high=ends[1], patients=50)])
    assert found.title == "The report takes more away where the image comes first than where the text does"
    assert found.text == "A difference of +4.6 points [2.0, 7.0] over 50 patients."
