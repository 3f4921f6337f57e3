"""Accuracy in the layout of Table 4 of UCSF-PDGM-VQA: a row a model and input, a column a condition, with n.

The paper's columns are the input as it is, the montage, the black image, the reshuffled options and the text alone. The
image-swap audit adds the swapped image and the report. What differs in anything else stands in the table of accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from overread.config import Setting, ViewSection
from overread.config.kinds import VIEWS
from overread.reporting.presented import DASH, Cell, Column, Presented, make, text
from overread.reporting.rows import Row, number, ordered, where
from overread.reporting.words import SPACE, interval, signless
from overread.settings.image import Image
from overread.settings.readout import GOES_WITHOUT_SAYING, Readout

OWN = {"mri": "MRI", "xray": "X-ray"}
CONDITIONS = ("own", "montage", "black", "reshuffled", "text", "swapped", "both", "both-swapped", "report")
HEADINGS = {
    "montage": "{own} montage", "black": "Black image", "reshuffled": "Reshuffled", "text": "Text only",
    "swapped": "Swapped image", "both": "{own} and report", "both-swapped": "Swapped image, own report",
    "report": "Report only",
}  # fmt: skip
BY_CHANGE: tuple[tuple[dict[str, Any], str, str | None], ...] = (
    ({}, "own", "text"),
    ({"source": "black"}, "black", None),
    ({"source": "substitute"}, "swapped", None),
    ({"options": "shuffled"}, "reshuffled", "reshuffled"),
    ({"report": "full"}, "both", "report"),
    ({"report": "full", "source": "substitute"}, "both-swapped", None),
)
"""What a setting changes, and its condition with an image and without one. Any other change has no column."""
MANNERS = frozenset(name for kind in Setting.kinds if kind.manner for name in kind.model_fields)
"""Fields that make a row of their own."""


def conditions(
    rows: Sequence[Row], labels: Mapping[str, str], spec: Mapping[str, Any], level: str, modalities: Mapping[str, str]
) -> list[Presented]:
    """A table a dataset. Cells hold the accuracy in per cent, its interval, and the questions behind it.

    spec        the report's: settings are read, and views where it has them, to put a montage beside its slices
    modalities  mri or xray, by dataset
    """
    tables = []
    for dataset in ordered(rows, "dataset"):
        own = where(rows, dataset=dataset)
        placed = _placed(own, spec)
        found = [name for name in CONDITIONS if any(name == condition for _, condition in placed)]
        lines = sorted({line for line, _ in placed}, key=lambda line: (labels.get(line[0], line[0]), *line[1:]))
        image = OWN.get(modalities.get(dataset, ""), "Own image")
        parts = [(Column("Model", False), text("model", labels)), (Column("Input", False), text("input"))]
        for name in found:
            heading = HEADINGS.get(name, "{own}").format(own=image)
            parts.append((Column(heading), lambda row, name=name: Cell(row[name] or DASH)))  # type: ignore[misc]
        merged = [
            {"model": model, "input": shown, **{name: _cell(placed.get(((model, shown), name))) for name in found}}
            for model, shown in lines
        ]
        caption = f"Accuracy by input and condition on {dataset}, per cent [{level} interval], n questions"
        tables.append(make(caption, parts, merged, dataset=dataset))
    return tables


def _placed(rows: Sequence[Row], spec: Mapping[str, Any]) -> dict[tuple[tuple[str, str], str], Row]:
    """The row of accuracy.csv for each line (model, input) and condition. Where two settings would share a place, the
    first by its name has it: the other stands in the table of accuracy.
    """
    settings: Mapping[str, Setting] = spec["settings"]
    placed: dict[tuple[tuple[str, str], str], Row] = {}
    blind: dict[tuple[str, str], list[tuple[str, Row]]] = {}
    lines: dict[tuple[str, str], set[tuple[str, str]]] = {}
    mixed = len({settings[row["setting"]][Readout].readout for row in rows} & set(GOES_WITHOUT_SAYING)) > 1
    for row in sorted(rows, key=lambda row: row["setting"]):
        setting = settings[row["setting"]]
        condition, manner = condition_of(setting, spec), _manner(setting, mixed=mixed)
        if condition is None:
            continue
        if not setting[Image].shown:
            blind.setdefault((row["model"], manner), []).append((condition, row))
            continue
        line = (row["model"], f"{_input(setting, row['model'], rows, spec)}{manner}")
        lines.setdefault((row["model"], manner), set()).add(line)
        placed.setdefault((line, condition), row)
    # What is asked without an image belongs to no input: it stands once, in the model's first line of its manner.
    for (model, manner), found in sorted(blind.items()):
        line = min(lines.get((model, manner), {(model, f"no image{manner}")}))
        for condition, row in found:
            placed.setdefault((line, condition), row)
    return placed


def condition_of(setting: Setting, spec: Mapping[str, Any]) -> str | None:
    """Which column a setting belongs to; none where it does something that no column is for."""
    changed = {name: value for name, value in setting.changed().items() if name not in ("images", *MANNERS)}
    for changes, with_image, without in BY_CHANGE:
        if changes == changed:
            montage = with_image == "own" and _gathered(setting, spec) > 0
            return ("montage" if montage else with_image) if setting[Image].shown else without
    return None


def _view(name: str, spec: Mapping[str, Any]) -> ViewSection | None:
    section = (spec.get("views") or {}).get(name)
    return None if section is None else VIEWS[section["kind"]].model_validate(section)


def _gathered(setting: Setting, spec: Mapping[str, Any]) -> int:
    view = _view(setting.view(setting[Image].images), spec)
    return 0 if view is None else view.gathered


def _manner(setting: Setting, *, mixed: bool) -> str:
    """What of asking and reading sets a line apart, as an ending of its input's name.

    mixed   whether the dataset is asked in both manners that else go without saying
    """
    parts = setting.short(manner=True)
    if mixed and not setting[Readout].short():
        parts.insert(0, f"{setting[Readout].readout} readout")
    return "".join(f", {part}" for part in parts)


def _input(setting: Setting, model: str, rows: Sequence[Row], spec: Mapping[str, Any]) -> str:
    """The view's name; of a montage that of the slices that it gathers, if the model has exactly one such input."""
    name, gathered = setting.view(setting[Image].images), _gathered(setting, spec)
    if gathered and condition_of(setting, spec) == "montage":
        settings: Mapping[str, Setting] = spec["settings"]
        own = {settings[row["setting"]][Image].images for row in where(rows, model=model)} - {"none"}
        slices = {one for one in own if _count(one, spec) == min(2, gathered)}
        if len(slices) == 1:
            return slices.pop()
    return name


def _count(view: str, spec: Mapping[str, Any]) -> int:
    """1 for a view of one slice, 2 for one of several, 0 for any other."""
    section = _view(view, spec)
    return 0 if section is None else min(2, section.single)


def _cell(row: Row | None) -> str:
    """Accuracy, interval and questions, each on a line of its own."""
    if row is None or number(row["accuracy"]) is None:
        return ""
    share = signless(100 * (number(row["accuracy"]) or 0.0), 1)
    between = interval(number(row["low"]), number(row["high"]))
    asked = f"n{SPACE}={SPACE}{int(number(row['questions']) or 0):,}"
    return "\n".join(part for part in (share, between, asked) if part)
