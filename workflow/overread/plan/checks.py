"""What must be mended before the first job, and what a person should know: one line each, with the key it is about."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from overread.config import Config, GeneratedQuestions, WeightsModel, is_folder
from overread.config.datasets import Folder
from overread.plan.asked import Cell, cells, cells_of
from overread.plan.judging import Judge, Obstacle, shown

STUDIES = {
    "ucsf-pdgm": ("*_nifti", "*/*_nifti"),
    "mimic-cxr": ("files/p*/p*/s*/*.jpg", "p*/p*/s*/*.jpg"),
    "open-i": ("ecgen-radiology/*.xml", "*/ecgen-radiology/*.xml"),
    "chexpert-plus": ("df_chexpert_plus_*.csv",),
}
"""By source: where studies lie in a data set's root. The first pattern is the layout as distributed."""


def check(config: Config) -> tuple[list[str], list[str]]:
    """Errors, which stop the study before any job, and warnings. Each line names a key, and says what to do."""
    judge = Judge(config)
    errors = _empty_folders(config)
    warnings: list[str] = []
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
        if not isinstance(section, Folder) or not Path(section.root).exists():
            continue
        patterns = STUDIES[section.source]
        if not any(next(Path(section.root).glob(pattern), None) for pattern in patterns):
            errors.append(
                f"datasets.{name}.root: {shown(section.root)} holds no study: looked for {' or '.join(patterns)}; "
                f"give the folder that holds them"
            )
    return errors


def _comparisons(config: Config) -> list[str]:
    """Comparisons and effects that no evaluation gives anything to compare."""
    warnings = []
    asked: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for cell in cells(config):
        asked[cell.setting].add((cell.dataset, cell.model))
    both: dict[str, set[tuple[str, str]]] = {}
    for name, comparison in config.comparisons.items():
        one, two = comparison.settings
        both[name] = asked[one] & asked[two]
        unasked = [setting for setting in (one, two) if not asked[setting]]
        if unasked:
            warnings.append(f"comparisons.{name}: no evaluation asks for {' or '.join(unasked)}: it will be empty")
        elif not both[name]:
            warnings.append(
                f"comparisons.{name}: no model is asked both {one} and {two} on the same dataset: it will be empty"
            )
    for name, effect in config.effects.items():
        first, second = effect.minus
        if both[first] and both[second] and not both[first] & both[second]:
            warnings.append(f"effects.{name}: {first} and {second} share no model and dataset: it will be empty")
    return warnings


def _unpinned(config: Config) -> list[str]:
    """Weights from the hub without a revision may be other weights tomorrow."""
    used = {cell.model for cell in cells(config)}
    for section in config.datasets.values():
        if isinstance(section.questions, GeneratedQuestions):
            used |= {section.questions.author, section.questions.validator}
    unpinned = []
    for name in sorted(used):
        model = config.models[name]
        if isinstance(model, WeightsModel) and not is_folder(model.weights) and model.revision is None:
            unpinned.append(name)
    if not unpinned:
        return []
    files = "these files" if len(unpinned) > 1 else "its file"
    return [
        f"models: no revision is pinned for {', '.join(unpinned)}: the hub's newest weights would be used; "
        f"put `revision: <commit>` into {files}"
    ]
