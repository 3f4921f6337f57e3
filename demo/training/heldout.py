"""How well the readers read studies that they never saw: through trials, back end and parser, as in any run.

Substitutes are the next study's picture. Flip rates count the pairs whose two truths differ, since only there should a
reader of pictures change its answer.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from demo.training.prompts import DEMO, demo_questions
from PIL import Image

from overread.backends.base import load as load_backend
from overread.backends.transformers.section import TransformersModel
from overread.config import FindingQuestions, GrammarQuestions, Setting, load
from overread.core.records import Picture, Question, Study, Substitute, Trial
from overread.images.render import pixel_hash
from overread.questions import findings
from overread.questions import truth as right_answer
from overread.responses.answering import response
from overread.trials.build import build_trials
from overread.trials.prompt import Prompts
from overread_phantom import grammar, mri, xray

SEED = 5
"""Of the held-out studies."""

READERS = ("tiny-reader", "tiny-blind")

XRAY = {
    "image": {"images": "view", "readout": "yes-no"},
    "image-swapped": {"images": "view", "source": "substitute", "readout": "yes-no"},
    "image-text-first": {"images": "view", "order": "text-first", "readout": "yes-no"},
    "image-first-token": {"images": "view", "readout": "first-token"},
    "black": {"images": "view", "source": "black", "readout": "yes-no"},
    "nothing": {"readout": "yes-no"},
    "report": {"report": "full", "readout": "yes-no"},
    "report-and-image": {"images": "view", "report": "full", "readout": "yes-no"},
    "report-and-image-swapped": {"images": "view", "source": "substitute", "report": "full", "readout": "yes-no"},
    "report-first-token": {"images": "view", "report": "full", "readout": "first-token"},
}
MRI = {
    "image": {"images": "view"},
    "image-shuffled": {"images": "view", "options": "shuffled"},
    "image-shuffled-text-first": {"images": "view", "options": "shuffled", "order": "text-first"},
    "image-swapped": {"images": "view", "source": "substitute"},
    "black": {"images": "view", "source": "black"},
    "black-shuffled": {"images": "view", "source": "black", "options": "shuffled"},
    "nothing-shuffled": {"options": "shuffled"},
}

Figures = dict[str, dict[str, float]]


class Sample:
    """Held-out studies of one modality in a folder: their pictures, questions and partners."""

    def __init__(self, kind: str, folder: Path, count: int, seed: int = SEED) -> None:
        self.folder, self.settings = folder, XRAY if kind == "xray" else MRI
        self.section = demo_questions(load(DEMO)) if kind == "xray" else GrammarQuestions(origin="grammar")
        make = self._xray if kind == "xray" else self._mri
        drawn = [make(seed, index) for index in range(count)]
        self.studies = [study for study, _, _ in drawn]
        self.pictures = [self._shown(study.study, picture) for study, picture, _ in drawn]
        if isinstance(self.section, FindingQuestions):
            self.questions = findings.build(self.section, self.studies)[0]
        else:
            self.questions = [question for _, _, asked in drawn for question in asked]
        names = [study.study for study in self.studies]
        self.substitutes = [
            Substitute(study=own, patient=own, substitute=other, substitute_patient=other, why="the next")
            for own, other in zip(names, names[1:] + names[:1], strict=True)
        ]

    def trials(self, setting: str) -> list[Trial]:
        return build_trials(
            self.questions,
            self.studies,
            self.pictures,
            self.substitutes,
            setting=Setting(**self.settings[setting]),
            name=setting,
            run=1,
            truth=lambda study, topic: right_answer(self.section, study, topic),
            prompts=Prompts(),
            seed=0,
        )[0]

    def _xray(self, seed: int, index: int) -> tuple[Study, Image.Image, list[Question]]:
        planted = xray.draw_study(seed, index)
        words = {1: "positive", 0: "negative", -1: "uncertain"}
        labels = {finding: words[label] for finding, label in planted.labels.items()}
        return self._study(f"x{index}", "xray", planted.report, labels), xray.radiograph(planted, 512), []

    def _mri(self, seed: int, index: int) -> tuple[Study, Image.Image, list[Question]]:
        planted = mri.draw_study(seed, index)
        written = grammar.report(planted)
        study = self._study(planted.study, "mri", written.sections, grammar.labels(planted.facts))
        return study, mri.flair_picture(planted), grammar.questions(planted, written)

    def _study(self, name: str, modality: Any, report: dict[str, str], labels: dict[str, str]) -> Study:
        return Study(
            study=name, patient=name, dataset="held-out", modality=modality, images={}, report=report, labels=labels,
            restricted=False, semi_synthetic=True,
        )  # fmt: skip

    def _shown(self, study: str, picture: Image.Image) -> Picture:
        path = self.folder / f"{study}.png"
        picture.save(path)
        black = self.folder / "images" / "black" / f"{picture.width}x{picture.height}.png"
        if not black.is_file():
            black.parent.mkdir(parents=True, exist_ok=True)
            Image.new("L", picture.size).save(black)
        return Picture(
            study=study, view="view", order=0, name="picture", path=path.name, pixels=pixel_hash(picture),
            width=picture.width, height=picture.height, series="s",
        )  # fmt: skip


def figures(weights: Path, sample: Sample, settings: Iterable[str] | None = None) -> Figures:
    """A reader's figures by setting, for the named settings or all.

    Questions, accuracy, and the shares unparsed and of the first option; for yes and no the balanced accuracy, for four
    options the accuracy by topic; for a swapped picture the flip rates.
    """
    model = TransformersModel(
        label="r", backend="transformers", weights=str(weights.resolve()), dtype="float32", batch=64
    )
    back_end = load_backend(
        model.model_copy(update={"decoding": model.decoding.model_copy(update={"max_tokens": 4})}), "r"
    )
    found: Figures = {}
    chosen: dict[str, list[int | None]] = {}
    changed: dict[str, np.ndarray[Any, Any]] = {}
    for setting in sample.settings if settings is None else settings:
        trials = sample.trials(setting)
        answers = [
            response(str(number), trial, "r", answer)
            for number, (trial, answer) in enumerate(zip(trials, back_end.answer(trials, sample.folder), strict=True))
        ]
        right = np.array([each.answer == trial.answer for each, trial in zip(answers, trials, strict=True)])
        found[setting] = {"questions": len(trials), "accuracy": float(right.mean())}
        found[setting]["unparsed"] = float(np.mean([each.status != "answered" for each in answers]))
        if trials[0].options == ("yes", "no"):
            yes = np.array([trial.label == "yes" for trial in trials])
            found[setting]["balanced_accuracy"] = float((right[yes].mean() + right[~yes].mean()) / 2)
        else:
            for topic in sorted({trial.topic for trial in trials}):
                found[setting][topic] = float(right[[trial.topic == topic for trial in trials]].mean())
        found[setting]["first_option"] = float(np.mean([each.answer == 0 for each in answers]))
        chosen[setting] = [each.choice for each in answers]
        changed[setting] = np.array([trial.label != trial.image_label for trial in trials])
    for own, swapped in (("image", "image-swapped"), ("report-and-image", "report-and-image-swapped")):
        if own in chosen and swapped in chosen:
            flips = np.array([a != b for a, b in zip(chosen[own], chosen[swapped], strict=True)])
            found[swapped]["flips_where_truth_differs"] = float(flips[changed[swapped]].mean())
            found[swapped]["flips"] = float(flips.mean())
    return found


def write(out: Path, say: Callable[[str], None], *, xrays: int = 60, mris: int = 120) -> None:
    """Measures the readers in `out` and writes `heldout.json` there."""
    measured: dict[str, dict[str, Figures]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind, count in (("xray", xrays), ("mri", mris)):
            place = Path(folder, kind)
            place.mkdir()
            sample = Sample(kind, place, count)
            for reader in READERS:
                measured.setdefault(reader, {})[kind] = figures(out / reader, sample)
    for reader, kinds in measured.items():
        for kind, settings in kinds.items():
            for setting, values in settings.items():
                shown = ", ".join(f"{name} {value:.3f}" for name, value in values.items() if name != "questions")
                say(f"{reader}, {kind}, {setting}: {shown}")
    rounded = {
        reader: {
            kind: {
                setting: {name: round(value, 4) for name, value in values.items()}
                for setting, values in settings.items()
            }
            for kind, settings in kinds.items()
        }
        for reader, kinds in measured.items()
    }
    content = {"seed": SEED, "studies": {"xray": xrays, "mri": mris}, "figures": rounded}
    (out / "heldout.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    readme = out / "README.md"
    if readme.is_file():
        head, _, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
        readme.write_text(
            f"{head}{BEGIN}\n{table(measured, xrays, mris)}{END}{rest.partition(END)[2]}", encoding="utf-8"
        )


BEGIN, END = "<!-- held-out: written by the training script -->", "<!-- /held-out -->"

ROWS = (
    ("chest X-ray, picture alone: balanced accuracy", "xray", "image", "balanced_accuracy"),
    ("the same, text before picture", "xray", "image-text-first", "balanced_accuracy"),
    ("the same, first-token readout", "xray", "image-first-token", "balanced_accuracy"),
    ("chest X-ray, report alone: balanced accuracy", "xray", "report", "balanced_accuracy"),
    ("chest X-ray, both: balanced accuracy", "xray", "report-and-image", "balanced_accuracy"),
    ("chest X-ray, black picture: balanced accuracy", "xray", "black", "balanced_accuracy"),
    ("chest X-ray, nothing: balanced accuracy", "xray", "nothing", "balanced_accuracy"),
    ("flips when swapped, without report", "xray", "image-swapped", "flips_where_truth_differs"),
    ("flips when swapped, with report", "xray", "report-and-image-swapped", "flips_where_truth_differs"),
    ("brain MRI, options as written: accuracy", "mri", "image", "accuracy"),
    ("brain MRI, options shuffled: accuracy", "mri", "image-shuffled", "accuracy"),
    ("of these: location", "mri", "image-shuffled", "location"),
    ("of these: size", "mri", "image-shuffled", "size"),
    ("of these: oedema", "mri", "image-shuffled", "oedema"),
    ("brain MRI, black picture, options shuffled: accuracy", "mri", "black-shuffled", "accuracy"),
)


def table(measured: dict[str, dict[str, Figures]], xrays: int, mris: int) -> str:
    """The main figures in Markdown."""
    lines = [f"| {xrays} chest X-rays, {mris} brain MRI | {' | '.join(READERS)} |", "|---|" + "---|" * len(READERS)]
    for name, kind, setting, figure in ROWS:
        shown = " | ".join(f"{measured[reader][kind][setting][figure]:.2f}" for reader in READERS)
        lines.append(f"| {name} | {shown} |")
    return "\n".join(lines) + "\n"
