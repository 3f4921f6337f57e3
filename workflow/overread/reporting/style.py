"""How figures look, and how they are written so that the same tables give the same bytes.

Colours are those of Okabe and Ito (2008), which people with the common colour-vision deficiencies tell apart; a model
is told by its marker too, so the figures survive a black-and-white print.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from overread.core.csv_files import write_csv
from overread.core.records import replacing
from overread.reporting.rows import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette without its yellow, which is too faint on paper.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#000000", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h", "p", "*")
INK, GREY, FAINT = "#222222", "#767676", "#E4E4E4"

WIDTH = 7.2
"""Inches: the width of two columns in most journals."""

_PARAMETERS = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that letters are the same everywhere
    "font.size": 8.0,
    "axes.titlesize": 9.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8.0,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 8.0,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "figure.dpi": 100.0,
    "savefig.dpi": 200.0,
    "svg.fonttype": "path",
    "svg.hashsalt": "overread",
}


@dataclass(frozen=True)
class Mark:
    """How a model is drawn, the same in every figure."""

    label: str
    colour: str
    marker: str


def marks(models: Sequence[str], labels: Mapping[str, str]) -> dict[str, Mark]:
    """A mark for each model, by its place among the sorted ids. A model without a label goes by its id."""
    return {
        model: Mark(labels.get(model, model), COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)])
        for place, model in enumerate(sorted(models))
    }


@contextmanager
def drawing() -> Iterator[None]:
    """Matplotlib's own defaults with ours over them: nobody's matplotlibrc can change a figure."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_PARAMETERS)  # type: ignore[arg-type]  # its stubs list every key
        yield


def save(figure: Figure, rows: Sequence[Row], columns: Sequence[str], out: Path, name: str) -> None:
    """Write `<name>.svg`, `<name>.png` and the rows they show as `<name>.csv`, without dates or versions in them."""
    save_pages([figure], rows, columns, out, name)


def save_pages(figures: Sequence[Figure], rows: Sequence[Row], columns: Sequence[str], out: Path, name: str) -> None:
    """As `save`, of a figure of several pages: those after the first are called `<name>-2`, `<name>-3` ..."""
    for number, figure in enumerate(figures, start=1):
        page = name if number == 1 else f"{name}-{number}"
        with replacing(out / f"{page}.svg") as temporary:
            figure.savefig(temporary, format="svg", metadata={"Date": None, "Creator": None})
        with replacing(out / f"{page}.png") as temporary:
            figure.savefig(temporary, format="png", metadata={"Software": None})
    write_csv(out / f"{name}.csv", columns, rows)
