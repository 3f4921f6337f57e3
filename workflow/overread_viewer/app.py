"""The viewer as an ASGI app: the routers, the guard around them, and what happens when something is not there."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from overread.core.errors import BadInput
from overread_viewer import ask, compare, files, home, login, reading, review, studies, study, trial
from overread_viewer.catalogue import Catalogue
from overread_viewer.errors import BadRequest, NotThere
from overread_viewer.options import Options
from overread_viewer.pages import render
from overread_viewer.security import HEADERS, Guard
from overread_viewer.unfinished import Unfinished, open_run

PAGES = (home, studies, study, trial, files, compare, ask, review)
STUDY_PAGES = (reading,)
"""All that a reader study serves: no answers, no models, no tables."""
REVIEW_PAGES = (files, review)
"""All that a run serves whose models have not answered yet."""
STATIC = Path(__file__).parent / "static"


def create_app(options: Options) -> FastAPI:
    """The app for a run's folder.

    raises  BadInput if the folder is not that of a finished run, or of one whose questions are there to be reviewed
    """
    catalogue = open_run(options.results) if options.readers is None else Catalogue(options.results)
    only_review = isinstance(catalogue, Unfinished)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if options.readers is None:
            threading.Thread(target=_load, args=(catalogue,), name="catalogue", daemon=True).start()
        yield
        if options.readers is not None:
            app.state.reader_study.database.close()

    app = FastAPI(title="Overread", openapi_url=None, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.options, app.state.catalogue = options, catalogue
    app.state.login = login.Login(options.password) if options.password is not None else None
    app.state.navigation = _navigation(options, only_review=only_review)
    for module in (login, *(STUDY_PAGES if options.readers is not None else REVIEW_PAGES if only_review else PAGES)):
        app.include_router(module.router)
    if only_review:
        app.add_api_route("/", lambda: RedirectResponse("/review", 303))
    if options.readers is not None:
        reading.attach(app, options.readers)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_exception_handler(NotThere, _not_there)
    app.add_exception_handler(BadRequest, _bad_request)
    app.add_exception_handler(RequestValidationError, _bad_request)
    app.add_exception_handler(BadInput, _unreadable)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _defect)
    app.add_middleware(
        Guard,
        options=options,
        restricted=lambda: _is_restricted(catalogue),
        signed_in=app.state.login.signed_in if app.state.login is not None else None,
    )
    return app


def _navigation(options: Options, *, only_review: bool) -> list[tuple[str, str]]:
    """Addresses and names at the top of every page; a rater has none, and what is there alone needs none."""
    if options.readers is not None:
        return []
    if only_review:
        return [("/review", "Review")]
    return [("/", "Overview"), ("/studies", "Studies"), ("/compare", "Compare"), ("/review", "Review")]


def _is_restricted(catalogue: Catalogue) -> bool:
    """Whether any dataset is; what can't be read counts as restricted."""
    try:
        return bool(catalogue.restricted_datasets)
    except BadInput:
        return True


def _load(catalogue: Catalogue) -> None:
    """A damaged file is not this thread's to report: the page that needs it says so."""
    try:
        catalogue.load()
    except BadInput:
        return


def _not_there(request: Request, error: Exception) -> Response:
    return render(request, "error.html.j2", 404, title="Not there", message=str(error))


def _bad_request(request: Request, error: Exception) -> Response:
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        message = f"{'.'.join(str(part) for part in first['loc'][1:])}: {first['msg']}"
    else:
        message = str(error)
    return render(request, "error.html.j2", 400, title="That can't be used", message=message)


def _unreadable(request: Request, error: Exception) -> Response:
    message = str(error)
    try:
        return render(request, "error.html.j2", 500, title="A file of the run can't be read", message=message)
    except BadInput:  # the frame of a page needs the studies, which may be what can't be read
        return PlainTextResponse(f"A file of the run can't be read: {message}", 500)


def _defect(request: Request, error: Exception) -> Response:
    """Answered outside the guard, so that its headers are set here. The traceback goes to the terminal alone."""
    text = "Something went wrong that should not; the terminal of `overread serve` says what."
    return PlainTextResponse(text, 500, {**HEADERS, "cache-control": "no-store"})


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    titles = {404: "Not there", 405: "Not allowed"}
    messages = {404: "There is no such page."}
    title = titles.get(error.status_code, "That did not work")
    page = render(
        request, "error.html.j2", error.status_code, title=title,
        message=messages.get(error.status_code, str(error.detail)),
    )  # fmt: skip
    page.headers.update(error.headers or {})
    return page
