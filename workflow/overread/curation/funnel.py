"""The funnel: how many questions came to each rule and how many it dropped, as a table and as a figure."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from overread.core.columns import count, text
from overread.core.csv_files import CsvFile
from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.curation.filter import Count

FUNNEL = CsvFile(
    "<dataset>/questions/funnel.csv",
    "How many questions came to each rule and how many it dropped, in the order of the rules.",
    (
        text("step", "the step of the making of questions that has the rule"),
        text("rule", "the rule", blank="the step has none"),
        count("in", "questions that came to it"),
        count("dropped", "questions that it dropped"),
        count("out", "questions that it left: they go into the next row"),
    ),
)
LABELS = {
    "generated": "written", "validation": "validator", "checks": "code check", "keywords": "keyword",
    "duplicates": "duplicate", "kept": "kept",
}  # fmt: skip


def write_funnel(funnel: Sequence[Count], path: Path) -> None:
    """`funnel.csv`: a row a rule in the order they are applied; what goes out of one goes into the next."""
    FUNNEL.write(path, ([one.stage, one.rule, one.came, one.dropped, one.left] for one in funnel))


def read_funnel(path: Path) -> list[Count]:
    """The rows of a `funnel.csv`. BadInput if it is none."""
    try:
        with regular(path).open(newline="", encoding="utf-8") as file:
            table = csv.DictReader(file)
            return [Count(row["step"], row["rule"], int(row["in"]), int(row["dropped"])) for row in table]
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; it should be the funnel of the filter") from None
    except (KeyError, ValueError) as error:
        raise BadInput(f"{path}: not the funnel of the filter: {error}") from None


def draw_funnel(funnel: Sequence[Count], out: Path, name: str = "funnel") -> None:
    """`<name>.svg` and `.png`: a bar a stage for what is left after it, and beside it what its rules dropped.

    Rules that dropped nothing are not drawn; the table has them. The rows drawn are written as `<name>-figure.csv`.
    """
    from matplotlib.figure import Figure

    from overread.reporting.style import COLOURS, FAINT, GREY, INK, WIDTH, drawing, save

    shown = [one for one in funnel if one.stage in ("generated", "kept") or one.dropped]
    with drawing():
        figure = Figure(figsize=(WIDTH, 0.6 + 0.24 * len(shown)), layout="constrained")
        axes = figure.add_subplot()
        places = range(len(shown))
        whole = max(funnel[0].came, 1)
        axes.barh(places, [one.left for one in shown], color=COLOURS[0], height=0.7)
        axes.barh(
            places, [one.dropped for one in shown], left=[one.left for one in shown], color=COLOURS[1], height=0.7
        )
        axes.set_yticks(places, [_label(one) for one in shown])
        axes.invert_yaxis()
        for place, one in zip(places, shown, strict=True):
            text = f"{one.left:,}" + (f"   -{one.dropped:,}" if one.dropped else "")
            axes.text(
                one.came + whole * 0.01, place, text, va="center", color=INK if not one.dropped else GREY, fontsize=7.5
            )
        axes.set_xlim(0, whole * 1.16)
        axes.set_xlabel("questions left (blue) and dropped (orange) by each rule")
        axes.grid(axis="x", color=FAINT, linewidth=0.6)
        axes.set_title("From what was written to what is kept")
        cells = [(one.stage, one.rule, str(one.came), str(one.dropped), str(one.left)) for one in shown]
        rows = [dict(zip(FUNNEL.names, cell, strict=True)) for cell in cells]
        save(figure, rows, FUNNEL.names, out, f"{name}-figure")


def _label(one: Count) -> str:
    return f"{LABELS[one.stage]}: {one.rule}" if one.rule else LABELS[one.stage]
