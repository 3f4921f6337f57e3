"""A small results folder for tests: every file of a run up to the responses, made in memory by seed.

Two datasets, `mri` (four options) and `xray` (yes or no, with reports); three models, one of which gives no
log-probabilities; twenty-five settings. Real PNGs, real (tiny) NIfTI files, and every record is written by `records`.

    spec = make_results(tmp_path / "results" / "small")     # what `overread tables report` is given
    tables_spec(spec)                                       # its part that `overread tables make` is given
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from overread.backends.calibrated.section import CalibratedModel
from overread.config import Comparison, Effect, Setting, Statistics
from overread.core.records import (
    Block,
    Picture,
    Question,
    Response,
    Study,
    Substitute,
    Trial,
    content_hash,
    request_key,
    write_pictures,
    write_questions,
    write_responses,
    write_studies,
    write_substitutes,
    write_trials,
)
from overread.edits.shared.controls import ORIGIN
from overread.settings.image import Image as ImageAspect
from overread_phantom.source import Phantom

VIEWS = {"mri": "flair-axial", "xray": "frontal"}
RUNS = {"mri": 2, "xray": 1}
PATIENTS = {"mri": (1, 1, 1, 1, 2, 2), "xray": (1, 1, 2, 2, 3, 3, 2, 1)}
"""How many studies each patient has."""

LOCATIONS = ("left frontal lobe", "right frontal lobe", "left temporal lobe", "right parietal lobe")
SIZES = ("under 2 cm", "2 to 4 cm", "4 to 6 cm", "over 6 cm")
ENHANCEMENT = ("ring-shaped", "solid", "patchy", "none")
STEMS = {
    "location": ("Where does the mass lie?", LOCATIONS),
    "size": ("How large is the mass across its axial plane?", SIZES),
    "enhancement": ("How does the mass enhance?", ENHANCEMENT),
}
FINDINGS = ("Cardiomegaly", "Pleural Effusion", "Pneumonia")
COMPOSITE = "Any acute finding"

SETTINGS = {
    "mri": {
        "single-slice": {"images": "flair-axial", "readout": "choice"},
        "black": {"images": "flair-axial", "readout": "choice", "source": "black"},
        "swapped": {"images": "flair-axial", "readout": "choice", "source": "substitute"},
        "reshuffled": {"images": "flair-axial", "readout": "choice", "options": "shuffled"},
        "text-only": {"readout": "choice"},
        "erased": {"images": "flair-axial", "readout": "choice", "edit": {"kind": "erase"}},
        "erased-elsewhere": {"images": "flair-axial", "readout": "choice", "edit": {"kind": "erase-control"}},
        "mirrored": {"images": "flair-axial", "readout": "choice", "edit": {"kind": "mirror"}},
        "marks": {"images": "flair-axial", "readout": "choice", "edit": {"kind": "mark", "drawn": "at-random"}},
        **{
            f"blurred-{dose}": {"images": "flair-axial", "readout": "choice", "edit": {"kind": "blur", "mm": dose}}
            for dose in (1, 2)
        },
        **{
            f"covered-{cell}": {
                "images": "flair-axial",
                "readout": "choice",
                "edit": {"kind": "occlude", "grid": 2, "cell": cell},
            }
            for cell in range(4)
        },
    },
    "xray": {
        "xray-report": {"images": "frontal", "report": "full", "readout": "yes-no"},
        "xray-report-swapped": {"images": "frontal", "report": "full", "readout": "yes-no", "source": "substitute"},
        "xray": {"images": "frontal", "readout": "yes-no"},
        "xray-swapped": {"images": "frontal", "readout": "yes-no", "source": "substitute"},
        "xray-black": {"images": "frontal", "readout": "yes-no", "source": "black"},
        "report-only": {"report": "full", "readout": "yes-no"},
        **{
            f"hidden-from-{layer}{end}": {
                "images": "frontal",
                "report": "full",
                "readout": "yes-no",
                "attention": f"from-{layer}",
                "source": source,
            }
            for layer in (0, 8)
            for end, source in (("", "own"), ("-swapped", "substitute"))
        },
    },
}
HIDES_UP_TO = 4
"""Hiding the report from a later layer on changes nothing."""
MODELS = {
    "blind-reader": {"label": "Blind reader", "reliance": {"report": 0.8, "unparsed": 0.03}},
    "first-option": {"label": "First option", "reliance": {"first_option": 1.0}, "takes": {"logprobs": False}},
    "reader": {"label": "Reader, image 80 %", "reliance": {"image": 0.8, "report": 0.7, "unparsed": 0.03}},
}
COMPARISONS = {
    "image-swap": {"flips": ["single-slice", "swapped"]},
    "image-gain": {"accuracy": ["single-slice", "black"]},
    "order-cost": {"accuracy": ["single-slice", "reshuffled"]},
    "swap-with-report": {"flips": ["xray-report", "xray-report-swapped"]},
    "swap-without-report": {"flips": ["xray", "xray-swapped"]},
    "image-gain-without-report": {"accuracy": ["xray", "xray-black"]},
    "image-gain-with-report": {"accuracy": ["xray-report", "report-only"]},
    "hiding-from-0": {"flips": ["hidden-from-0", "hidden-from-0-swapped"]},
    "hiding-from-8": {"flips": ["hidden-from-8", "hidden-from-8-swapped"]},
    "noise": {"flips": ["single-slice", "single-slice"]},
}
EFFECTS = {
    "report-effect": {"minus": ["swap-without-report", "swap-with-report"]},
    "hiding-effect": {"minus": ["hiding-from-0", "swap-with-report"]},
    "left-of-the-effect": {"minus": ["report-effect", "hiding-effect"]},
}


def make_results(folder: Path, *, restricted: Collection[str] = (), draws: int = 1000) -> dict[str, Any]:
    """Fill `folder` with a run's files up to the responses.

    restricted  datasets whose studies are marked restricted
    returns     the spec of `overread tables report`; all of it is JSON
    """
    for dataset in SETTINGS:
        _make_dataset(folder / dataset, dataset, dataset in restricted)
    cells = [
        {"dataset": dataset, "model": model, "setting": setting, "runs": RUNS[dataset]}
        for dataset, settings in SETTINGS.items()
        for model in MODELS
        for setting in settings
        if (model, setting) != ("first-option", "text-only")
    ]
    settings = {name: one for each in SETTINGS.values() for name, one in each.items()}
    spec: dict[str, Any] = {
        "name": folder.name,
        "title": "A small made study",
        "cells": cells,
        "settings": {name: Setting.model_validate(one).model_dump(mode="json") for name, one in settings.items()},
        "comparisons": {n: Comparison.model_validate(one).model_dump(mode="json") for n, one in COMPARISONS.items()},
        "effects": {name: Effect.model_validate(one).model_dump(mode="json") for name, one in EFFECTS.items()},
        "statistics": Statistics(draws=draws).model_dump(mode="json"),
        "models": {name: _model(name).model_dump(mode="json") for name in MODELS},
        "datasets": {name: _section(name, name in restricted).model_dump(mode="json") for name in SETTINGS},
        "not_run": [
            {"dataset": "mri", "model": "first-option", "setting": "text-only", "when": "never", "why": "left out here"}
        ],
    }
    return {**spec, "config_hash": content_hash(spec)}


def tables_spec(spec: dict[str, Any]) -> dict[str, Any]:
    """The part of a report's spec that `overread tables make` is given."""
    return {key: spec[key] for key in ("cells", "settings", "comparisons", "effects", "statistics")}


def _section(dataset: str, restricted: bool) -> Phantom:
    size = {"studies": sum(PATIENTS["mri"])} if dataset == "mri" else {"patients": len(PATIENTS["xray"])}
    origin = {"mri": "grammar", "xray": "findings"}[dataset]
    return Phantom.model_validate(
        {"source": "phantom", "modality": dataset, "questions": {"origin": origin}, "restricted": restricted, **size}
    )


def _model(name: str) -> CalibratedModel:
    return CalibratedModel.model_validate({"backend": "calibrated", **MODELS[name]})


def _seeded(*content: object) -> np.random.Generator:
    return np.random.default_rng(int(content_hash(list(content)), 16))


def _make_dataset(folder: Path, dataset: str, restricted: bool) -> None:
    studies = _studies(folder, dataset, restricted)
    pictures = {study.study: _picture(folder, dataset, study) for study in studies}
    black = _save(Image.new("L", (64, 64)), folder, "images/black/64x64.png")
    questions = [question for study in studies for question in _questions(dataset, study)]
    substitutes = _substitutes(studies)
    broken = Study(
        study=f"{dataset}-broken", patient="p99", dataset=dataset, modality=studies[0].modality, images={}, report={},
        labels={}, restricted=restricted, semi_synthetic=True, problem="the file is cut short",
    )  # fmt: skip
    write_studies([*studies, broken], folder / "studies.parquet")
    write_pictures([*pictures.values(), *_covered(folder, pictures, SETTINGS[dataset])], folder / "images.parquet")
    write_questions(questions, folder / "questions.jsonl")
    write_substitutes(substitutes.values(), folder / "substitutes.csv")
    rejected = f"study,patient,stage,reason\n{broken.study},{broken.patient},studies,{broken.problem}\n"
    (folder / "studies_rejected.csv").write_text(rejected, encoding="utf-8")
    by_name = {study.study: study for study in studies}
    for name, written in SETTINGS[dataset].items():
        setting = Setting.model_validate(written)
        for run in range(1, RUNS[dataset] + 1):
            trials = []
            for question in setting.ask(questions, 0):
                study = by_name[question.study]
                shown = by_name[substitutes[study.study].substitute] if setting.source == "substitute" else study
                picture = {
                    "own": pictures[shown.study].path,
                    "substitute": pictures[shown.study].path,
                    "black": black[0],
                }
                pixels = {
                    "own": pictures[shown.study].pixels,
                    "substitute": pictures[shown.study].pixels,
                    "black": black[1],
                }
                image = Block(role="image", image=picture[setting.source], pixels=pixels[setting.source])
                trials.append(_trial(dataset, name, setting, run, question, study, shown, image))
            path = folder / "trials" / name / f"run-{run}.parquet"
            write_trials(trials, path)
            trials.sort(key=lambda trial: (trial.study, trial.question))
            for model in MODELS:
                answers = [_answer(model, trial) for trial in trials]
                write_responses(answers, folder / "responses" / model / name / f"run-{run}.parquet")


def _covered(folder: Path, pictures: dict[str, Picture], settings: dict[str, dict[str, Any]]) -> list[Picture]:
    """The records of pictures of which a cell is covered, with the share of the lesion that it hides."""
    made = []
    for place, picture in enumerate(pictures.values()):
        for written in settings.values():
            edit = written.get("edit") or {}
            if edit.get("kind") == "occlude":
                setting = Setting.model_validate(written)
                hides = {place % 4: 0.75, (place + 1) % 4: 0.25}.get(edit["cell"], 0.0)
                view = setting.view(setting[ImageAspect].images)
                path = picture.path.replace(picture.view, view)
                shutil.copy(folder / picture.path, folder / path)
                changes = {"view": view, "path": path, "edit": json.dumps([edit]), "hides": hides}
                made.append(picture.model_copy(update=changes))
    return made


def _studies(folder: Path, dataset: str, restricted: bool) -> list[Study]:
    studies = []
    for number, size in enumerate(PATIENTS[dataset], start=1):
        for visit in range(1, size + 1):
            name, patient = f"{dataset}-{number:02d}-{visit}", f"p{number:02d}"
            draw = _seeded("study", name)
            if dataset == "mri":
                labels = {topic: str(draw.choice(options)) for topic, (_, options) in STEMS.items()}
                told = (labels["size"], labels["location"], labels["enhancement"])
                report = {"findings": "Mass of {} in the {}; enhancement: {}.".format(*told)}
                images = {
                    series: _nifti(folder / "source" / name / f"{series}.nii", series) for series in ("FLAIR", "T1")
                }
            else:
                labels = {finding: ("negative", "positive")[int(draw.random() < 0.4)] for finding in FINDINGS}
                told = tuple(f"{finding}: {labels[finding]}." for finding in FINDINGS)
                report = {"findings": " ".join(told), "impression": "As above."}
                images = {"frontal": str(folder / "images" / name / "pictures" / "frontal-0.png")}
            study = Study(
                study=name, patient=patient, dataset=dataset, modality="mri" if dataset == "mri" else "xray",
                images=images, report=report, labels=labels, restricted=restricted, semi_synthetic=True,
            )  # fmt: skip
            studies.append(study)
    return studies


def _nifti(path: Path, series: str) -> str:
    """A volume of 8 x 8 x 12 (FLAIR) or 8 x 8 x 10 (T1) voxels of 1 mm."""
    import nibabel

    path.parent.mkdir(parents=True, exist_ok=True)
    depth = {"FLAIR": 12, "T1": 10}[series]
    nibabel.save(nibabel.Nifti1Image(np.zeros((8, 8, depth), np.int16), np.eye(4)), path)
    return str(path)


def _save(image: Image.Image, folder: Path, path: str) -> tuple[str, str]:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    image.save(folder / path, compress_level=6)
    start = f"{image.mode}:{image.width}x{image.height}:".encode()
    return path, hashlib.sha256(start + image.tobytes()).hexdigest()


def _picture(folder: Path, dataset: str, study: Study) -> Picture:
    """A grey disc on noise, at another place in every study."""
    draw = _seeded("picture", study.study)
    x, y, radius = draw.integers(20, 44), draw.integers(20, 44), draw.integers(6, 14)
    rows, columns = np.mgrid[:64, :64]
    grey = draw.integers(20, 60, (64, 64)) + 150 * ((rows - y) ** 2 + (columns - x) ** 2 < radius**2)
    view = VIEWS[dataset]
    path, pixels = _save(Image.fromarray(grey.astype(np.uint8)), folder, f"images/{study.study}/pictures/{view}-0.png")
    mri = dataset == "mri"
    picture = Picture(
        study=study.study, view=view, order=0, name="FLAIR, axial" if mri else "Chest X-ray, frontal", path=path,
        pixels=pixels, width=64, height=64, series="FLAIR" if mri else "frontal", plane="axial" if mri else None,
        slice_index=6 if mri else None, position_mm=6.0 if mri else None, chosen_by="largest-tumour" if mri else None,
    )  # fmt: skip
    listing = {"study": study.study, "problem": None, "pictures": [picture.model_dump()]}
    (folder / "images" / study.study / "views.json").write_text(json.dumps(listing), encoding="utf-8")
    return picture


def _questions(dataset: str, study: Study) -> list[Question]:
    shared = {"study": study.study, "patient": study.patient}
    if dataset == "xray":
        return [
            Question(stem=f"Is there {topic}?", options=("yes", "no"), answer=_truth(study, topic), topic=topic,
                     origin="findings", **shared)
            for topic in (*FINDINGS, COMPOSITE)
        ]  # fmt: skip
    questions = []
    for topic, (stem, options) in STEMS.items():
        others = [option for option in options if option != study.labels[topic]]
        place = int(_seeded("place", study.study, topic).random() > 0.7)
        written = (*others[:place], study.labels[topic], *others[place:])
        questions.append(
            Question(stem=stem, options=written, answer=study.labels[topic], topic=topic, origin="grammar", **shared)
        )
    return questions


def _truth(study: Study, topic: str) -> str:
    """The correct option's text in this study; of a mark, what the picture shows."""
    if study.modality == "mri":
        return study.labels[topic]
    names = ("Pleural Effusion", "Pneumonia") if topic == COMPOSITE else (topic,)
    return "yes" if any(study.labels[name] == "positive" for name in names) else "no"


def _substitutes(studies: list[Study]) -> dict[str, Substitute]:
    """The next study of the same patient where there is one, else the next study of all."""
    chosen = {}
    for place, study in enumerate(studies):
        own = [one for one in studies if one.patient == study.patient]
        other = own[(own.index(study) + 1) % len(own)] if len(own) > 1 else studies[(place + 1) % len(studies)]
        chosen[study.study] = Substitute(
            study=study.study, patient=study.patient, substitute=other.study, substitute_patient=other.patient,
            why="next of the patient" if len(own) > 1 else "next of another patient",
        )  # fmt: skip
    return chosen


def _trial(
    dataset: str, name: str, setting: Setting, run: int, question: Question, study: Study, shown: Study, image: Block
) -> Trial:
    places = list(range(len(question.options)))
    if setting.options == "shuffled":
        places = [int(place) for place in _seeded("order", question.question, run).permutation(places)]
    options = tuple(question.options[place] for place in places)
    blocks = [image] if setting.images != "none" else []
    if setting.report == "full":
        text = "\n".join(f"{section.capitalize()}: {words}" for section, words in study.report.items())
        blocks.append(Block(role="report", text=f"Report:\n{text}"))
    blocks.append(Block(role="question", text=question.stem))
    if setting.readout == "choice":
        blocks.append(Block(role="options", text="\n".join(f"{n}. {text}" for n, text in enumerate(options, start=1))))
    instruction = "Answer with the number of one option." if setting.readout == "choice" else "Answer yes or no."
    blocks.append(Block(role="instruction", text=instruction))
    pictured = setting[ImageAspect].shows_the_study()
    return Trial(
        dataset=dataset, setting=name, run=run, question=question.question, topic=question.topic, study=study.study,
        patient=study.patient, image_study=shown.study if pictured else None,
        image_patient=shown.patient if pictured else None,
        label=question.answer if question.origin == ORIGIN else _truth(study, question.topic),
        image_label=question.answer
        if question.origin == ORIGIN
        else _truth(shown, question.topic)
        if pictured
        else None, blocks=tuple(blocks), options=options,
        permutation=tuple(places), answer=options.index(question.answer), readout=setting.readout,
        attention=setting.attention, restricted=study.restricted,
    )  # fmt: skip


def _answer(name: str, trial: Trial) -> Response:
    """Follows the report, else the picture, else guesses; the same draws of chance under every setting."""
    model = _model(name)
    chance = _seeded("answer", name, trial.question, trial.run)
    unread, by_report, by_image, guess = chance.random(4)
    noise = chance.normal(size=len(trial.options))
    hidden = trial.attention != "none" and int(trial.attention.rpartition("-")[2]) <= HIDES_UP_TO
    seen = [trial.label] if trial.has_report and not hidden and by_report < model.reliance.report else []
    seen += [trial.image_label] if by_image < model.reliance.image else []
    place = int(guess * len(trial.options)) if model.reliance.first_option == 0 else 0
    place = next((trial.options.index(truth) for truth in seen if truth in trial.options), place)
    scores = noise + 2.5 * (np.arange(len(noise)) == place)
    logprobs = tuple(float(score) for score in scores - math.log(np.exp(scores).sum()))
    answered = unread >= model.reliance.unparsed
    said = str(place + 1) if trial.readout == "choice" else trial.options[place]
    return Response(
        request=request_key(model.identity(), trial), trial=trial.trial, question=trial.question, dataset=trial.dataset,
        model=name, setting=trial.setting, run=trial.run, text=said if answered else "The study is of good quality.",
        status="answered" if answered else "unparsed", answer=place if answered else None,
        choice=trial.permutation[place] if answered else None, logprobs=logprobs if model.takes.logprobs else None,
        finish_reason="stop", prompt_tokens=100, image_tokens=20 * len(trial.images), completion_tokens=2, seconds=0.01,
    )  # fmt: skip
