"""Why a cell can't run: never (they don't go together) or missing (not on this machine)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from overread.backends.writing import WriterModel
from overread.config import Config, ModelSection, ServerModel
from overread.config.datasets import FileQuestions, GeneratedQuestions
from overread.config.kinds import BACKENDS
from overread.core import guard
from overread.core.errors import shown
from overread.plan.asked import Cell, cells
from overread.plan.first_jobs import no_substitute
from overread.settings.base import Misfit
from overread.settings.image import Image

When = Literal["never", "missing"]


@dataclass(frozen=True)
class Obstacle:
    """What stands in a cell's way, in one sentence."""

    when: When
    why: str


def obstacle(config: Config, cell: Cell) -> Obstacle | None:
    """The first thing in the cell's way, never before missing; None if it can run."""
    return next(iter(obstacles(config, cell)), None)


def obstacles(config: Config, cell: Cell) -> list[Obstacle]:
    """All that is in the cell's way, never before missing."""
    return Judge(config).obstacles(cell)


def runnable(config: Config) -> list[Cell]:
    """The cells that can run now: the Snakefile's targets."""
    judge = Judge(config)
    return [cell for cell in cells(config) if not judge.obstacles(cell)]


def not_run(config: Config) -> list[dict[str, str]]:
    """The others, for the report: dataset, model, setting, when, why."""
    judge = Judge(config)
    found = [(cell, judge.obstacles(cell)) for cell in cells(config)]
    return [
        {
            "dataset": cell.dataset,
            "model": cell.model,
            "setting": cell.setting,
            "when": each[0].when,
            "why": each[0].why,
        }
        for cell, each in found
        if each
    ]


class Judge:
    """Judges many cells, looking at each dataset, model and setting once."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._known: dict[tuple[str, ...], list[Obstacle]] = {}

    def obstacles(self, cell: Cell) -> list[Obstacle]:
        dataset, model, setting = cell.name
        found = [
            *self._once(("dataset", dataset), _of_dataset, dataset),
            *self._once(("model", model), _of_model, model),
            *self._once(("setting", setting), _of_setting, setting),
            *self._once(("dataset", dataset, "model", model), _of_dataset_and_model, dataset, model),
            *self._once(("dataset", dataset, "setting", setting), _of_dataset_and_setting, dataset, setting),
            *self._once(("model", model, "setting", setting), _of_model_and_setting, model, setting),
        ]
        order: tuple[When, ...] = ("never", "missing")
        return sorted(dict.fromkeys(found), key=lambda each: order.index(each.when))

    def _once(self, key: tuple[str, ...], judge: Any, *names: str) -> list[Obstacle]:
        if key not in self._known:
            self._known[key] = list(judge(self, *names))
        return self._known[key]


def _of_dataset(judge: Judge, name: str) -> list[Obstacle]:
    """Folders and files that are not there."""
    section = judge.config.datasets[name]
    found: list[Obstacle] = []
    segmentation = getattr(section, "segmentation", None)
    needed: dict[str, str | None] = {**section.places}
    needed["segmentation.checkpoint"] = getattr(segmentation, "checkpoint", None)
    if isinstance(section.questions, FileQuestions):
        needed["questions.path"] = section.questions.path
    for key, path in needed.items():
        if path is not None and not Path(path).exists():
            found.append(Obstacle("missing", f"nothing at {shown(path)} (datasets.{name}.{key})"))
    if isinstance(section.questions, GeneratedQuestions):
        if not section.has_reports:
            found.append(
                Obstacle("missing", f"datasets.{name} names no {section.reports_are_named_by} to write questions from")
            )
        for author in (section.questions.author, section.questions.validator):
            needs = [*_of_dataset_and_model(judge, name, author), *_of_model(judge, author)]
            if not isinstance(judge.config.models[author], WriterModel):
                writers = [name for name, section in BACKENDS.sections.items() if issubclass(section, WriterModel)]
                why = f"questions are written by models of the back ends {' and '.join(writers)} only"
                needs.append(Obstacle("never", why))
            found.extend(Obstacle(each.when, f"{author}, for the questions: {each.why}") for each in needs)
    return found


def _of_model(judge: Judge, name: str) -> list[Obstacle]:
    """Weights and keys that are not there."""
    return [Obstacle("missing", why) for why in judge.config.models[name].lacks(name)]


def _of_setting(judge: Judge, name: str) -> list[Obstacle]:
    """What its aspects miss."""
    return [Obstacle("missing", why) for why in missing_of(judge.config, name).values()]


def missing_of(config: Config, name: str) -> dict[str, str]:
    """What a setting needs that is not there, by aspect."""
    needs = {aspect.name: aspect.missing(config) for aspect in config.settings[name].aspects}
    return {aspect: why for aspect, why in needs.items() if why is not None}


def _of_dataset_and_model(judge: Judge, dataset: str, model: str) -> list[Obstacle]:
    """Restricted data go to loopback or to an attested endpoint only."""
    section, asked = judge.config.datasets[dataset], judge.config.models.get(model)
    if asked is None or not section.restricted:
        return []
    if (why := unguarded(asked, model)) is not None:
        return [Obstacle("never", why)]
    if not isinstance(asked, ServerModel) or guard.is_plainly_loopback(asked.endpoint):
        return []
    if guard.address(asked.endpoint) in {guard.address(each) for each in judge.config.attested_endpoints}:
        return []
    return [Obstacle("missing", f"{dataset} is restricted, and attested_endpoints does not name {asked.endpoint}")]


def unguarded(section: ModelSection, model: str) -> str | None:
    """Why a model gets no restricted trial whatever is attested: nothing says where its trials go."""
    if section.stays_here or isinstance(section, ServerModel):
        return None
    return (
        f"{model} gets no restricted data: its back end {section.backend} says neither that they stay on this machine "
        "nor which server they go to"
    )


def _of_dataset_and_setting(judge: Judge, dataset: str, name: str) -> list[Obstacle]:
    """Views, readouts and reports that the dataset does not have."""
    aspects = judge.config.settings[name].aspects
    found = _told(misfit for aspect in aspects for misfit in aspect.against_dataset(judge.config, dataset))
    if judge.config.settings[name][Image].source == "substitute":
        why = no_substitute(judge.config, dataset)
        found += [Obstacle("never", f"{why}, and {name} shows the image of another")] if why else []
    return found


def _of_model_and_setting(judge: Judge, model: str, name: str) -> list[Obstacle]:
    """What the model can't take, or can't be read of it."""
    aspects = judge.config.settings[name].aspects
    views = [Obstacle("never", why) for why in _of_images(judge, model, name)]
    return views + _told(misfit for aspect in aspects for misfit in aspect.against_model(judge.config, model))


def _told(misfits: Iterable[Misfit]) -> list[Obstacle]:
    return [Obstacle(each.when, each.why) for each in misfits]


def _of_images(judge: Judge, model: str, name: str) -> list[str]:
    takes = judge.config.models[model].takes
    images = judge.config.settings[name][Image].images
    view = judge.config.views.get(images)
    if view is None:
        return [] if takes.text_only else [f"{model} takes no question without a picture"]
    if view.is_volume:
        return [] if takes.volumes else [f"{model} takes no volumes"]
    if takes.images == 0:
        return [f"{model} takes no images"]
    if view.pictures > takes.images:
        most = "one image" if takes.images == 1 else f"{takes.images} images"
        return [f"{model} takes {most}, and the view {images} gives up to {view.pictures}"]
    return []
