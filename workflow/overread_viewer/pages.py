"""Pages from templates: every text is escaped, and a name that a template does not get is an error."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from fastapi import Request
from fastapi.responses import HTMLResponse

from overread.core.records import Study
from overread.reporting import words

FOLDER = Path(__file__).parent

PARTS = {
    "": "/", "studies": "/studies", "study": "/studies", "trial": "/studies", "ask": "/studies", "compare": "/compare",
    "review": "/review",
}  # fmt: skip
"""Which entry of the navigation a page belongs to, by the first part of its path."""

MODALITIES = {"mri": "brain MRI", "xray": "chest X-ray"}


def render(request: Request, name: str, status: int = 200, **content: Any) -> HTMLResponse:
    """The page of the template `name` in templates/.

    Every template also gets `request`, `navigation`, `part` (of the navigation), `run` (the run's name), `restricted`
    (the datasets that are) and `signed_in` (whether a password was given).
    """
    state = request.app.state
    page = environment().get_template(name).render(
        request=request,
        navigation=state.navigation,
        part=PARTS.get(request.url.path.split("/")[1], ""),
        run=state.catalogue.name,
        restricted=state.catalogue.restricted_datasets,
        signed_in=state.options.password is not None,
        **content,
    )  # fmt: skip
    return HTMLResponse(page, status_code=status)


@cache
def environment() -> jinja2.Environment:
    """Filters: `quoted` (a part of a path or of a query), `percent` (a share as `20.9 %`)."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["quoted"] = quoted
    made.filters["percent"] = words.percent
    made.filters["judged"] = lambda state: "correct" if state == "right" else state
    made.filters["findings"] = findings
    made.filters["tuple_of_two"] = lambda text: (text, text)
    made.filters["modality_pair"] = lambda text: (text, MODALITIES.get(text, text))
    return made


def quoted(text: object) -> str:
    """One part of a path or a query, with every reserved character quoted."""
    return quote(str(text), safe="")


def findings(study: Study) -> list[tuple[str, str]]:
    """What a study shows, as (topic, words): a radiograph's positive findings, the value of each topic of an MRI."""
    if study.modality == "xray":
        return [(topic, topic) for topic, value in study.labels.items() if value == "positive"]
    return list(study.labels.items())
