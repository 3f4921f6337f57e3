"""Why a cell can't run: never (they don't go together) or missing (not on this machine)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from overread.backends.writing import WriterModel
from overread.config import Config, ModelSection, ServerModel
from overread.config.datasets import FileQuestions, GeneratedQuestions
from overread.config.inputs import Setting
from overread.config.kinds import BACKENDS
from overread.core import guard
from overread.core.errors import shown, unknown
from overread.plan.asked import Cell, cells
from overread.trials import REPORTS, own_reports

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
    """A report that no template makes."""
    strange = unknown_report(judge, name)
    return [Obstacle("missing", strange)] if strange is not None else []


def unknown_report(judge: Judge, name: str) -> str | None:
    """What is wrong with a report that no template makes: which there are, and how to add it. None if all is well."""
    report, folder = judge.config.settings[name].report, judge.config.prompts
    there = own_reports(folder) | set(REPORTS)
    if report in there:
        return None
    where = shown(folder) if folder is not None else "a folder that the key 'prompts' names"
    return f"{unknown('report', report, there)}; or put a template report-{report}.j2 into {where}"


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
    section, setting = judge.config.datasets[dataset], judge.config.settings[name]
    view = judge.config.views.get(setting.images)
    words = {"mri": "brain MRI", "xray": "chest X-rays"}
    found: list[Obstacle] = []
    if view is not None and view.modality != section.modality:
        why = f"the view {setting.images} is of {words[view.modality]}, and {dataset} holds {words[section.modality]}"
        found.append(Obstacle("never", why))
    if setting.readout in ("yes-no", "first-token") and section.questions.origin in ("grammar", "generated"):
        why = f"the readout {setting.readout} needs yes/no questions, and those of {dataset} have four options"
        found.append(Obstacle("never", why))
    if setting.substitute > section.substitutes.count:
        there = f"datasets.{dataset}.substitutes.count is {section.substitutes.count}"
        found.append(Obstacle("never", f"it shows substitute {setting.substitute}, and {there}"))
    if setting.report != "none" and not section.has_reports:
        found.append(Obstacle("missing", f"datasets.{dataset} names no {section.reports_are_named_by} to show"))
    return found


def _of_model_and_setting(judge: Judge, model: str, name: str) -> list[Obstacle]:
    """What the model can't take, or can't be read of it."""
    asked, setting = judge.config.models[model], judge.config.settings[name]
    found = _of_images(judge, model, setting)
    if setting.readout == "first-token" and not asked.takes.logprobs:
        found.append(f"{model} gives no log-probabilities, which the readout first-token needs")
    if setting.readout not in asked.readouts:
        if "similarity" in asked.readouts:
            found.append(f"{model} writes no answer: it takes the readout similarity only")
        elif setting.readout == "similarity":
            found.append(f"{model} writes its answers: the readout similarity is for contrastive models")
        else:
            found.append(f"{model} takes the readouts {', '.join(sorted(asked.readouts))} only")
    if not asked.reads_reports and setting.report != "none":
        found.append(f"{model} compares option texts with a picture: a report does not reach it")
    if setting.attention != "none" and not asked.takes.attention:
        found.append(f"a report can't be hidden from the layers of {model}")
    elif setting.attention != "none" and asked.takes.layers is not None:
        mode, _, layer = setting.attention.partition("-")
        # From the layer after the last one hides nothing: the baseline of a sweep.
        if int(layer) > asked.takes.layers - (mode == "only"):
            found.append(f"{model} has {asked.takes.layers} layers (0 to {asked.takes.layers - 1})")
    return [Obstacle("never", why) for why in found]


def _of_images(judge: Judge, model: str, setting: Setting) -> list[str]:
    takes = judge.config.models[model].takes
    view = judge.config.views.get(setting.images)
    if view is None:
        return [] if takes.text_only else [f"{model} takes no question without a picture"]
    if view.is_volume:
        return [] if takes.volumes else [f"{model} takes no volumes"]
    if takes.images == 0:
        return [f"{model} takes no images"]
    if view.pictures > takes.images:
        most = "one image" if takes.images == 1 else f"{takes.images} images"
        return [f"{model} takes {most}, and the view {setting.images} gives up to {view.pictures}"]
    return []
