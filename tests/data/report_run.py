"""A small run with its report, and a reader of the page: what the tests of the report share."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import made

from overread.estimates.make import make_tables
from overread.estimates.spec import TablesSpec
from overread.reporting.plots import draw
from overread.reporting.report import write

VOID = {"meta", "link", "img", "br", "hr", "input"}


@dataclass
class Run:
    """A small run with its tables and figures, and what a report of it is told."""

    folder: Path
    spec: dict[str, Any]

    def page(self, out: Path, **changes: Any) -> str:
        write(self.folder, {**self.spec, **changes}, out)
        return out.read_text(encoding="utf-8")


def make_run(folder: Path, *, figures: Path | None = None, **options: Any) -> Run:
    """A run of `made`, its figures drawn or taken from another run."""
    spec = made.make_results(folder, draws=200, **options)
    make_tables(folder, TablesSpec.model_validate(made.tables_spec(spec)), folder / "tables")
    if figures is None:
        draw(folder / "tables", {name: model["label"] for name, model in spec["models"].items()}, folder / "figures")
    else:
        shutil.copytree(figures, folder / "figures")
    return Run(folder, spec)


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass
class Page(HTMLParser):
    """The elements of a page in order, with the text inside each; fails on tags that are not closed."""

    elements: list[Element] = field(default_factory=list)
    open: list[Element] = field(default_factory=list)

    def __init__(self, text: str) -> None:
        HTMLParser.__init__(self)
        self.elements, self.open = [], []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {[one.tag for one in self.open]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1].tag == tag, (
            f"</{tag}> closes {self.open[-1].tag if self.open else 'nothing'}"
        )
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data

    def all(self, *tags: str) -> list[Element]:
        return [one for one in self.elements if one.tag in tags]

    def rows(self) -> list[list[str]]:
        """The cells of each table row."""
        found: list[list[str]] = []
        for one in self.all("tr", "th", "td"):
            if one.tag == "tr":
                found.append([])
            else:
                found[-1].append(one.text.strip().replace("\N{NO-BREAK SPACE}", " "))
        return found
