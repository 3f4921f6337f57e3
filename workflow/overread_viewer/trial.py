"""The page of a trial: the exact input of the models, what they answered, and the same question put otherwise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import Response as Page

from overread.core.records import Block, Picture, Question, Response, Trial
from overread.settings.edit import Edits
from overread_viewer.catalogue import Catalogue
from overread_viewer.errors import NotThere
from overread_viewer.files import picture_url
from overread_viewer.marking import Marked, mark
from overread_viewer.matrix import state_of, trial_url
from overread_viewer.pages import render
from overread_viewer.twins import Twin, twins

router = APIRouter()

ROLES = {
    "image": "Image", "caption": "Caption", "report": "Report", "question": "Question", "options": "Options",
    "instruction": "Instruction",
}  # fmt: skip


@dataclass(frozen=True)
class Edited:
    """Of an edited picture: the edits in words, and where the picture as it is and the difference are, if known."""

    words: str
    before: str | None = None
    difference: str | None = None


@dataclass(frozen=True)
class Part:
    """A block of the input. `differs`: whether the trial beside has another in its place."""

    role: str
    text: list[tuple[str, bool]]
    """Stretches, and whether each is the question's evidence; empty of an image."""
    url: str | None = None
    picture: Picture | None = None
    volume: dict[str, Any] | None = None
    edited: Edited | None = None
    differs: bool = False


@dataclass(frozen=True)
class Option:
    """An option at the place where it was shown.

    written  its place as written, from 1
    share    its probability among the options; None without log-probabilities
    """

    text: str
    written: int
    right: bool
    chosen: bool
    logprob: float | None
    share: float | None


@dataclass(frozen=True)
class Column:
    """A trial with a model's answer."""

    trial: Trial
    about: str
    parts: list[Part]
    options: list[Option]
    response: Response | None
    state: str | None
    image: str
    truths: list[tuple[str, str]]


@dataclass(frozen=True)
class Answer:
    """A model's answer to a trial, and to the one beside it."""

    model: str
    label: str
    state: str | None
    text: str
    beside: tuple[str | None, str] | None
    changed: str
    href: str


@router.get("/trial/{dataset}/{setting}/{run}/{question}")
def trial_page(
    request: Request,
    dataset: str,
    setting: str,
    run: int,
    question: str,
    model: str | None = None,
    beside: str | None = None,
) -> Page:
    """model   whose answer is shown; else of the first that was asked
    beside  the setting of the trial that is put beside it, or none; else the one with another image
    """
    catalogue: Catalogue = request.app.state.catalogue
    trial = catalogue.trial(dataset, setting, run, question)
    if trial is None:
        raise NotThere(f"question {question} is not asked under setting {setting} in run {run}")
    asked = catalogue.question(dataset, question)
    models = [one for one in catalogue.models(dataset) if catalogue.runs(dataset, one, setting) >= run]
    if model is not None and model not in catalogue.models(dataset):
        raise NotThere.named("model", model, catalogue.models(dataset))
    model = model or models[0]
    others = twins(catalogue, dataset, setting, run, question)
    twin = _chosen(others, beside)
    other = catalogue.trial(dataset, twin.setting, twin.run, question) if twin is not None else None
    columns = [_column(catalogue, asked, trial, model, other)]
    if other is not None:
        columns.append(_column(catalogue, asked, other, model, trial))
    answers = [_answer(catalogue, asked, one, trial, other, beside) for one in models]
    now = {"setting": setting, "run": run, "model": model, "beside": beside}
    return render(
        request,
        "trial.html.j2",
        dataset=dataset,
        question=asked,
        study=catalogue.study(dataset, trial.study),
        is_restricted=catalogue.restricted(dataset),
        setting=setting,
        this_run=run,
        runs=max(catalogue.runs(dataset, one, setting) for one in catalogue.models(dataset)),
        model=model,
        models={one: catalogue.label(one) for one in catalogue.models(dataset)},
        columns=columns,
        twins=others,
        twin=twin,
        verdict=_verdict(columns) if len(columns) == 2 else None,
        answers=answers,
        volumes=any(part.volume for column in columns for part in column.parts),
        roles=ROLES,
        address=lambda **change: _address(dataset, question, {**now, **change}),
    )


def _chosen(others: list[Twin], beside: str | None) -> Twin | None:
    """The twin that is asked for; by default the first that differs in the image alone."""
    if beside == "none":
        return None
    if beside:
        for one in others:
            if one.setting == beside:
                return one
        raise NotThere.named("setting beside it", beside, [one.setting for one in others])
    return others[0] if others and others[0].swaps_the_image else None


def _address(dataset: str, question: str, now: dict[str, Any]) -> str:
    """now  setting, run, model, and beside, which may be none"""
    address = trial_url(dataset, now["setting"], now["run"], question, now["model"])
    return address + (f"&beside={quote(now['beside'], safe='')}" if now["beside"] else "")


# -- a column --------------------------------------------------------------------------------------------------------


def _column(catalogue: Catalogue, question: Question, trial: Trial, model: str, other: Trial | None) -> Column:
    setting = catalogue.spec["settings"][trial.setting]
    response = None
    if catalogue.runs(trial.dataset, model, trial.setting) >= trial.run:
        response = catalogue.response(trial.dataset, model, trial.setting, trial.run, trial.question)
    return Column(
        trial=trial,
        about=setting.describe(),
        parts=_parts(catalogue, question, trial, other),
        options=_options(trial, response),
        response=response,
        state=state_of(catalogue, trial.dataset, model, trial.setting, trial.run, trial.question) if response else None,
        image=image_of(trial),
        truths=_truths(trial),
    )


def image_of(trial: Trial) -> str:
    """Whose image a trial shows, in words."""
    if not trial.images:
        return "no image"
    if trial.image_study is None:
        return "a black image"
    if trial.image_study == trial.study:
        return "the study's own image"
    patient = "the same patient" if trial.image_patient == trial.patient else "another patient"
    return f"the image of {trial.image_study} ({patient})"


def _truths(trial: Trial) -> list[tuple[str, str]]:
    """What is right by whom, where there is more to say than the right option."""
    found = [("by the study", trial.label)]
    if trial.image_study is not None:
        found.append(("by the image that is shown", trial.image_label))
    if trial.has_report:
        found.append(("by the report that is shown", trial.report_label))
    return [(who, label if label is not None else "not known") for who, label in found]


def _parts(catalogue: Catalogue, question: Question, trial: Trial, other: Trial | None) -> list[Part]:
    named: dict[str, Picture] = {}
    if trial.image_study is not None:
        named = {one.path: one for one in catalogue.pictures(trial.dataset, trial.image_study)}
    theirs = _by_role(other) if other is not None else {}
    counts: dict[str, int] = {}
    parts = []
    for block in trial.blocks:
        place = counts[block.role] = counts.get(block.role, -1) + 1
        beside = theirs.get(block.role, [])
        differs = other is not None and (place >= len(beside) or not _same(block, beside[place]))
        part = _part(trial.dataset, question, block, named, differs)
        parts.append(replace(part, edited=_edited(catalogue, trial, part.picture)))
    return parts


def _edited(catalogue: Catalogue, trial: Trial, picture: Picture | None) -> Edited | None:
    if picture is None or picture.edit is None:
        return None
    words = catalogue.spec["settings"][trial.setting][Edits].words()
    plain = catalogue.unedited(trial.dataset, picture)
    if plain is None or picture.depth is not None:
        return Edited(words)
    at = f"{quote(trial.dataset, safe='')}/{quote(picture.study, safe='')}/{quote(picture.path)}"
    return Edited(words, picture_url(trial.dataset, plain.path), f"/files/difference/{at}")


def _part(dataset: str, question: Question, block: Block, named: dict[str, Picture], differs: bool) -> Part:
    if block.image is None:
        text = block.text or ""
        marked = mark({"": text}, question.evidence) if block.role == "report" else Marked({"": [(text, False)]}, ())
        return Part(block.role, marked.sections[""], differs=differs)
    url = picture_url(dataset, block.image)
    picture = named.get(block.image)
    volume = None
    if block.image.endswith(".nii.gz"):
        facts = url.replace("/files/picture/", "/files/facts/picture/", 1)
        name = picture.name if picture else "black volume"
        series = {"name": name, "url": url, "facts": facts}
        volume = {"images": [], "series": [series], "first": [name], "masks": [], "labels": {}, "slices": []}
    return Part("image", [], url, picture, volume, differs=differs)


def _by_role(trial: Trial) -> dict[str, list[Block]]:
    found: dict[str, list[Block]] = {}
    for block in trial.blocks:
        found.setdefault(block.role, []).append(block)
    return found


def _same(one: Block, two: Block) -> bool:
    return (one.text, one.pixels) == (two.text, two.pixels)


def _options(trial: Trial, response: Response | None) -> list[Option]:
    """In the order in which they were shown."""
    logprobs = response.logprobs if response is not None else None
    shares = _shares(logprobs) if logprobs is not None and len(logprobs) == len(trial.options) else None
    return [
        Option(
            text=text,
            written=trial.permutation[place] + 1,
            right=place == trial.answer,
            chosen=response is not None and response.answer == place,
            logprob=logprobs[place] if logprobs is not None and shares is not None else None,
            share=shares[place] if shares is not None else None,
        )
        for place, text in enumerate(trial.options)
    ]


def _shares(logprobs: tuple[float, ...]) -> list[float]:
    """Probabilities among the options alone."""
    most = max(logprobs)
    weights = [math.exp(one - most) if math.isfinite(most) else 1.0 for one in logprobs]
    return [weight / sum(weights) for weight in weights]


# -- answers ---------------------------------------------------------------------------------------------------------


def _answer(
    catalogue: Catalogue, question: Question, model: str, trial: Trial, other: Trial | None, beside: str | None
) -> Answer:
    state, text, choice = _given(catalogue, question, model, trial)
    pair, changed = None, ""
    if other is not None:
        state_two, text_two, choice_two = _given(catalogue, question, model, other)
        pair, changed = (state_two, text_two), _changed(choice, choice_two)
    now = {"setting": trial.setting, "run": trial.run, "model": model, "beside": beside}
    href = _address(trial.dataset, trial.question, now)
    return Answer(model, catalogue.label(model), state, text, pair, changed, href)


def _given(catalogue: Catalogue, question: Question, model: str, trial: Trial) -> tuple[str | None, str, int | None]:
    """Whether a model was right, the text of the option that it gave, and that option's place as written."""
    if catalogue.runs(trial.dataset, model, trial.setting) < trial.run:
        return None, "", None
    state = state_of(catalogue, trial.dataset, model, trial.setting, trial.run, trial.question)
    if state not in ("right", "wrong"):
        return state, "", None
    answers = catalogue.answers(trial.dataset, model, trial.setting, trial.run)
    choice = int(answers.choice[answers.rows[trial.question]])
    return state, question.options[choice], choice


def _changed(one: int | None, two: int | None) -> str:
    if one is None or two is None:
        return "can't be told"
    return "changed" if one != two else "the same"


def _verdict(columns: list[Column]) -> str:
    """Whether the answer changed with what was changed."""
    one, two = (column.response.choice if column.response is not None else None for column in columns)
    if one is None or two is None:
        return "Whether the answer changes can't be told: it was not given to both."
    return "The answer changes." if one != two else "The answer stays the same."
