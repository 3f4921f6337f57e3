"""Ask: a question of one's own about a study, put to a model.

    /ask/{dataset}/{study}                        the form; ?question=, ?model=, ?setting= fill it in; POST asks
    /ask/{dataset}/{study}?asked=<name>           the form as it was sent, with the answer
    /ask/{dataset}/{study}/asked/<name>           the answer alone, for the page's script
    /ask/{dataset}/{study}/asked/<name>/cancel    POST

Nothing of it is written, and nothing of it enters the study's responses or tables.
"""

from __future__ import annotations

import math
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import copy
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from overread.config import Config, ServerModel
from overread.core.errors import BadInput, OverreadError
from overread_viewer.asking import Asked, Asking, Call, TooMany
from overread_viewer.catalogue import Catalogue
from overread_viewer.errors import NotThere
from overread_viewer.fitting import Fitting, read_config
from overread_viewer.own_question import MOST_OPTIONS, Builder, Form
from overread_viewer.pages import render

FEWEST_ROWS = 4


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """What was loaded goes with the server."""
    yield
    desk = getattr(app.state, "desk", None)
    if desk is not None:
        await run_in_threadpool(desk.asking.close)


router = APIRouter(lifespan=_lifespan)


class Desk:
    """What all requests share: the config, who can be asked, and the queue."""

    def __init__(self, catalogue: Catalogue, config: Config | None) -> None:
        self.fitting = Fitting(catalogue, config)
        self.builder = Builder(catalogue, config)
        self.asking = Asking()
        self.with_config = config is not None


_opening = threading.Lock()


def desk(request: Request) -> Desk:
    """The server's desk. BadInput or BadConfig for a config that is broken or another study's."""
    state = request.app.state
    with _opening:
        if not hasattr(state, "desk"):
            state.desk = Desk(state.catalogue, read_config(state.options.config, state.catalogue))
    made: Desk = state.desk
    return made


@router.get("/ask/{dataset}/{study}", response_class=HTMLResponse)
def ask(
    request: Request,
    dataset: str,
    study: str,
    question: str = "",
    model: str = "",
    setting: str = "",
    asked: str = "",
) -> HTMLResponse:
    """The form: empty, with one of the study's questions, or as it was sent, with what came of it."""
    catalogue: Catalogue = request.app.state.catalogue
    catalogue.study(dataset, study)
    try:
        shared = desk(request)
    except OverreadError as error:
        return _page(request, dataset, study, None, Form(errors={"form": str(error)}), None)
    done = None
    if asked:
        done = _found(shared, dataset, study, asked)
        form: Form = done.about["form"]
    elif question:
        one = catalogue.question(dataset, question)
        if one.study != study:
            raise NotThere(f"no question {question!r} of study {study!r}")
        form = Form.of(one, model, setting)
    else:
        form = Form(model=model, setting=setting)
    return _page(request, dataset, study, shared, form, done)


@router.post("/ask/{dataset}/{study}")
async def put(request: Request, dataset: str, study: str) -> Response:
    """Check the form and put its question in the queue; 422 with the form as it was typed if something is wrong."""
    sent = await request.form(max_files=0, max_fields=40)
    return await run_in_threadpool(_put, request, dataset, study, Form.read(sent), "more" in sent)


@router.get("/ask/{dataset}/{study}/asked/{name}", response_class=HTMLResponse)
def state(request: Request, dataset: str, study: str, name: str) -> HTMLResponse:
    """What came of a question, as a part of a page."""
    shared = desk(request)
    done = _found(shared, dataset, study, name)
    return render(request, "asked.html.j2", **_answer(request, dataset, study, shared, done))


@router.post("/ask/{dataset}/{study}/asked/{name}/cancel")
def cancel(request: Request, dataset: str, study: str, name: str) -> Response:
    shared = desk(request)
    shared.asking.cancel(_found(shared, dataset, study, name).name)
    return RedirectResponse(f"{_url(dataset, study)}?{urlencode({'asked': name})}#answer", 303)


# -- asking ----------------------------------------------------------------------------------------------------------


def _put(request: Request, dataset: str, study: str, form: Form, more: bool) -> Response:
    catalogue: Catalogue = request.app.state.catalogue
    problem = catalogue.study(dataset, study).problem
    try:
        shared = desk(request)
    except OverreadError as error:
        form.errors["form"] = str(error)
        return _page(request, dataset, study, None, form, None, 422)
    if more:
        return _page(request, dataset, study, shared, form, None, rows=len(form.given) + 2)
    if problem is not None:
        form.errors["form"] = f"This study can't be used: {problem}"
    form.check()
    _check_names(shared.fitting, dataset, form)
    if not form.errors:
        form.check_tokens_of(shared.fitting.sections[form.model])
    built = None
    if not form.errors:
        try:
            built = shared.builder.build(dataset, study, form)
        except BadInput as error:
            form.errors["form"] = str(error)
        except ImportError as error:
            form.errors["setting"] = f"{form.setting} can't be made here: {error}. Install the extra 'trials'."
    if built is not None and built.as_run is False and not shared.with_config:
        form.errors["setting"] = (
            "Built again, a question of the run is not what the run put: its prompts have changed since, or its "
            "seed is not in the results. Start the viewer with --config."
        )
    if form.errors or built is None:
        return _page(request, dataset, study, shared, form, None, 422)
    section = shared.fitting.sections[form.model]
    call = Call(
        trial=built.trial,
        model_id=form.model,
        model=section.model_dump(mode="json"),
        folder=catalogue.folder(dataset),
        ledger=shared.fitting.ledger(form.model),
        study_ledger=shared.fitting.study_ledger(form.model),
        attested=shared.fitting.attested(),
        python=shared.fitting.python(form.model),
        threads=section.resources.threads,
        loading=2 * 60 * section.resources.loading,
    )
    about = {"dataset": dataset, "study": study, "form": form, "built": built}
    try:
        asked = shared.asking.put(call, about)
    except TooMany as error:
        form.errors["form"] = str(error)
        return _page(request, dataset, study, shared, form, None, 422)
    return RedirectResponse(f"{_url(dataset, study)}?{urlencode({'asked': asked.name})}#answer", 303)


def _check_names(fitting: Fitting, dataset: str, form: Form) -> None:
    """Whether model and setting are there and go together."""
    if form.model not in fitting.models(dataset):
        form.errors["model"] = "Choose a model."
    if form.setting not in fitting.settings(dataset):
        form.errors["setting"] = "Choose a setting."
    if not {"model", "setting"} & set(form.errors):
        why = fitting.obstacle(dataset, form.model, form.setting)
        if why is not None:
            form.errors["setting"] = f"{form.model} can't be asked under {form.setting}: {why}."


def _found(shared: Desk, dataset: str, study: str, name: str) -> Asked:
    asked = shared.asking.get(name)
    if asked is None or (asked.about["dataset"], asked.about["study"]) != (dataset, study):
        raise NotThere("that question is not remembered: the viewer keeps no more than the last ones, until it ends")
    return asked


def _url(dataset: str, study: str) -> str:
    return f"/ask/{quote(dataset, safe='')}/{quote(study, safe='')}"


# -- pages -----------------------------------------------------------------------------------------------------------


def _page(
    request: Request,
    dataset: str,
    study: str,
    shared: Desk | None,
    form: Form,
    done: Asked | None,
    status: int = 200,
    rows: int = 0,
) -> HTMLResponse:
    catalogue: Catalogue = request.app.state.catalogue
    content: dict[str, Any] = {
        "dataset": dataset,
        "study": study,
        "form": form,
        "semi_synthetic": catalogue.study(dataset, study).semi_synthetic,
        "questions": catalogue.questions_of(dataset, study),
        "rows": min(MOST_OPTIONS, max(FEWEST_ROWS, len(form.given), rows)),
        "most": MOST_OPTIONS,
        "open": shared is not None,
        "url": _url(dataset, study),
        "answer": None,
        "earlier": [],
    }
    if shared is not None:
        fitting = shared.fitting
        mine = [one for one in shared.asking.all() if (one.about["dataset"], one.about["study"]) == (dataset, study)]
        content |= {
            "models": {name: fitting.sections[name].label for name in fitting.models(dataset)},
            "of_run": catalogue.models(dataset),
            "settings": {name: _words(shared, name) for name in fitting.settings(dataset)},
            "obstacles": fitting.obstacles(dataset),
            "topics": shared.builder.topics(dataset),
            "with_config": shared.with_config,
            "earlier": mine,
            "answer": _answer(request, dataset, study, shared, done) if done is not None else None,
        }
    return render(request, "ask.html.j2", status, **content)


def _words(shared: Desk, setting: str) -> str:
    return shared.builder.settings[setting].describe()


def _answer(request: Request, dataset: str, study: str, shared: Desk, asked: Asked) -> dict[str, Any]:
    """What the page shows of a question that was put."""
    catalogue: Catalogue = request.app.state.catalogue
    before = shared.asking.before(asked)
    asked = copy(asked)  # as it stands now: the answer may come while the page is made
    built, form = asked.about["built"], asked.about["form"]
    trial, response = built.trial, asked.response
    options = []
    for place, option in enumerate(trial.options):
        logprob = response.logprobs[place] if response is not None and response.logprobs is not None else None
        options.append(
            {
                "text": option,
                "chosen": response is not None and response.answer == place,
                "right": option == built.right,
                "logprob": logprob,
                "probability": None if logprob is None else math.exp(logprob),
            }
        )
    known = trial.question in catalogue.questions(dataset)
    run = catalogue.runs(dataset, form.model, form.setting)
    trial_url = None
    if known and run:
        where = [quote(part, safe="") for part in (dataset, form.setting, "1", trial.question)]
        trial_url = f"/trial/{'/'.join(where)}?{urlencode({'model': form.model})}"
    section = shared.fitting.sections.get(form.model)
    return {
        "asked": asked,
        "form": form,
        "trial": trial,
        "response": response,
        "options": options,
        "right": _is_right(asked),
        "marked": built.marked,
        "label": section.label if section is not None else form.model,
        "calibrated": section is not None and section.told_the_truth,
        "endpoint": section.endpoint if isinstance(section, ServerModel) else None,
        "described": _words(shared, form.setting),
        "before": before,
        "blocks": [(block, _picture(dataset, block.image)) for block in trial.blocks],
        "changed": built.as_run is False,
        "same": known and built.as_run,
        "trial_url": trial_url,
        "dataset": dataset,
        "url": _url(dataset, study),
    }


def _is_right(asked: Asked) -> bool | None:
    """Whether the answer is right; None where there is none, or nobody says what would be."""
    built, response = asked.about["built"], asked.response
    if built.right is None or response is None or response.answer is None:
        return None
    return bool(built.trial.options[response.answer] == built.right)


def _picture(dataset: str, path: str | None) -> str | None:
    if path is None or path.endswith(".nii.gz"):
        return None
    return f"/files/picture/{quote(dataset, safe='')}/{quote(path)}"
