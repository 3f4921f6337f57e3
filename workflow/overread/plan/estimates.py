"""How much a study asks for: requests, images, tokens and jobs of each cell.

The sizes are counted in the results folder where the studies and questions are there; else they are what the papers
published for their data sets, else what the config says. Tokens are rough and say so.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from overread.config import Config, DatasetSection, FindingQuestions
from overread.core.inputs import regular
from overread.core.records import OtherColumns
from overread.plan.asked import Cell, cells
from overread.plan.judging import Judge, Obstacle
from overread.settings.image import Image
from overread.settings.report import Report

Basis = Literal["counted", "published", "from the config", "unknown"]

# Assumptions where no file says better. English radiology text has about 1.3 tokens a word and 4 characters a token.
CHARACTERS_A_TOKEN = 4
INSTRUCTION_TOKENS = 40
XRAY_QUESTION_TOKENS = 25
XRAY_REPORT_TOKENS = 120
MRI_QUESTION_TOKENS = 244
"""188.07 words a question with its options (UCSF-PDGM-VQA, Table 3), at 1.3 tokens a word."""
MRI_REPORT_TOKENS = 450

ASSUMED = (
    f"Tokens are rough: {CHARACTERS_A_TOKEN} characters a token where the texts are there; else {MRI_QUESTION_TOKENS} "
    f"tokens a question and {MRI_REPORT_TOKENS} a report (MRI), {XRAY_QUESTION_TOKENS} and {XRAY_REPORT_TOKENS} "
    f"(X-ray); {INSTRUCTION_TOKENS} for the instruction; images as the model file's takes.image_tokens says "
    "(+: not known, not counted). Tokens that prompts share are counted each time."
)


@dataclass(frozen=True)
class Size:
    """How large a dataset is. Tokens are means for a question and a report; `pictures` is by view, a study's mean."""

    studies: int | None
    patients: int | None
    questions: int | None
    basis: Basis
    question_tokens: float
    report_tokens: float
    asked_studies: int | None = None
    pictures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class CellLoad:
    """What one cell asks for, over all its runs. None where the dataset's size or an image's tokens are not known."""

    cell: Cell
    obstacles: tuple[Obstacle, ...]
    requests: int | None
    images: int | None
    text_tokens: int | None
    image_tokens: int | None
    jobs: int
    gpu_jobs: int
    gpu_hours: float
    answered_jobs: int

    @property
    def prompt_tokens(self) -> int | None:
        if self.text_tokens is None or self.image_tokens is None:
            return None
        return self.text_tokens + self.image_tokens


@dataclass(frozen=True)
class Estimate:
    """The whole study: dataset sizes, and a load for each cell asked for, also for those that can't run."""

    sizes: dict[str, Size]
    loads: tuple[CellLoad, ...]


def estimate(config: Config, results: Path | None) -> Estimate:
    """How much each cell asks for.

    results   the folder of this study's results (`results/<name>`), or None to go by the config alone
    """
    asked = cells(config)
    named = {cell.dataset for cell in asked}
    sizes = {
        name: size_of(section, results / name if results else None)
        for name, section in config.datasets.items()
        if name in named
    }
    judge = Judge(config)
    return Estimate(sizes, tuple(_load(config, cell, sizes[cell.dataset], judge, results) for cell in asked))


@dataclass(frozen=True)
class Grouping:
    """What the choice of `responses.group` comes to, over the cells that can ever run.

    jobs           that ask models
    loading_hours  GPU-hours that go into loading weights, by the model files' `resources.loading`
    """

    jobs: int
    loading_hours: float


def groupings(config: Config, whole: Estimate) -> dict[str, Grouping]:
    """Each choice of `responses.group` and what it comes to."""
    asked = [load.cell for load in whole.loads if not any(one.when == "never" for one in load.obstacles)]
    found = {}
    for group in ("run", "setting", "model"):
        jobs: dict[tuple[str, ...], str] = {}
        for cell in asked:
            for run in range(1, cell.runs + 1):
                parts = {"run": (cell.setting, str(run)), "setting": (cell.setting,), "model": ()}[group]
                jobs[(cell.dataset, cell.model, *parts)] = cell.model
        needs = [config.models[model].resources for model in jobs.values()]
        found[group] = Grouping(len(jobs), sum(each.gpu * each.loading for each in needs) / 60)
    return found


@dataclass(frozen=True)
class Segmenting:
    """What making the masks of a dataset comes to, in GPU-hours at most. None where its size is not known."""

    dataset: str
    method: str
    brain: str
    studies: int | None
    gpu_hours: float | None


def segmentings(config: Config, whole: Estimate) -> list[Segmenting]:
    """Of each dataset that is asked about and whose masks are made, not taken as they come."""
    found = []
    for name, size in whole.sizes.items():
        section = getattr(config.datasets[name], "segmentation", None)
        if section is None or not section.makes_masks:
            continue
        needs = section.resources
        hours = None if size.studies is None else size.studies * needs.gpu * needs.runtime / 60
        found.append(Segmenting(name, section.method, section.brain, size.studies, hours))
    return found


def size_of(section: DatasetSection, folder: Path | None) -> Size:
    """A dataset's size: counted in its results folder, else published, else from the config, else unknown."""
    if folder is not None and (folder / "studies.parquet").exists() and (folder / "questions.jsonl").exists():
        with suppress(OtherColumns):  # an older version's files: the workflow writes them anew
            return _counted(folder)
    mri = section.modality == "mri"
    question, report = (MRI_QUESTION_TOKENS, MRI_REPORT_TOKENS) if mri else (XRAY_QUESTION_TOKENS, XRAY_REPORT_TOKENS)
    a_study: int | None = None
    if isinstance(section.questions, FindingQuestions):
        a_study = len(section.questions.findings) + bool(section.questions.composite)
    expected = section.expected(a_study)
    if expected is not None:
        return Size(*expected, question, report)
    return Size(None, None, None, "unknown", question, report)


def _counted(folder: Path) -> Size:
    from overread.core.records import Picture, read_columns, read_studies

    studies = read_studies(folder / "studies.parquet")
    asked: set[str] = set()
    questions = characters = 0
    with regular(folder / "questions.jsonl").open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                row = json.loads(line)
                asked.add(row["study"])
                questions += 1
                characters += len(row["stem"]) + sum(len(option) + 4 for option in row["options"])
    reports = sum(len(text) for study in studies for text in study.report.values())
    pictures: dict[str, float] = {}
    if (folder / "images.parquet").exists():
        table = read_columns(folder / "images.parquet", Picture, ["study", "view"]).to_pylist()
        for view in {row["view"] for row in table}:
            shown = [row["study"] for row in table if row["view"] == view]
            pictures[view] = len(shown) / len(set(shown))
    return Size(
        studies=len(studies),
        patients=len({study.patient for study in studies}),
        questions=questions,
        basis="counted",
        question_tokens=characters / max(questions, 1) / CHARACTERS_A_TOKEN,
        report_tokens=reports / max(len(studies), 1) / CHARACTERS_A_TOKEN,
        asked_studies=len(asked),
        pictures=pictures,
    )


def _load(config: Config, cell: Cell, size: Size, judge: Judge, results: Path | None) -> CellLoad:
    setting, model = config.settings[cell.setting], config.models[cell.model]
    asked = size.asked_studies if size.asked_studies is not None else size.studies
    once = setting.requests(size.questions, asked)
    image = setting[Image].images
    requests = None if once is None else once * cell.runs
    view = config.views.get(image)
    shown: float = 0 if view is None else size.pictures.get(setting.view(image), view.pictures)
    reads = not model.told_the_truth  # such a reader reads no tokens
    a_text = size.question_tokens + INSTRUCTION_TOKENS + (size.report_tokens if setting[Report].shown else 0)
    an_image = model.takes.image_tokens if shown and reads else 0
    folder = results / cell.dataset / "responses" / cell.model / cell.setting if results else None
    answered = sum((folder / f"run-{run}.parquet").exists() for run in range(1, cell.runs + 1)) if folder else 0
    on_gpu = model.resources.gpu > 0
    return CellLoad(
        cell=cell,
        obstacles=tuple(judge.obstacles(cell)),
        requests=requests,
        images=None if requests is None else round(requests * shown),
        text_tokens=None if requests is None else round(requests * a_text * reads),
        image_tokens=None if requests is None or an_image is None else round(requests * shown * an_image),
        jobs=cell.runs,
        gpu_jobs=cell.runs if on_gpu else 0,
        gpu_hours=cell.runs * model.resources.gpu * model.resources.runtime / 60,
        answered_jobs=answered,
    )
