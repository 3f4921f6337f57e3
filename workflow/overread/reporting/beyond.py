"""What hiding the report from a model's layers does, in words."""

from __future__ import annotations

from overread.reporting.contrasts import Statement, Tables, rate
from overread.reporting.evidence import Answer, Evidence
from overread.reporting.rows import Row, number, where
from overread.reporting.words import count


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
