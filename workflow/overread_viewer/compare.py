"""Compare: the trials whose answer flips between two settings of a model, or between two models under a setting.

/compare                                      the comparisons of the run, with their flip rates
/compare?dataset=&a=model:setting&b=...       the pairs of two arms, sorted and filtered
/compare.csv?...                              the same list as a file
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from overread.core.cells import harmless
from overread.core.csv_files import csv_text
from overread.core.records import Question, Trial
from overread.reporting import words
from overread_viewer.catalogue import Catalogue
from overread_viewer.comparing import Arm, Comparing, Filters, Pairs
from overread_viewer.errors import BadRequest, NotThere
from overread_viewer.pages import render

router = APIRouter()

PER_PAGE = 20
SHOWS = {"flipped": "Flipped", "kept": "Unchanged", "unpaired": "No readable answer", "all": "All"}
DIRECTIONS = {
    "any": "Any",
    "right-wrong": "Correct to wrong",
    "wrong-right": "Wrong to correct",
    "wrong-wrong": "Wrong to wrong",
}
GROUPS = {
    "all": "All pairs",
    "label-changed": "The truth differs between the two images",
    "label-unchanged": "The truth is the same in both images",
    "within-patient": "Both images are of one patient",
    "across-patients": "The images are of two patients",
}
ORDERS = {"margin": "By change of margin", "study": "By study"}
TEXT_COLUMNS = (
    "study", "patient", "topic", "stem", "right_option", "answer_a", "answer_b", "image_study_a", "image_study_b",
    "image_label_a", "image_label_b",
)  # fmt: skip
"""Columns of the download that say something of a study: left out where its data are restricted."""
NUMBER_COLUMNS = (
    "question", "run", "status_a", "status_b", "place_a", "place_b", "right_a", "right_b", "flipped", "margin_a",
    "margin_b", "margin_change",
)  # fmt: skip


@dataclass(frozen=True)
class Side:
    """One arm of a pair, as a page shows it.

    picture   URL of a picture that was shown; none where none was, or where it is a volume
    pictures  how many were shown
    shown     whose: `black image`, `no image`, or the study's name
    logprobs  by place as written; none where the model gave none
    """

    arm: Arm
    run: int
    status: str
    right: bool
    choice: int
    picture: str | None
    pictures: int
    shown: str
    url: str
    logprobs: list[float | None] | None


@dataclass(frozen=True)
class Row:
    """A pair, as a page shows it. `own` and `other` are what is true of the image in each arm, where it is known."""

    question: Question
    study: str
    topic: str
    run: int
    flipped: bool
    both: bool
    move: float | None
    margins: tuple[float | None, float | None]
    sides: tuple[Side, Side]
    truths: tuple[str | None, str | None]


def comparing(request: Request) -> Comparing:
    """The pairs of the run that is served, kept from page to page."""
    state = request.app.state
    if not hasattr(state, "comparing"):
        catalogue: Catalogue = state.catalogue
        state.comparing = Comparing(catalogue.results, catalogue.spec, lambda: catalogue.table("flips"))
    made: Comparing = state.comparing
    return made


@router.get("/compare", response_class=HTMLResponse)
def compare(
    request: Request, dataset: str | None = None, a: str | None = None, b: str | None = None, page: int = 1
) -> HTMLResponse:
    """The page. 400 for arms that can't be compared, with the choice still on it; 404 for what was not run."""
    catalogue: Catalogue = request.app.state.catalogue
    pairing = comparing(request)
    if dataset is None:
        dataset = catalogue.datasets[0]
    elif dataset not in catalogue.datasets:
        raise NotThere.named("dataset", dataset, catalogue.datasets)
    choice: dict[str, Any] = {
        "dataset": dataset,
        "datasets": catalogue.datasets,
        "arms": _by_model(catalogue, pairing.arms(dataset)),
        "a": a,
        "b": b,
        "problem": None,
        "label": catalogue.label,
        "semi_synthetic": any(one.semi_synthetic for one in catalogue.studies(dataset).values()),
        "two": partial(words.signless, digits=2),
    }
    if not a or not b:
        named = _named(catalogue, dataset)
        return render(request, "compare.html.j2", result=None, named=named, **choice)
    try:
        first, second = Arm.read(a), Arm.read(b)
        filters = Filters.read(request.query_params)
        pairs = pairing.pairs(dataset, first, second)
    except BadRequest as problem:
        choice["problem"] = str(problem)
        return render(request, "compare.html.j2", status=400, result=None, named=_named(catalogue, dataset), **choice)
    if filters.topic and filters.topic not in pairs.topics:
        raise NotThere.named("topic", filters.topic, pairs.topics)
    result = _result(request, catalogue, dataset, (first, second), pairs, filters, page)
    return render(request, "compare.html.j2", result=result, named=[], **choice)


@router.get("/compare.csv")
def download(request: Request, dataset: str, a: str, b: str) -> Response:
    """The whole list as CSV, in the order of the page."""
    catalogue: Catalogue = request.app.state.catalogue
    first, second = Arm.read(a), Arm.read(b)
    pairs = comparing(request).pairs(dataset, first, second)
    text = _csv(catalogue, dataset, pairs, Filters.read(request.query_params))
    name = f"compare_{dataset}_{first.model}_{first.setting}_{second.model}_{second.setting}.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


# -- the choice ------------------------------------------------------------------------------------------------------


def _by_model(catalogue: Catalogue, arms: list[Arm]) -> dict[str, list[Arm]]:
    """The arms of each model, settings in the order of the config."""
    order = list(catalogue.spec["settings"])
    found: dict[str, list[Arm]] = {}
    for arm in sorted(arms, key=lambda arm: (arm.model, order.index(arm.setting))):
        found.setdefault(arm.model, []).append(arm)
    return found


def _named(catalogue: Catalogue, dataset: str) -> list[dict[str, Any]]:
    """The config's comparisons that the dataset has both arms of, each with a cell a model."""
    rates = {
        (row["model"], row["comparison"]): row
        for row in catalogue.table("flips")
        if row["dataset"] == dataset and row["group"] == "all"
    }
    found = []
    for name, pair in catalogue.spec.get("comparisons", {}).items():
        a, b = pair.get("flips") or pair.get("accuracy")
        cells = []
        for model in catalogue.models(dataset):
            there = all(catalogue.runs(dataset, model, setting) for setting in (a, b))
            query = {"dataset": dataset, "a": f"{model}:{a}", "b": f"{model}:{b}"}
            cells.append(
                {
                    "model": model,
                    "url": f"/compare?{urlencode(query)}" if there else None,
                    "row": rates.get((model, name)),
                }
            )
        if any(cell["url"] for cell in cells):
            found.append({"name": name, "a": a, "b": b, "cells": cells})
    return found


# -- the result ------------------------------------------------------------------------------------------------------


def _result(
    request: Request,
    catalogue: Catalogue,
    dataset: str,
    arms: tuple[Arm, Arm],
    pairs: Pairs,
    filters: Filters,
    page: int,
) -> dict[str, Any]:
    places = pairs.select(filters)
    pages = max(1, -(-len(places) // PER_PAGE))
    page = min(max(page, 1), pages)
    start = (page - 1) * PER_PAGE
    parameters = {"dataset": dataset, "a": str(arms[0]), "b": str(arms[1])}
    parameters |= {name: value for name, value in vars(filters).items() if value != getattr(Filters, name)}

    def link(path: str = "/compare", **changes: object) -> str:
        """This page with other parameters; a filter that changes begins at the first page."""
        changed = {name: value for name, value in {**parameters, **changes}.items() if value}
        return f"{path}?{urlencode(changed)}"

    settings = catalogue.spec["settings"]
    whole = pairs.summary()
    return {
        "arms": arms,
        "same_model": arms[0].model == arms[1].model,
        "rerun": arms[0] == arms[1],
        "described": [settings[arm.setting].describe() for arm in arms],
        "whole": whole,
        "group": pairs.summary(filters.topic, filters.group),
        "narrowed": bool(filters.topic) or filters.group != "all",
        "counts": pairs.counts(filters.topic, filters.group),
        "topics": pairs.topics,
        "filters": filters,
        "groups": {name: text for name, text in GROUPS.items() if bool(pairs.members(name).any())},
        "shows": SHOWS,
        "directions": DIRECTIONS,
        "orders": ORDERS,
        "runs": pairs.runs,
        "rows": list(_rows(catalogue, dataset, arms, pairs, places[start : start + PER_PAGE])),
        "start": start,
        "listed": len(places),
        "page": page,
        "pages": pages,
        "link": link,
        "restricted_data": catalogue.restricted(dataset),
        "xray": catalogue.spec["datasets"][dataset]["modality"] == "xray",
        "any_logprobs": whole.margins > 0,
    }


def _rows(catalogue: Catalogue, dataset: str, arms: tuple[Arm, Arm], pairs: Pairs, places: Any) -> Iterator[Row]:
    apart = int(arms[0] == arms[1])  # a rerun is compared with the run after it
    for pair in pairs.frame.iloc[places].itertuples():
        question = catalogue.question(dataset, pair.question)
        sides = tuple(
            _side(catalogue, dataset, arm, pair.run + later, pair, letter)
            for arm, letter, later in zip(arms, "ab", (0, apart), strict=True)
        )
        truths = tuple(_known(getattr(pair, f"image_label_{letter}")) for letter in "ab")
        margins = tuple(_number(getattr(pair, f"margin_{letter}")) for letter in "ab")
        yield Row(
            question=question,
            study=pair.study,
            topic=pair.topic,
            run=int(pair.run),
            flipped=bool(pair.flipped),
            both=bool(pair.both),
            move=_number(pair.move),
            margins=(margins[0], margins[1]),
            sides=(sides[0], sides[1]),
            truths=(truths[0], truths[1]),
        )


def _side(catalogue: Catalogue, dataset: str, arm: Arm, run: int, pair: Any, letter: str) -> Side:
    trial = catalogue.trial(dataset, arm.setting, run, pair.question)
    answers = catalogue.answers(dataset, arm.model, arm.setting, run)
    logprobs = None
    if answers.logprobs is not None and trial is not None:
        values = answers.logprobs[answers.rows[pair.question], : len(trial.options)]
        logprobs = [_number(value) for value in values] if (values == values).any() else None
    where = [dataset, arm.setting, str(run), pair.question]
    return Side(
        arm=arm,
        run=run,
        status=getattr(pair, f"status_{letter}"),
        right=bool(getattr(pair, f"right_{letter}")),
        choice=int(getattr(pair, f"choice_{letter}")),
        picture=picture_of(dataset, trial),
        pictures=len(trial.images) if trial is not None else 0,
        shown=shown_in(trial),
        url=f"/trial/{'/'.join(quote(part, safe='') for part in where)}?{urlencode({'model': arm.model})}",
        logprobs=logprobs,
    )


def picture_of(dataset: str, trial: Trial | None) -> str | None:
    """URL of the picture in the middle of those that a trial shows; none where there is none, or it is a volume."""
    if trial is None or not trial.images:
        return None
    image = trial.images[len(trial.images) // 2].image or ""
    return None if image.endswith(".nii.gz") else f"/files/picture/{quote(dataset, safe='')}/{quote(image)}"


def shown_in(trial: Trial | None) -> str:
    """Whose image a trial shows."""
    if trial is None or not trial.images:
        return "no image"
    return trial.image_study if trial.image_study is not None else "black image"


def _number(value: float) -> float | None:
    return float(value) if value == value else None


def _known(text: Any) -> str | None:
    return text if isinstance(text, str) else None


# -- the download ----------------------------------------------------------------------------------------------------


def _csv(catalogue: Catalogue, dataset: str, pairs: Pairs, filters: Filters) -> str:
    """Restricted data leave out everything that says something of a study: what stays is ids, answers and numbers."""
    columns = NUMBER_COLUMNS if catalogue.restricted(dataset) else NUMBER_COLUMNS + TEXT_COLUMNS
    questions = catalogue.questions(dataset)
    chosen = pairs.frame.iloc[pairs.select(filters)].itertuples()
    lines = (_line(pair, questions[str(pair.question)]) for pair in chosen)
    return csv_text(columns, lines, decimals=None, line_end="\r\n")


def _line(pair: Any, question: Question) -> Mapping[str, object]:
    options = question.options
    line: dict[str, object] = {
        "question": pair.question,
        "run": pair.run,
        "flipped": int(pair.flipped),
        "margin_change": _rounded(pair.change),
        "study": harmless(pair.study),
        "patient": harmless(pair.patient),
        "topic": harmless(pair.topic),
        "stem": harmless(question.stem),
        "right_option": harmless(question.answer),
    }
    for letter in "ab":
        choice = int(getattr(pair, f"choice_{letter}"))
        line |= {
            f"status_{letter}": getattr(pair, f"status_{letter}"),
            f"place_{letter}": choice + 1 if choice >= 0 else "",
            f"right_{letter}": int(getattr(pair, f"right_{letter}")),
            f"margin_{letter}": _rounded(getattr(pair, f"margin_{letter}")),
            f"answer_{letter}": harmless(options[choice]) if choice >= 0 else "",
            f"image_study_{letter}": harmless(_known(getattr(pair, f"image_study_{letter}")) or ""),
            f"image_label_{letter}": harmless(_known(getattr(pair, f"image_label_{letter}")) or ""),
        }
    return line


def _rounded(value: float) -> str:
    return f"{value:.6f}" if value == value else ""
