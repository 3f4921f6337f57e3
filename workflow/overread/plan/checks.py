"""What needs fixing before the first job, and what a person should know: one line each, with the key it is about."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from overread.config import Config, GeneratedQuestions, NetworkSegmentation
from overread.core.errors import shown
from overread.estimates.primary import is_swap, primary_family
from overread.images.segmentation.checkpoint import sha256_of
from overread.plan.asked import Cell, cells, cells_of
from overread.plan.first_jobs import problems
from overread.plan.judging import Judge, Obstacle, missing_of


def check(config: Config) -> tuple[list[str], list[str]]:
    """Errors, which stop the study before any job, and warnings. Each line names a key, and says what to do."""
    judge = Judge(config)
    errors = _empty_folders(config)
    errors.extend(why for name in sorted({cell.dataset for cell in cells(config)}) for why in problems(config, name))
    errors.extend(_reports(config))
    errors.extend(_ratings(config))
    warnings: list[str] = []
    for problem, is_error in _checkpoints(config):
        (errors if is_error else warnings).append(problem)
    idle: list[str] = []
    for number, evaluation in enumerate(config.evaluations):
        place = f"evaluations[{number}]"
        found = {cell: judge.obstacles(cell) for cell in cells_of(config, evaluation)}
        impossible = {cell: each for cell, each in found.items() if each and each[0].when == "never"}
        lines = [f"{place}: {line}" for line in _impossible(impossible)]
        if len(impossible) == len(found):
            reasons = "; ".join(dict.fromkeys(each[0].why for each in impossible.values()))
            errors.append(f"{place}: nothing in it can ever run: {reasons}; give it other models or settings")
        elif "all" in (evaluation.models, evaluation.settings):
            warnings.extend(f"{line}: left out" for line in lines)
        else:
            errors.extend(f"{line}: move it to another evaluation, or remove it" for line in lines)
        if len(impossible) < len(found) and all(found.values()):
            idle.append(str(number))
    if idle:
        places = "evaluations" if len(idle) == len(config.evaluations) else f"evaluations[{', '.join(idle)}]"
        warnings.append(f"{places}: nothing asked for can run now; `overread plan` says why")
    warnings.extend(_comparisons(config))
    warnings.extend(_floors(config))
    warnings.extend(_unpinned(config))
    return errors, warnings


def _impossible(cells_found: dict[Cell, list[Obstacle]]) -> list[str]:
    """`qwen3-8b takes no images (single-slice, montage)`: a line a reason."""
    settings: dict[str, set[str]] = defaultdict(set)
    models: dict[str, set[str]] = defaultdict(set)
    for cell, found in cells_found.items():
        settings[found[0].why].add(cell.setting)
        models[found[0].why].add(cell.model)
    lines = []
    for why, names in settings.items():
        asked = some(names)
        if not any(model in why for model in models[why]):
            asked = f"{some(models[why])}: {asked}"
        lines.append(f"{why} ({asked})")
    return lines


def some(names: set[str] | list[str], most: int = 4) -> str:
    """The first few names, and how many more."""
    ordered = sorted(names)
    more = f" and {len(ordered) - most} more" if len(ordered) > most else ""
    return ", ".join(ordered[:most]) + more


def _empty_folders(config: Config) -> list[str]:
    """A root that is there but holds no study is a mistake. One that is not there keeps its cells from running."""
    errors = []
    for name in sorted({cell.dataset for cell in cells(config)}):
        section = config.datasets[name]
        patterns, place = section.layout, section.place
        if not patterns or place is None or not Path(place).exists():
            continue
        if not any(next(Path(place).glob(pattern), None) for pattern in patterns):
            errors.append(
                f"datasets.{name}.root: {shown(place)} holds no study: looked for {' or '.join(patterns)}; "
                f"give the folder that holds them"
            )
    return errors


def _reports(config: Config) -> list[str]:
    """What settings need that is not there, and files that edited reports are made with and that are not there."""
    errors = [
        f"settings.{name}.{aspect}: {why}"
        for name in sorted({cell.setting for cell in cells(config)})
        for aspect, why in missing_of(config, name).items()
    ]
    if config.prompts is not None and not Path(config.prompts).is_dir():
        errors.append(f"prompts: no folder at {shown(config.prompts)}")
    if config.reports.findings is not None and not Path(config.reports.findings).is_file():
        errors.append(f"reports.findings: no file at {shown(config.reports.findings)}")
    tokenizer = config.reports.tokenizer
    if tokenizer is not None and not Path(tokenizer, "tokenizer.json").is_file():
        errors.append(f"reports.tokenizer: no tokenizer.json in {shown(tokenizer)}")
    return errors


def _ratings(config: Config) -> list[str]:
    """Ratings that are named and not there."""
    return [
        f"human.{name}.ratings: no file at {shown(path)}; export it from the reader study, or leave it out until then"
        for name, subset in sorted(config.human.items())
        for path in subset.ratings
        if not Path(path).is_file()
    ]


def _checkpoints(config: Config) -> list[tuple[str, bool]]:
    """What is wrong with the weights of networks that segment, and whether it is an error.

    A file that is not there keeps its cells from running, as missing data do; another file than the one that the
    config names is an error.
    """
    found = []
    for name in sorted({cell.dataset for cell in cells(config)}):
        section = getattr(config.datasets[name], "segmentation", None)
        if not isinstance(section, NetworkSegmentation):
            continue
        place, path = f"datasets.{name}.segmentation.checkpoint", Path(section.checkpoint)
        if not path.is_file():
            found.append((f"{place}: no file at {shown(section.checkpoint)}: {name} can't run without it", False))
            continue
        sha256 = sha256_of(path)
        if section.checkpoint_sha256 is None:
            found.append((f"{place}_sha256: not given; that of {shown(section.checkpoint)} is {sha256}", False))
        elif sha256 != section.checkpoint_sha256:
            why = f"the SHA-256 of {shown(section.checkpoint)} is {sha256}, not {section.checkpoint_sha256}"
            found.append((f"{place}_sha256: {why}: it is another file", True))
    return found


def _comparisons(config: Config) -> list[str]:
    """Comparisons and effects that no evaluation gives anything to compare."""
    warnings = []
    asked: dict[str, set[tuple[str, str]]] = defaultdict(set)
    again: set[str] = set()
    for cell in cells(config):
        asked[cell.setting].add((cell.dataset, cell.model))
        if cell.runs > 1:
            again.add(cell.setting)
    both: dict[str, set[tuple[str, str]]] = {}
    for name, comparison in config.comparisons.items():
        one, two = comparison.settings
        both[name] = asked[one] & asked[two]
        unasked = [setting for setting in (one, two) if not asked[setting]]
        if unasked:
            warnings.append(f"comparisons.{name}: no evaluation asks for {' or '.join(unasked)}: it will be empty")
        elif one == two and one not in again:
            warnings.append(
                f"comparisons.{name}: sets the runs of {one} against each other, and it is run once: it will be empty; "
                "give its evaluation `runs: 2`"
            )
        elif not both[name]:
            warnings.append(
                f"comparisons.{name}: no model is asked both {one} and {two} on the same dataset: it will be empty"
            )
    for name, effect in config.effects.items():
        used = [comparison for _, comparison in effect.terms(config.comparisons, config.effects)]
        if all(both[one] for one in used) and not set.intersection(*(both[one] for one in used)):
            first, second = effect.minus
            warnings.append(f"effects.{name}: {first} and {second} share no model and dataset: it will be empty")
    return warnings


def _floors(config: Config) -> list[str]:
    """Primary swaps of which nothing measures how many answers change when nothing does.

    Following needs no floor, so a verdict of use is open to them; what is said of answers that merely move is not.
    """
    asked: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for cell in cells(config):
        asked[cell.dataset, cell.model][cell.setting] = cell.runs
    without: dict[tuple[str, str], set[str]] = defaultdict(set)
    for (dataset, model), runs in asked.items():
        there = [name for name, one in config.comparisons.items() if set(one.settings) <= set(runs)]
        measured = {config.comparisons[name].settings[0] for name in there if config.comparisons[name].kind}
        different = [name for name in there if len(set(config.comparisons[name].settings)) > 1]
        for name in primary_family(different, config.statistics, config.comparisons, config.settings):
            own = config.comparisons[name].settings[0]
            if is_swap(config.comparisons[name], config.settings) and runs[own] < 2 and own not in measured:
                without[dataset, name].add(model)
    return [
        f"comparisons.{name}: no floor is measured on {dataset} for {some(models, len(models))} (no rerun, no "
        'placebo): answers that move in it without following the image can show no more than "reacts; floor not '
        f'measured"; give the evaluation of {config.comparisons[name].settings[0]} `runs: 2`, '
        "or add a comparison with `kind: placebo`"
        for (dataset, name), models in sorted(without.items())
    ]


def _unpinned(config: Config) -> list[str]:
    """Weights from the hub without a revision may be other weights tomorrow."""
    used = {cell.model for cell in cells(config)}
    for section in config.datasets.values():
        if isinstance(section.questions, GeneratedQuestions):
            used |= {section.questions.author, section.questions.validator}
    unpinned = []
    for name in sorted(used):
        if config.models[name].unpinned:
            unpinned.append(name)
    if not unpinned:
        return []
    files = "these files" if len(unpinned) > 1 else "its file"
    return [
        f"models: no revision is pinned for {', '.join(unpinned)}: the main branch in the hub's cache would be used; "
        f"put `revision: <commit>` into {files}"
    ]
