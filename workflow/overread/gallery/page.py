"""What `overread gallery` prints and writes: verdicts against truth, sizes of tests, coverage of intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pandas as pd
from rich.console import Console
from rich.table import Table

from overread.core.csv_files import write_csv
from overread.core.outputs import replacing
from overread.gallery.bounds import interval
from overread.gallery.coverage import Covered
from overread.gallery.errors import Error, Recovered
from overread.gallery.readers import GALLERY
from overread.gallery.verdicts import VERDICTS, Tally

NOTE = (
    "Shares of simulated studies in per cent: *uses* / *does not use* / *cannot tell*. **Bold**: breaks its bound by "
    "more than simulation error."
)


@dataclass(frozen=True)
class Results:
    """All that one run of the gallery found.

    tried    what `verdicts.try_readers` gave
    """

    studies: int
    seconds: float
    tried: pd.DataFrame
    tallies: Sequence[Tally]
    errors: Sequence[Error]
    recovered: Sequence[Recovered]
    covered: Sequence[Covered]

    @property
    def broken(self) -> list[str]:
        """A line for each bound that is broken."""
        lines = [
            f"{one.reader} ({one.truth}), {one.design}: {verdict!r} in {100 * one.share(verdict):.1f} % of "
            f"{one.studies} studies, should be {one.bounds[verdict]}"
            for one in self.tallies
            for verdict in one.broken
        ]
        for each in self.errors:
            if "size" in each.broken:
                lines.append(
                    f"test of {each.test}, {each.reader}, {each.design}: rejects in "
                    f"{100 * each.rejected / each.studies:.1f} % of {each.studies} studies, should be {each.size}"
                )
            if "coverage" in each.broken:
                lines.append(
                    f"interval of {each.test}, {each.reader}, {each.design}: covers in "
                    f"{100 * each.covered / each.studies:.1f} % of {each.studies} studies, should be {each.coverage}"
                )
        lines += [
            f"interval of following, {one.reader}, {one.design}: covers in {100 * one.covered / one.studies:.1f} %"
            for one in self.recovered
            if one.broken
        ]
        for cell in self.covered:
            if cell.broken:
                lines.append(f"{_cell(cell)}: covers in {100 * cell.covered / cell.studies:.1f} %, not {cell.bound}")
            if cell.too_wide:
                lines.append(f"{_cell(cell)}: {cell.width:.2f} times as wide as the percentile interval")
        return lines


def show(results: Results, console: Console) -> None:
    """Print the tables."""
    for title, header, rows in _tables(results):
        table = Table(title=title, title_justify="left", header_style="bold")
        for place, name in enumerate(header):
            table.add_column(name, justify="left" if place < 2 else "right", no_wrap=place == 0)
        for row in rows:
            table.add_row(*(_marked(cell, "[bold red]", "[/]") for cell in row))
        console.print(table)
    broken = results.broken
    for line in broken:
        console.print(f"[red]broken[/] {line}", highlight=False)
    held = f"{len(results.tallies)} counts of verdicts, {len(results.errors)} tests and {len(results.covered)} cells"
    console.print(f"{len(broken)} bounds broken, of {held} of coverage; {results.seconds:.0f} s", highlight=False)


def write(results: Results, out: Path) -> list[Path]:
    """The page as Markdown, and a CSV file for each of its parts."""
    out.mkdir(parents=True, exist_ok=True)
    parts = {
        "verdicts": pd.DataFrame(_verdict_rows(results.tallies)),
        "tests": pd.DataFrame(_error_rows(results.errors)),
        "coverage": pd.DataFrame(_coverage_rows(results.covered)),
    }
    for name, frame in parts.items():
        write_csv(out / f"{name}.csv", list(frame.columns), frame.itertuples(index=False), decimals=4)
    page = out / "gallery.md"
    with replacing(page) as temporary:
        temporary.write_text(markdown(results), encoding="utf-8")
    return [page, *(out / f"{name}.csv" for name in parts)]


def markdown(results: Results) -> str:
    """The page: what was found, as Markdown."""
    lines = [
        "# What the gallery of readers found",
        "",
        f"Written by `make gallery`: {results.studies} simulated studies per cell. {NOTE}",
    ]
    for title, header, rows in _tables(results):
        lines += ["", f"## {title}", "", f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
        lines += [f"| {' | '.join(_marked(cell, '**', '**') for cell in row)} |" for row in rows]
    broken = results.broken
    lines += ["", "## Broken bounds", "", *([f"- {line}" for line in broken] or ["None."]), ""]
    return "\n".join(lines)


# -- tables ------------------------------------------------------------------------------------------------------------

Rows = list[list[str]]
Item = TypeVar("Item", bound=Error | Recovered)
BROKEN = "!"
"""What begins a cell that breaks its bound."""


def _marked(cell: str, start: str, end: str) -> str:
    return f"{start}{cell.removeprefix(BROKEN)}{end}" if cell.startswith(BROKEN) else cell


def _tables(results: Results) -> Iterator[tuple[str, list[str], Rows]]:
    designs = list(dict.fromkeys(one.design for one in results.tallies if one.design != "all"))
    cells = {(one.reader, one.design): one for one in results.tallies if one.reader != "all"}
    readers = list(dict.fromkeys(one.reader for one in results.tallies if one.reader != "all"))
    for title, part in (("by number of patients", _sizes(designs)), ("in other cohorts", _others(designs))):
        rows = [
            [reader, str(GALLERY[reader].truth), *(_shares(cells[reader, design]) for design in part)]
            for reader in readers
        ]
        if len(part) > 1:
            yield f"Verdicts against truth, {title}", ["reader", "truth", *part], rows
    yield "Readers", ["reader", "truth", "what it does"], [
        [reader, str(GALLERY[reader].truth), GALLERY[reader].description] for reader in readers
    ]  # fmt: skip
    if results.errors:
        for part in (_sizes(designs)[:-1], _others(designs)[:-1]):
            yield (
                "Tests of what is nothing: share rejected at 5 %, and coverage of the interval",
                ["test", "reader", *part],
                _by_design(results.errors, part, lambda one: (one.test, one.reader), _error_cell),
            )  # fmt: skip
    if results.recovered:
        yield (
            "Coverage of following where it is known: mean, and share of intervals that cover",
            ["reader", "truth", *designs],
            _by_design(
                results.recovered, designs, lambda one: (one.reader, f"{GALLERY[one.reader].following:g}"),
                lambda one: f"{BROKEN if one.broken else ''}{one.mean:.3f}, {100 * one.covered / one.studies:.1f}",
            ),
        )  # fmt: skip
    if results.covered:
        yield (
            "Coverage of intervals by size",
            ["interval", "patients", "covers, %", "widest"],
            _coverage(results.covered),
        )


def _sizes(designs: Sequence[str]) -> list[str]:
    return [*(design for design in designs if "," not in design), "all"]


def _others(designs: Sequence[str]) -> list[str]:
    return [*(design for design in designs if "," in design), "all"]


def _shares(tally: Tally) -> str:
    shares = " / ".join(f"{100 * tally.share(verdict):.1f}".removesuffix(".0") for verdict in VERDICTS)
    return f"{BROKEN if tally.broken else ''}{shares}"


def _error_cell(one: Error) -> str:
    shares = [f"{100 * count / one.studies:.1f}" for count in (one.rejected, one.covered)]
    return f"{BROKEN if one.broken else ''}{', '.join(shares)}"


def _by_design(
    items: Sequence[Item], designs: Sequence[str], key: Callable[[Item], tuple[str, str]], cell: Callable[[Item], str]
) -> Rows:
    cells = {(key(one), one.design): cell(one) for one in items}
    rows = dict.fromkeys(key(one) for one in items)
    return [[*row, *(cells.get((row, design), "") for design in designs)] for row in rows]


def _coverage(covered: Sequence[Covered]) -> Rows:
    """A row per kind and number of patients: least and most coverage, and the largest width beside the usual one's."""
    rows = []
    for kind, patients in dict.fromkeys((one.cell.kind, one.cell.patients) for one in covered):
        cells = [one for one in covered if (one.cell.kind, one.cell.patients) == (kind, patients)]
        shares = [100 * one.covered / one.studies for one in cells]
        widths = [one.width for one in cells if one.width == one.width]
        broken = [BROKEN if any(getattr(one, what) for one in cells) else "" for what in ("broken", "too_wide")]
        widest = f"{broken[1]}{max(widths):.2f}" if widths else ""
        rows.append([kind, str(patients), f"{broken[0]}{min(shares):.1f} to {max(shares):.1f}", widest])
    return rows


def _cell(one: Covered) -> str:
    cell = one.cell
    lean = f", lean {cell.lean:g}" if cell.kind == "difference" else ""
    return (
        f"{cell.kind} of {100 * cell.rate:g} %{lean}, correlation {cell.correlation:g}, {cell.patients} patients of "
        f"{cell.sizes} size"
    )


def _verdict_rows(tallies: Sequence[Tally]) -> Iterator[dict[str, object]]:
    for one in tallies:
        row: dict[str, object] = {
            "reader": one.reader,
            "truth": one.truth,
            "design": one.design,
            "studies": one.studies,
        }
        for verdict in VERDICTS:
            low, high = interval(one.seen[verdict], one.studies)
            name = verdict.replace(" ", "_")
            row |= {name: one.share(verdict), f"{name}_low": low, f"{name}_high": high}
            row[f"{name}_bound"] = str(one.bounds.get(verdict, ""))
        yield row | {"broken": ";".join(one.broken)}


def _error_rows(errors: Sequence[Error]) -> Iterator[dict[str, object]]:
    for one in errors:
        yield {
            "test": one.test, "reader": one.reader, "design": one.design, "studies": one.studies,
            "patients_moved": one.moved, "rejected": one.rejected / one.studies, "covered": one.covered / one.studies,
            "broken": ";".join(one.broken),
        }  # fmt: skip


def _coverage_rows(covered: Sequence[Covered]) -> Iterator[dict[str, object]]:
    for one in covered:
        cell = one.cell
        yield {
            "interval": cell.kind, "rate": cell.rate, "lean": cell.lean, "correlation": cell.correlation,
            "patients": cell.patients, "sizes": cell.sizes, "studies": one.studies,
            "covered": one.covered / one.studies, "patients_with_event": one.events, "width_ratio": one.width,
            "broken": one.broken, "too_wide": one.too_wide,
        }  # fmt: skip
