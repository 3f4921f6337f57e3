"""The pages of a reader study: a rater's personal link leads to their questions, the organiser's to the progress.

Nothing else is served in a study. The given answer is in no page, header or file before the rater's own answer is
stored; nor is the question's id, from which the answer could be worked out, since it is a hash of both.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse, Response
from fastapi.routing import APIRoute

from overread.core.errors import BadInput, OverreadError
from overread.core.records import Picture
from overread_viewer import reading_images
from overread_viewer.options import Options
from overread_viewer.pages import render
from overread_viewer.readers import ratings
from overread_viewer.readers.database import Item, NotInOrder, Rater, is_damaged
from overread_viewer.readers.forms import BadForm, judgement_of, posted, reading_of
from overread_viewer.readers.guesses import Guesses
from overread_viewer.readers.opening import ReaderStudy, open_study

KINDS = {"practice": True, "question": False}


def attach(app: FastAPI, file: Path) -> ReaderStudy:
    """Open the study of a readers.yaml for the app's pages, and begin it if it has not begun.

    raises   BadConfig or BadInput for a file, a run or a database that does not fit
    """
    app.state.guesses = Guesses()
    app.state.reader_study = study = open_study(file, app.state.catalogue)
    return study


class Ended(Exception):
    """A request that is answered with another page than the one asked for: a wrong link, a question not reached."""

    def __init__(self, response: Response) -> None:
        self.response = response


class StudyRoute(APIRoute):
    """No browser keeps a page of a study; what can't be stored is said, and never taken for stored."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                response = await handler(request)
            except Ended as ended:
                response = ended.response
            except sqlite3.DatabaseError as error:
                path = request.app.state.reader_study.database.path
                if is_damaged(error):
                    raise BadInput(f"{path}: damaged, or overwritten while it was served: {error}") from error
                text = f"The database {path.name} can’t be written now ({error}). Please try again."
                response = _problem(request, 503, "Not stored", text)
            response.headers["cache-control"] = "no-store"
            return response

        return handled


router = APIRouter(prefix="/read", route_class=StudyRoute)


@dataclass(frozen=True)
class Visit:
    """Who came, to which study; `rater` is none for the organiser."""

    study: ReaderStudy
    token: str
    rater: Rater | None

    @property
    def home(self) -> str:
        return f"/read/{self.token}"

    def page(self, practice: bool, place: int) -> str:
        return f"{self.home}/{'practice' if practice else 'question'}/{place}"


def visit(request: Request, token: str) -> Visit:
    """Who holds this link. Every known link is compared, each in constant time.

    raises   Ended: 404 for a link that is none, 429 for an address that tries too many
    """
    study: ReaderStudy | None = getattr(request.app.state, "reader_study", None)
    if study is None:
        raise Ended(_problem(request, 404, "No such link", "There is no reader study here."))
    holders = {one.token: one for one in study.database.raters() if one.open}
    found: str | None = None
    for known in (study.database.organiser(), *holders):
        if secrets.compare_digest(known.encode(), token.encode()):
            found = known
    who = None if found is None else holders[found].rater if found in holders else "the organiser"
    guesses: Guesses = request.app.state.guesses
    if wait := guesses.wait(_address(request), who):
        text = f"Too many wrong links came from this address. Please try again in {wait} seconds."
        raise Ended(_problem(request, 429, "Please wait", text, headers={"retry-after": str(wait)}))
    if found is None:
        text = "This link opens nothing. Was it copied whole? The organiser of the study can send it again."
        raise Ended(_problem(request, 404, "No such link", text))
    return Visit(study, found, holders.get(found))


def _address(request: Request) -> str:
    options: Options = request.app.state.options
    return options.address(request.client.host if request.client else "", request.headers.get("x-forwarded-for", ""))


async def fields(request: Request) -> dict[str, str] | BadForm:
    """The fields of the posted form, or what is wrong with it: that is said once the link is known to be good."""
    try:
        return posted(await request.body(), request.headers.get("content-type", ""))
    except BadForm as error:
        return error


Here = Annotated[Visit, Depends(visit)]
Fields = Annotated[dict[str, str] | BadForm, Depends(fields)]


@router.get("/{token}")
def start(request: Request, here: Here) -> Response:
    """A rater's first page, and the one to come back to: how it works, how far they are, on with it."""
    if here.rater is None:
        return _organiser(request, here)
    following = here.study.database.next_place(here.rater.rater)
    mine = next(one for one in here.study.database.progress() if one.rater.rater == here.rater.rater)
    return render(
        request, "reading/start.html.j2", **_frame(here), mine=mine,
        following=here.page(*following) if following else None,
        after_practice=following == (False, 1) and mine.practice > 0 and mine.read == 0,
        pause="pause" in request.query_params,
    )  # fmt: skip


@router.get("/{token}/ratings.csv")
def ratings_file(request: Request, here: Here) -> Response:
    _for_organiser(request, here)
    name = here.study.fixed.name
    headers = {"content-disposition": f'attachment; filename="{name}-ratings.csv"'}
    return Response(ratings.as_csv(here.study.database), media_type="text/csv; charset=utf-8", headers=headers)


@router.post("/{token}/export")
def export(request: Request, here: Here) -> Response:
    """Write ratings.csv where readers.yaml wants it."""
    _for_organiser(request, here)
    path = Path(here.study.readers.ratings)
    try:
        said = f"{ratings.export(here.study.database, path)} ratings written: {path}"
    except OSError as error:
        return _organiser(request, here, f"{path}: not written: {error.strerror}", 500)
    return _organiser(request, here, said)


@router.get("/{token}/{kind}/{place}")
def question(request: Request, here: Here, kind: str, place: str) -> Response:
    rater, item = _item(request, here, kind, place)
    if item.first_seen is None and _has_images(here.study, item):
        here.study.database.seen(rater.rater, item.asked.question)
    return render(request, "reading/question.html.j2", **_question(here, item))


@router.post("/{token}/{kind}/{place}/reading")
def store_reading(request: Request, here: Here, kind: str, place: str, form: Fields) -> Response:
    """The first part. Sent twice, it is stored once; sent again with another answer, it changes nothing."""
    rater, item = _item(request, here, kind, place)
    try:
        sent = reading_of(_good(form), item)
        stored = here.study.database.store_reading(rater.rater, item.asked.question, sent)
    except BadForm as error:
        return _again(request, here, item, str(error))
    except NotInOrder:
        return RedirectResponse(here.page(item.asked.practice, item.place), 303)
    if (stored.chosen, stored.confidence, stored.answerable) != (sent.chosen, sent.confidence, sent.answerable):
        return _already(request, here, item)
    return RedirectResponse(here.page(item.asked.practice, item.place), 303)


@router.post("/{token}/{kind}/{place}/judgement")
def store_judgement(request: Request, here: Here, kind: str, place: str, form: Fields) -> Response:
    """The second part. It needs the first."""
    rater, item = _item(request, here, kind, place)
    try:
        sent = judgement_of(_good(form))
        stored = here.study.database.store_judgement(rater.rater, item.asked.question, sent)
    except BadForm as error:
        return _again(request, here, item, str(error))
    except NotInOrder:
        text = "Your own answer comes first: it is not stored yet."
        return _problem(request, 409, "Not stored", text, here.page(item.asked.practice, item.place))
    if stored != sent:
        return _already(request, here, item)
    following = here.study.database.next_place(rater.rater)
    pause = here.study.readers.break_after
    if following is None or following == (False, 1):
        return RedirectResponse(here.home, 303)
    if pause and not item.asked.practice and item.place % pause == 0:
        return RedirectResponse(f"{here.home}?pause", 303)
    return RedirectResponse(here.page(*following), 303)


@router.get("/{token}/{kind}/{place}/picture/{number}")
def picture(request: Request, here: Here, kind: str, place: str, number: str) -> Response:
    """A picture of a question that this rater has reached, by its number on the page."""
    _, item = _item(request, here, kind, place)
    shown = here.study.pictures(item.asked.study)
    path = None
    if _counts(number) and int(number) <= len(shown):
        path = here.study.run.folder(here.study.dataset) / shown[int(number) - 1].path
    if path is None or not path.is_file():
        raise Ended(_problem(request, 404, "No such picture", "There is no such picture."))
    return FileResponse(path, media_type="image/png")


@router.get("/{token}/{kind}/{place}/series/{number}")
def series(request: Request, here: Here, kind: str, place: str, number: str) -> Response:
    """A whole series, or the pixels of a radiograph, of a question that this rater has reached."""
    return _viewed(request, here, kind, place, number, facts=False)


@router.get("/{token}/{kind}/{place}/facts/{number}")
def facts(request: Request, here: Here, kind: str, place: str, number: str) -> Response:
    """What the viewer needs to know of it."""
    return _viewed(request, here, kind, place, number, facts=True)


def _viewed(request: Request, here: Visit, kind: str, place: str, number: str, *, facts: bool) -> Response:
    _, item = _item(request, here, kind, place)
    names = here.study.series(item.asked.study)
    if not _counts(number) or int(number) > len(names):
        raise Ended(_problem(request, 404, "No such series", "There is no such series."))
    catalogue, dataset, study = request.app.state.catalogue, here.study.dataset, item.asked.study
    try:
        return reading_images.sent(catalogue, dataset, study, names[int(number) - 1], facts=facts)
    except OverreadError:  # it names files and studies, which are not for raters
        return JSONResponse({"problem": "Please tell the organiser of the study."}, 422)


# -- what the pages share --------------------------------------------------------------------------------------------


def _item(request: Request, here: Visit, kind: str, place: str) -> tuple[Rater, Item]:
    """The rater and the question at one of their places, if it has its turn or had it."""
    rater, item = here.rater, None
    if rater is not None and kind in KINDS and _counts(place):
        item = here.study.database.item(rater.rater, KINDS[kind], int(place))
    if rater is None or item is None:
        raise Ended(_problem(request, 404, "No such question", "There is no such question.", here.home))
    following = here.study.database.next_place(rater.rater)
    if item.judgement is None and following is not None and (item.asked.practice, item.place) != following:
        if request.method == "GET":
            raise Ended(RedirectResponse(here.page(*following), 303))
        text = "This question has not had its turn yet. Nothing was stored."
        raise Ended(_problem(request, 409, "Not yet", text, here.page(*following)))
    return rater, item


def _question(here: Visit, item: Item, wrong: str = "") -> dict[str, Any]:
    """What the template of a question gets. The given answer is in it only once the rater's own is stored."""
    asked, own = item.asked, item.reading
    return {
        **_frame(here),
        "page": here.page(asked.practice, item.place),
        "practice": asked.practice,
        "place": item.place,
        "of": item.of,
        "stem": asked.stem,
        "options": [asked.options[place] for place in item.shown],
        "reading": own,
        "own": None if own is None or own.chosen is None else asked.options[own.chosen],
        "given": None if own is None else asked.options[asked.answer],
        "judgement": item.judgement,
        "earlier": here.page(asked.practice, item.place - 1) if item.place > 1 else None,
        "later": here.page(asked.practice, item.place + 1) if item.judgement and item.place < item.of else here.home,
        "pictures": [(picture.name, reading_images.sides(picture)) for picture in _pictures(here.study, item)],
        "has_images": _has_images(here.study, item),
        "shown": reading_images.content(here.study, item.asked.study, here.page(asked.practice, item.place)),
        "wrong": wrong,
    }


def _pictures(study: ReaderStudy, item: Item) -> list[Picture]:
    """None where the run has lost the study that the question is about."""
    try:
        return study.pictures(item.asked.study)
    except OverreadError:
        return []


def _has_images(study: ReaderStudy, item: Item) -> bool:
    try:
        return bool(study.pictures(item.asked.study) or study.series(item.asked.study))
    except (OverreadError, KeyError):
        return False


def _frame(here: Visit) -> dict[str, Any]:
    return {"study": here.study, "rater": here.rater, "home": here.home}


def _counts(number: str) -> bool:
    return number.isascii() and number.isdigit() and len(number) <= 6 and int(number) > 0


def _good(form: dict[str, str] | BadForm) -> dict[str, str]:
    if isinstance(form, BadForm):
        raise form
    return form


def _again(request: Request, here: Visit, item: Item, wrong: str) -> Response:
    return render(request, "reading/question.html.j2", 422, **_question(here, item, wrong))


def _already(request: Request, here: Visit, item: Item) -> Response:
    text = "This was answered before, with another answer. What was stored first stands and can’t be changed."
    back = here.page(item.asked.practice, item.place)
    return _problem(request, 409, "Stored before", text, back)


def _for_organiser(request: Request, here: Visit) -> None:
    if here.rater is not None:
        raise Ended(_problem(request, 404, "Not there", "There is no such page.", here.home))


def _organiser(request: Request, here: Visit, said: str = "", status: int = 200) -> Response:
    study = here.study
    return render(
        request, "reading/organiser.html.j2", status, **_frame(here), progress=study.database.progress(),
        links={one.rater: link for one, link in study.links(str(request.base_url).rstrip("/"))},
        remarks=study.remarks, said=said, ratings=study.readers.ratings,
    )  # fmt: skip


def _problem(
    request: Request, status: int, title: str, text: str, back: str = "", headers: dict[str, str] | None = None
) -> Response:
    page = render(request, "reading/problem.html.j2", status, title=title, text=text, back=back)
    page.headers.update(headers or {})
    return page
