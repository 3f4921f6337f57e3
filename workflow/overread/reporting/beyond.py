"""Whether answers depend on the image beyond the noise floor, in a sentence a model; and what hiding a report does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from overread.reporting.contrasts import Statement, Tables, rate
from overread.reporting.evidence import FEWEST_PATIENTS, Answer, Evidence
from overread.reporting.rows import Row, number, where
from overread.reporting.words import count, interval, percent
from overread.settings.order import Order
from overread.settings.readout import Readout

FROZEN_OR_SEEING = (
    "a stable answer is no proof that the image went unused, and accuracy beside a report is no measure of reading the "
    "image"
)
NOT_READING = "that answers move with the image does not mean that it is read well"
BESIDE = {"none": "without a report", "full": "with the report"}


def sentence(own: Tables, spec: Mapping[str, Any]) -> str:
    """One sentence on a model's image swaps without and with the report: how many answers move, whether that is beyond
    the noise floor by the adjusted test, and what it does not mean. Empty where no image was swapped.
    """
    chosen = [row for row in (_principal(own, spec, report) for report in BESIDE) if row is not None]
    if not chosen:
        return ""
    parts = [_told(row, own, spec) for row in chosen]
    shown = any(part[1] for part in parts)
    caution = NOT_READING if shown and len(chosen) == 1 and chosen[0]["report_shown"] == "none" else FROZEN_OR_SEEING
    told = "; ".join(part[0] for part in parts)
    return f"{told[:1].upper()}{told[1:]}: {caution}."


def _principal(own: Tables, spec: Mapping[str, Any], report: str) -> Row | None:
    """The test that speaks for a model: image first, answers as they are given, most pairs; then by name."""

    def rank(row: Row) -> tuple[bool, bool, float, str]:
        setting = spec["settings"][spec["comparisons"][row["comparison"]]["flips"][0]]
        odd = setting[Readout].readout == "first-token"
        return setting[Order].order != "image-first", odd, -(number(row["pairs"]) or 0), row["comparison"]

    tests = [row for row in where(own.significance, report_shown=report) if row["comparison"] in spec["comparisons"]]
    return min(tests, key=rank, default=None)


def _told(row: Row, own: Tables, spec: Mapping[str, Any]) -> tuple[str, bool]:
    """A clause on one test, and whether it shows a dependence."""
    flips = next(iter(where(own.flips, comparison=row["comparison"], group="all")), None)
    moved = rate(Evidence.of(flips, "flip_rate")) if flips is not None else percent(number(row["flip_rate"]))
    start = f"{BESIDE[row['report_shown']]}, {moved} of its answers change when the image is swapped"
    p, alpha = number(row["p_holm"]), 1 - spec["statistics"]["level"]
    patients = int(number(row["patients"]) or 0)
    if patients < FEWEST_PATIENTS:
        return f"{start}, of too few patients for a test ({patients})", False
    if row["floor_basis"] != "measured":
        return f"{start}; how many would by themselves was not measured", False
    if row.get("floor_kind", "reruns") == "reruns" and flips is not None:
        again = f"{percent(number(flips['floor']))} {interval(number(flips['floor_low']), number(flips['floor_high']))}"
        floor = f"the {again.strip()} that change when the same is asked again"
    else:
        floor = f"the {percent(number(row['floor_rate']))} that change under a change of no matter"
    found = p is not None and p <= alpha
    return f"{start}, which is {'' if found else 'not shown to be '}beyond {floor} ({_p(p)})", found


def _p(p: float | None) -> str:
    if p is None:
        return "no test"
    return "adjusted p < 0.001" if p < 0.001 else f"adjusted p = {p:.3f}"


def layer_statements(own: Tables) -> list[Statement]:
    """A statement a sweep: the first and the last layer, and the two lines it is read against."""
    families: dict[tuple[str, str, str], list[Row]] = {}
    for row in own.layers:
        families.setdefault((row["mode"], row["in_view"], row["no_report"]), []).append(row)
    statements = []
    for (mode, in_view, no_report), rows in sorted(families.items()):
        rows.sort(key=lambda row: (int(row["layer"]), row["comparison"]))
        ends = [rows[0], *rows[-1:]] if len(rows) > 1 else rows
        words = "from layer {} on" if mode == "from" else "in layer {} alone"
        parts = [f"hidden {words.format(row['layer'])}, {rate(Evidence.of(row, 'flip_rate'))}" for row in ends]
        for name, what in ((in_view, "in full view"), (no_report, "left out")):
            for row in where(own.flips, comparison=name, group="all"):
                parts.append(f"{what}, {rate(Evidence.of(row, 'flip_rate'))}")
        patients = count(number(rows[0]["patients"]) or 0, "patient")
        text = f"Answers that change when the image is swapped, by what becomes of the report: {'; '.join(parts)}"
        text += f" ({count(len(rows), 'layer')} tried, {patients})."
        title = f"What hiding the report {'from a layer on' if mode == 'from' else 'in one layer'} does"
        caveat = (
            "What a layer hands on it may have taken from the report before: a curve does not say where it is read."
        )
        statements.append(Statement("layers", rows[0]["comparison"], Answer.DESCRIPTION, title, text, (caveat,)))
    return statements
