"""Review: people look through generated questions, and accept, edit or reject each.

    /review                              what there is to review, by dataset
    /review/{dataset}                    the list with filters, the progress, the sheet
    /review/{dataset}/question/{id}      one question with its evidence, pictures and history; decide about it
    /review/{dataset}/decisions.csv      the sheet that `apply-review` reads

A reviewer says a name once; it is kept in a signed cookie. What others decided is shown after one's own decision.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from overread.core.errors import BadInput
from overread.core.outputs import OutputFolder
from overread.core.records import Question
from overread.curation.candidates import Wording
from overread.curation.filter import problems
from overread.curation.review import decided_sheet
from overread_viewer.catalogue import Catalogue
from overread_viewer.errors import BadRequest, NotThere
from overread_viewer.marking import mark
from overread_viewer.pages import render
from overread_viewer.review_form import LONGEST, REASONS, Form, wrong_text
from overread_viewer.reviewer import Names
from overread_viewer.reviewing import SHOWS, STATES, Filters, Material, Reviewing, Standing, listed, neighbours
from overread_viewer.study import report_of
from overread_viewer.unfinished import Unfinished

router = APIRouter()

PER_PAGE = 50
VERBS = {"accept": "accepted", "edit": "edited", "reject": "rejected"}


@router.get("/review", response_class=HTMLResponse)
def overview(request: Request) -> HTMLResponse:
    """Every dataset: how far its review is, or why there is none."""
    catalogue, reviewing = _catalogue(request), _reviewing(request)
    rows = []
    for dataset in catalogue.datasets:
        why = reviewing.nothing(dataset)
        rows.append({"dataset": dataset, "why": why, "progress": None if why else _progress(request, dataset)})
    unfinished = catalogue.why if isinstance(catalogue, Unfinished) else ""
    return render(request, "review.html.j2", rows=rows, unfinished=unfinished)


@router.get("/review/{dataset}", response_class=HTMLResponse)
def dataset_page(request: Request, dataset: str, page: int = 1) -> HTMLResponse:
    """The list. 400 for a filter that there is not."""
    reviewing = _reviewing(request)
    if why := reviewing.nothing(dataset):
        return render(request, "review_nothing.html.j2", dataset=dataset, why=why)
    return _list(request, dataset, page=page)


@router.post("/review/{dataset}/name")
async def name(request: Request, dataset: str) -> Response:
    """Take the reviewer's name, and begin where they left off."""
    fields = await request.form()
    return await run_in_threadpool(_named, request, dataset, {key: str(value) for key, value in fields.items()})


@router.get("/review/{dataset}/question/{question}", response_class=HTMLResponse)
def question_page(request: Request, dataset: str, question: str) -> Response:
    """A question to decide about; whoever has not said a name is asked for it first."""
    material, one = _asked(request, dataset, question)
    if not _reviewer(request):
        return RedirectResponse(f"/review/{quote(dataset)}", 303)
    standing = Standing.of(_reviewing(request).decided(dataset), _reviewer(request))
    form = Form.of(one, standing.own.get(question))
    return _question(request, dataset, material, one, form, Filters.read(request.query_params))


@router.post("/review/{dataset}/question/{question}")
async def decide(request: Request, dataset: str, question: str) -> Response:
    """Keep a decision, then go to the next question. 422 with the text kept where a field can't be used."""
    fields = await request.form()
    return await run_in_threadpool(_decide, request, dataset, question, dict(fields))


@router.post("/review/{dataset}/question/{question}/check")
async def check(request: Request, dataset: str, question: str) -> Response:
    """What is wrong with a wording as it is typed, and what the rules have against it."""
    fields = dict(await request.form())

    def checked() -> Response:
        material, one = _asked(request, dataset, question)
        form = Form.read(fields, one)
        form.check_edit(one, material.rules)
        return JSONResponse({"errors": form.errors, "objections": form.objections})

    return await run_in_threadpool(checked)


@router.post("/review/{dataset}/undo")
async def undo(request: Request, dataset: str) -> Response:
    """Take back the reviewer's last decision and show its question again."""
    fields = await request.form()
    number = str(fields.get("number", ""))
    filters = _filters(fields)

    def undone() -> Response:
        _has_review(request, dataset)
        reviewer = _reviewer(request)
        if not reviewer or not number.isascii() or not number.isdigit() or len(number) > 9:
            raise BadRequest("number: which decision is to be taken back?")
        entry = _reviewing(request).decided(dataset).undo(reviewer, int(number))
        if entry is None or entry.decision is None:
            return RedirectResponse(_url(dataset, filters), 303)
        there = entry.decision.question in _reviewing(request).material(dataset).questions
        return RedirectResponse(_url(dataset, filters, entry.decision.question if there else None), 303)

    return await run_in_threadpool(undone)


@router.post("/review/{dataset}/sheet")
def write_sheet(request: Request, dataset: str) -> Response:
    """Write the sheet where the config can name it."""
    _has_review(request, dataset)
    path = _reviewing(request).sheet(dataset)
    try:
        with OutputFolder(path.parent, "serve").writing(path) as temporary:
            temporary.write_text(_sheet(request, dataset), encoding="utf-8", newline="")
    except OSError as error:
        raise BadInput(f"{path}: can't be written: {error.strerror}") from None
    return RedirectResponse(f"/review/{quote(dataset)}?written=yes#sheet", 303)


@router.get("/review/{dataset}/decisions.csv")
def sheet(request: Request, dataset: str) -> Response:
    """The sheet as a download."""
    _has_review(request, dataset)
    name = f"{dataset}-review.csv"
    return Response(
        _sheet(request, dataset), media_type="text/csv; charset=utf-8",
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )  # fmt: skip


# -- what the routes do ----------------------------------------------------------------------------------------------


def _named(request: Request, dataset: str, fields: Mapping[str, str]) -> Response:
    _has_review(request, dataset)
    filters = Filters.read(fields)
    typed = " ".join(fields.get("name", "").split())
    wrong = wrong_text(typed, LONGEST["name"]) if typed else "Is empty: decisions are kept under a name."
    if wrong:
        return _list(request, dataset, filters=filters, typed=typed, wrong=wrong, status=422)
    # Somebody who comes back is the same person, whether or not they hold the shift key.
    known = {one.casefold(): one for one in _reviewing(request).decided(dataset).reviewers()}
    name = known.get(typed.casefold(), typed)
    material = _reviewing(request).material(dataset)
    standing = Standing.of(_reviewing(request).decided(dataset), name)
    first = next(iter(listed(material, standing, filters)), None)
    answer = RedirectResponse(_url(dataset, filters, first.question if first else None), 303)
    peer = request.client.host if request.client else ""
    secure = request.app.state.options.by_tls(peer, request.headers.get("x-forwarded-proto", ""))
    _names(request).keep(answer, name, secure=secure)
    return answer


def _decide(request: Request, dataset: str, question: str, fields: Mapping[str, object]) -> Response:
    material, one = _asked(request, dataset, question)
    form, filters, reviewer = Form.read(fields, one), _filters(fields), _reviewer(request)
    if not reviewer:
        form.errors["decision"] = "Nobody's decision: say your name on the review's first page, then send this again."
        return _question(request, dataset, material, one, form, filters, status=401)
    decision = form.make(one, reviewer, material.rules)
    if decision is None:
        return _question(request, dataset, material, one, form, filters, status=422)
    decided = _reviewing(request).decided(dataset)
    try:
        decided.add(decision)
    except OSError as error:
        form.errors["decision"] = f"Not kept: {decided.path} can't be written ({error.strerror}). Send it again."
        return _question(request, dataset, material, one, form, filters, status=500)
    _, after = neighbours(material, Standing.of(decided, reviewer), filters, question)
    return RedirectResponse(_url(dataset, filters, after.question if after else None), 303)


def _list(
    request: Request,
    dataset: str,
    *,
    filters: Filters | None = None,
    page: int = 1,
    typed: str = "",
    wrong: str = "",
    status: int = 200,
) -> HTMLResponse:
    reviewing = _reviewing(request)
    filters = filters or Filters.read(request.query_params)
    material, reviewer = reviewing.material(dataset), _reviewer(request)
    standing = Standing.of(reviewing.decided(dataset), reviewer)
    found = listed(material, standing, filters)
    pages = max(1, -(-len(found) // PER_PAGE))
    page = min(max(1, page), pages)
    strays = {question for own in standing.decisions.values() for question in own if question not in material.questions}
    return render(
        request,
        "review_list.html.j2",
        status,
        dataset=dataset,
        material=material,
        standing=standing,
        progress=_progress(request, dataset),
        reviewer=reviewer,
        typed=typed,
        wrong=wrong,
        filters=filters,
        shows=SHOWS,
        states=STATES,
        found=len(found),
        rows=found[(page - 1) * PER_PAGE : page * PER_PAGE],
        page=page,
        pages=pages,
        query=urlencode(filters.items),
        address=lambda question: _url(dataset, filters, question),
        verbs=VERBS,
        last=_last(request, dataset, material, reviewer),
        strays=len(strays),
        longest=LONGEST,
        sheet=_sheet_facts(request, dataset),
    )


def _question(
    request: Request,
    dataset: str,
    material: Material,
    one: Question,
    form: Form,
    filters: Filters,
    status: int = 200,
) -> HTMLResponse:
    catalogue, reviewer = _catalogue(request), _reviewer(request)
    standing = Standing.of(_reviewing(request).decided(dataset), reviewer)
    before, after = neighbours(material, standing, filters, one.question)
    going = [each for each in material.questions.values() if filters.fits(material, each)]
    place = next((place for place, each in enumerate(going, start=1) if each.question == one.question), None)
    study = catalogue.study(dataset, one.study)
    pictures = [each for each in catalogue.pictures(dataset, one.study) if each.depth is None and each.edit is None]
    return render(
        request,
        "review_question.html.j2",
        status,
        dataset=dataset,
        question=one,
        form=form,
        reviewer=reviewer,
        own=standing.own.get(one.question),
        others=standing.others(one.question),
        disputed=standing.disputed.get(one.question, ()),
        progress=_progress(request, dataset),
        place=place,
        going=len(going),
        filters=filters,
        states=STATES,
        verbs=VERBS,
        reasons=REASONS,
        longest=LONGEST,
        previous=_url(dataset, filters, before.question) if before else None,
        following=_url(dataset, filters, after.question) if after else None,
        back=_url(dataset, filters),
        last=_last(request, dataset, material, reviewer),
        trail=material.trail.get(one.question, {}),
        candidate=material.candidate(one.question),
        author=material.section.author,
        validator=material.section.validator,
        objections=problems(Wording(stem=one.stem, options=one.options, answer=one.answer), material.rules),
        report=mark(report_of(study), one.evidence),
        pictures=pictures,
        study_url=_study_url(catalogue, dataset, one),
    )


def _filters(fields: Mapping[str, object]) -> Filters:
    """Those that a form sends along. BadRequest before anything is kept."""
    return Filters.read({key: value for key, value in fields.items() if isinstance(value, str)})


def _study_url(catalogue: Catalogue, dataset: str, one: Question) -> str | None:
    """The study's page, with the question's evidence marked if the run asks the question as it stands here."""
    if isinstance(catalogue, Unfinished):
        return None
    url = f"/study/{quote(dataset, safe='')}/{quote(one.study, safe='')}"
    return f"{url}?question={quote(one.question, safe='')}" if one.question in catalogue.questions(dataset) else url


# -- facts that several pages show -----------------------------------------------------------------------------------


def _progress(request: Request, dataset: str) -> dict[str, Any]:
    """How many of the sample and of all are decided, by this reviewer and by anybody."""
    reviewing = _reviewing(request)
    material, reviewer = reviewing.material(dataset), _reviewer(request)
    standing = Standing.of(reviewing.decided(dataset), reviewer)
    anybody = {question for own in standing.decisions.values() for question in own} & set(material.questions)
    own = set(standing.own) & set(material.questions)
    return {
        "sample": len(material.sampled), "all": len(material.questions), "own": len(own & material.sampled),
        "own_all": len(own), "anybody": len(anybody & material.sampled), "anybody_all": len(anybody),
        "reviewers": [
            {"name": name, "counts": {verb: sum(one.decision == verb for one in of.values()) for verb in VERBS}}
            for name, of in sorted(standing.decisions.items())
        ],
        "disputed": sorted(set(standing.disputed) & set(material.questions)),
    }  # fmt: skip


def _last(request: Request, dataset: str, material: Material, reviewer: str) -> dict[str, Any] | None:
    """The reviewer's last decision, which can be taken back."""
    entry = _reviewing(request).decided(dataset).last(reviewer) if reviewer else None
    if entry is None or entry.decision is None:
        return None
    one = material.questions.get(entry.decision.question)
    return {"number": entry.number, "verb": VERBS[entry.decision.decision], "stem": one.stem if one else "a question"}


def _sheet(request: Request, dataset: str) -> str:
    reviewing = _reviewing(request)
    decisions = reviewing.decided(dataset).by_reviewer()
    made = [one for own in decisions.values() for one in own.values()]
    return decided_sheet(reviewing.material(dataset).questions.values(), made)


def _sheet_facts(request: Request, dataset: str) -> dict[str, Any]:
    """Where the sheet lies, how the config names it, and whether it does already."""
    path = _reviewing(request).sheet(dataset).resolve()
    config = request.app.state.options.config
    named = os.path.relpath(path, config.resolve().parent) if config is not None else str(path)
    decisions = _reviewing(request).material(dataset).section.review.decisions
    return {
        "path": str(_reviewing(request).sheet(dataset)), "named": _in_yaml(named),
        "others": len(decisions), "there": path.is_file(),
        "in_config": any(Path(one).resolve() == path for one in decisions),
        "kept": str(_reviewing(request).decided(dataset).path),
    }  # fmt: skip


def _in_yaml(path: str) -> str:
    """A path as an entry of a list in YAML, between quotes where it could be read otherwise."""
    return path if re.fullmatch(r"[\w./][\w./-]*", path) else json.dumps(path, ensure_ascii=False)


# -- small things ----------------------------------------------------------------------------------------------------


def _catalogue(request: Request) -> Catalogue:
    catalogue: Catalogue = request.app.state.catalogue
    return catalogue


def _reviewing(request: Request) -> Reviewing:
    state = request.app.state
    if not hasattr(state, "reviewing"):
        state.reviewing = Reviewing(state.catalogue)
    reviewing: Reviewing = state.reviewing
    return reviewing


def _has_review(request: Request, dataset: str) -> None:
    if why := _reviewing(request).nothing(dataset):
        raise NotThere(f"nothing of {dataset!r} to review: {why}")


def _asked(request: Request, dataset: str, question: str) -> tuple[Material, Question]:
    _has_review(request, dataset)
    material = _reviewing(request).material(dataset)
    if question not in material.questions:
        raise NotThere(f"no question {question!r} to review in {dataset}; it may have changed since")
    return material, material.questions[question]


def _url(dataset: str, filters: Filters, question: str | None = None) -> str:
    path = f"/review/{quote(dataset, safe='')}" + (f"/question/{quote(question, safe='')}" if question else "")
    return f"{path}?{urlencode(filters.items)}" if filters.items else path


def _names(request: Request) -> Names:
    state = request.app.state
    if not hasattr(state, "reviewers_names"):
        state.reviewers_names = Names(_reviewing(request).folder, _catalogue(request).name)
    names: Names = state.reviewers_names
    return names


def _reviewer(request: Request) -> str:
    """The name that this browser's reviewer has said; empty if none."""
    return _names(request).said(request.cookies)
