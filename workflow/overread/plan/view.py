"""The plan and the checks of a config, for a person at a terminal: what would run, how much, what can't, and why."""

from __future__ import annotations

import json as json_format
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overread.config import Config, Setting
from overread.config import load as load_config
from overread.core.errors import BadConfig
from overread.plan import CellLoad, Estimate, Size, check, estimate
from overread.plan.estimates import ASSUMED, groupings, segmentings
from overread.settings.image import Image
from overread.settings.readout import Readout

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

STATES = {"runs": "green", "never": "red", "missing": "magenta"}
MEANING = {
    "never": "the two don't go together",
    "missing": "not on this machine",
}


def show_plan(config_path: Path, json: bool = False, console: Console | None = None) -> None:
    """Print the plan of a config file. BadConfig if the file itself is wrong."""
    config = load_config(config_path)
    results = Path("results") / config.name
    whole = estimate(config, results)
    errors, warnings = check(config)
    if json:
        print(json_format.dumps(as_json(config, whole, errors, warnings), indent=2))
        return
    from rich.console import Console

    console = console or Console()
    console.print()
    console.print(f"[bold]{config.title or config.name}[/]  [dim]{config_path}[/]", highlight=False)
    _headline(config, whole, console)
    for dataset, size in whole.sizes.items():
        loads = [load for load in whole.loads if load.cell.dataset == dataset]
        console.print()
        section = config.datasets[dataset]
        words = {"mri": "brain MRI", "xray": "chest X-ray"}[section.modality]
        console.print(f"[bold]{dataset}[/]  {words}, {_size(size)}", highlight=False)
        console.print(_settings_table(config, loads))
        console.print()
        console.print(_models_table(config, loads))
    _standing_in_the_way(config, whole.loads, console)
    _messages(errors, warnings, console)
    console.print()
    console.print(f"[dim]{ASSUMED}[/]", highlight=False)


def show_check(config_path: Path) -> int:
    """Print what is wrong with a config, a line each: errors to stderr. Returns 1 if there are any, else 0."""
    try:
        config = load_config(config_path)
    except BadConfig as error:
        print(f"{error}", file=sys.stderr)
        return 1
    errors, warnings = check(config)
    for warning in warnings:
        print(f"warning: {config_path}: {warning}")
    for error_line in errors:
        print(f"{config_path}: {error_line}", file=sys.stderr)
    if not errors:
        whole = estimate(config, Path("results") / config.name)
        able = sum(not load.obstacles for load in whole.loads)
        print(f"{config_path}: config is valid: {able} of {_many(len(whole.loads), 'cell')} can run now")
    return 1 if errors else 0


def as_json(config: Config, whole: Estimate, errors: Sequence[str], warnings: Sequence[str]) -> dict[str, Any]:
    """The plan for programs: dataset sizes, every cell with its load and what stands in its way."""
    loads = [
        {
            **asdict(load.cell),
            "requests": load.requests,
            "images": load.images,
            "prompt_tokens": load.prompt_tokens,
            "text_tokens": load.text_tokens,
            "jobs": load.jobs,
            "gpu_jobs": load.gpu_jobs,
            "gpu_hours_at_most": load.gpu_hours,
            "answered_jobs": load.answered_jobs,
            "obstacles": [asdict(each) for each in load.obstacles],
        }
        for load in whole.loads
    ]
    sizes = {name: asdict(size) for name, size in whole.sizes.items()}
    return {
        "name": config.name,
        "datasets": sizes,
        "segmentation": [asdict(each) for each in segmentings(config, whole)],
        "cells": loads,
        "errors": list(errors),
        "warnings": list(warnings),
        "how_estimated": ASSUMED,
    }


def collapsed(names: Iterable[str], config: Config) -> list[str]:
    """Names of settings in order, those of one sweep as `hidden-* (63)`."""
    made_by = {made: sweep for sweep, all_made in config.sweeps.items() for made in all_made}
    counts: dict[str, int] = defaultdict(int)
    for name in names:
        counts[made_by.get(name, name)] += 1
    return [
        f"{name}-* ({count}{'' if count == len(config.sweeps[name]) else f' of {len(config.sweeps[name])}'})"
        if name in config.sweeps
        else name
        for name, count in counts.items()
    ]


def in_words(setting: Setting) -> list[str]:
    """`frontal`, `swapped image`, `with report`, `yes-no`: what a model is given, less what goes without saying."""
    image, readout = setting[Image], setting[Readout]
    told = [text for text in setting.short() if text != readout.short()]
    return [image.images if image.shown else "no image", *told, readout.readout]


def _sweep_in_words(first: Setting, last: Setting) -> str:
    """`frontal, with report, report hidden from layer 0 to 62 on, yes-no`."""
    one, other = (", ".join(in_words(setting)).split() for setting in (first, last))
    if len(one) != len(other):
        return f"{' '.join(one)} ... {' '.join(other)}"
    return " ".join(a if a == b else f"{a.rstrip(',')} to {b}" for a, b in zip(one, other, strict=True))


def _headline(config: Config, whole: Estimate, console: Console) -> None:
    loads = whole.loads
    able = [load for load in loads if not load.obstacles]
    jobs = _many(sum(load.jobs for load in loads), "job")
    console.print(
        f"{_many(len(loads), 'cell')} of dataset, model and setting in {jobs}: [green]{len(able)} can run now[/]"
        + "".join(
            f", [{STATES[when]}]{count} {when}[/]"
            for when in ("missing", "never")
            if (count := sum(_state(load) == when for load in loads))
        ),
        highlight=False,
    )
    if able:
        amounts = [
            _many(sum(load.jobs for load in able), "job"),
            f"{_total(load.requests for load in able)} requests",
            f"{_total(load.images for load in able)} images",
            f"{_tokens(able)} prompt tokens",
        ]
        if on_gpu := sum(load.gpu_jobs for load in able):
            amounts.append(f"{_many(on_gpu, 'job')} on a GPU")
        if done := sum(load.answered_jobs for load in loads):
            amounts.append(f"{_many(done, 'job')} done already")
        console.print(f"Now: {', '.join(amounts)}", highlight=False)
    by_group = [
        f"{_many(one.jobs, 'job')} by {group}"
        + (f" ({one.loading_hours:.1f} GPU-hours to load weights)" if one.loading_hours else "")
        for group, one in groupings(config, whole).items()
    ]
    for masks in segmentings(config, whole):
        made = {"provided": "brain masks"}.get(masks.method, f"tumour masks by {masks.method}")
        hours = f", {_number(round(masks.gpu_hours))} GPU-hours at most" if masks.gpu_hours else ""
        console.print(f"{masks.dataset}: {made} of {_number(masks.studies)} studies{hours}", highlight=False)
    console.print(
        f"Models are asked in {', '.join(by_group)}: responses.group is {config.responses.group}", highlight=False
    )


def _settings_table(config: Config, loads: Sequence[CellLoad]) -> Table:
    """A row a setting, a sweep in one row: what is shown, and how many requests each model answers in a run."""
    table = _table("Setting", "What a model is given", requests="Requests\na run", models="Models", runs="Runs")
    by_row: dict[str, list[CellLoad]] = defaultdict(list)
    made_by = {made: sweep for sweep, all_made in config.sweeps.items() for made in all_made}
    for load in _as_written(config, loads):
        by_row[made_by.get(load.cell.setting, load.cell.setting)].append(load)
    for row in by_row.values():
        names = list(dict.fromkeys(load.cell.setting for load in row))
        words = _sweep_in_words(config.settings[names[0]], config.settings[names[-1]])
        first = row[0]
        a_run = None if first.requests is None else first.requests // first.cell.runs
        each = f" x {len(names)}" if len(names) > 1 else ""
        table.add_row(
            ", ".join(collapsed(names, config)),
            words,
            f"{_number(a_run)}{each}",
            str(len({load.cell.model for load in row})),
            str(max(load.cell.runs for load in row)),
        )
    return table


def _models_table(config: Config, loads: Sequence[CellLoad]) -> Table:
    """A row a model: how much it is asked, and whether it can run."""
    hours, done = any(load.gpu_hours for load in loads), any(load.answered_jobs for load in loads)
    numbers = {"settings": "Settings", "jobs": "Jobs", "requests": "Requests", "images": "Images", "tokens": "Tokens"}
    numbers |= {"hours": "GPU h\nat most"} if hours else {}
    numbers |= {"done": "Jobs\ndone"} if done else {}
    table = _table("Model", **numbers, state="")
    table.columns[-1].justify, table.columns[-1].no_wrap = "left", False
    models = sorted({load.cell.model for load in loads})
    rows = [(model, [load for load in loads if load.cell.model == model]) for model in models]
    if len(rows) > 1:
        rows.append(("[bold]all[/]", list(loads)))
    for model, row in rows:
        numbers_of = {
            "settings": _number(len({load.cell.setting for load in row})),
            "jobs": _number(sum(load.jobs for load in row)),
            "requests": _total(load.requests for load in row),
            "images": _total(load.images for load in row),
            "tokens": _tokens(row),
            "hours": _number(round(sum(load.gpu_hours for load in row))),
            "done": _number(sum(load.answered_jobs for load in row)),
        }
        table.add_row(model, *(numbers_of[key] for key in numbers), _states(row))
    return table


def _states(row: Sequence[CellLoad]) -> str:
    counts: dict[str, int] = defaultdict(int)
    for load in row:
        counts[_state(load)] += 1
    if len(counts) == 1:
        state = next(iter(counts))
        return f"[{STATES[state]}]{state}[/]"
    return ", ".join(f"[{color}]{counts[state]} {state}[/]" for state, color in STATES.items() if counts[state])


def _standing_in_the_way(config: Config, loads: Sequence[CellLoad], console: Console) -> None:
    """A row a reason, not a row a cell."""
    hit: dict[tuple[str, str], list[CellLoad]] = defaultdict(list)
    for load in _as_written(config, loads):
        for each in load.obstacles:
            hit[(each.when, each.why)].append(load)
    if not hit:
        return
    console.print()
    console.print("[bold]What stands in the way[/]  [dim]a cell may have several[/]", highlight=False)
    table = _table("", "Why", "Of what", cells="Cells")
    for when in ("never", "missing"):
        rows = [(why, row) for (when_of, why), row in hit.items() if when_of == when]
        for why, row in sorted(rows, key=lambda each: -len(each[1])):
            table.add_row(f"[{STATES[when]}]{when}[/]", why, _of_what(config, row, loads), str(len(row)))
    console.print(table)
    there = dict.fromkeys(when for when, _ in hit)
    console.print(
        "[dim]" + "; ".join(f"{when}: {MEANING[when]}" for when in MEANING if when in there) + "[/]", highlight=False
    )


def _of_what(config: Config, row: Sequence[CellLoad], loads: Sequence[CellLoad]) -> str:
    """The smallest description of the cells that a reason touches."""
    datasets = list(dict.fromkeys(load.cell.dataset for load in row))
    models = list(dict.fromkeys(load.cell.model for load in row))
    settings = collapsed(dict.fromkeys(load.cell.setting for load in row), config)
    if len(row) == sum(load.cell.dataset in datasets for load in loads):
        return f"all of {_few(datasets)}"
    if len(row) == sum(load.cell.model in models for load in loads):
        return _few(models)
    named = {load.cell.setting for load in row}
    if len(row) == sum(load.cell.setting in named and load.cell.dataset in datasets for load in loads):
        return _few(settings)
    return f"{_few(settings)} [dim]on[/] {_few(models)}"


def _messages(errors: Sequence[str], warnings: Sequence[str], console: Console) -> None:
    from rich.text import Text

    for title, style, lines in (("Must be mended first", "bold red", errors), ("Warnings", "bold yellow", warnings)):
        if lines:
            console.print()
            console.print(Text(title, style=style))
            for line in lines:
                console.print(Text(f"- {line}"))


def _as_written(config: Config, loads: Sequence[CellLoad]) -> list[CellLoad]:
    """In the order of the settings in the file: it tells a story that the alphabet does not."""
    place = {name: number for number, name in enumerate(config.settings)}
    return sorted(loads, key=lambda load: (load.cell.dataset, place[load.cell.setting], load.cell.model))


def _table(*left: str, **right: str) -> Table:
    """A plain table: words to the left, then numbers to the right."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", show_edge=False, padding=(0, 1))
    for number, name in enumerate(left):
        # In a narrow terminal words are wrapped, and numbers are not cut off.
        table.add_column(name, overflow="fold", no_wrap=number == 0 and len(left) > 1)
    for name in right.values():
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _state(load: CellLoad) -> str:
    return load.obstacles[0].when if load.obstacles else "runs"


def _size(size: Size) -> str:
    if size.questions is None:
        return "size not known before its folder is read"
    patients = (
        f"{_number(size.patients)} patients, " if size.patients is not None and size.patients != size.studies else ""
    )
    how = {"counted": "counted", "published": "as published", "from the config": "about, by the config"}[size.basis]
    return f"{patients}{_number(size.studies)} studies, {_number(size.questions)} questions ({how})"


def _few(names: Sequence[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _number(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"


def _total(counts: Iterable[int | None], more: bool = False) -> str:
    """A sum, in millions where it is large; with a `+` where some of it is not known."""
    known = list(counts)
    total = sum(count for count in known if count is not None)
    text = f"{total / 1e6:,.1f} M" if total >= 10_000_000 else f"{total:,}"
    if None not in known and not more:
        return text
    return f"{text} +" if total else "?"


def _tokens(row: Sequence[CellLoad]) -> str:
    """Prompt tokens; the text's alone, with a `+`, where an image's are not known."""
    known = [None if load.text_tokens is None else load.text_tokens + (load.image_tokens or 0) for load in row]
    return _total(known, more=any(load.image_tokens is None for load in row))
