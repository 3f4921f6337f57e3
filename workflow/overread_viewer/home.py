"""The first page: which model ignores the image most, one trial that shows it, and the way to everything else."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, Response

from overread.core.inputs import regular
from overread.reporting.rows import number, where
from overread.reporting.words import SPACE
from overread_viewer.catalogue import Catalogue
from overread_viewer.errors import NotThere
from overread_viewer.ignoring import ranking
from overread_viewer.pages import render
from overread_viewer.security import CONTENT_POLICY

router = APIRouter()


@dataclass(frozen=True)
class Source:
    """A dataset as the first page lists it."""

    name: str
    modality: str
    studies: int
    rejected: int
    patients: int
    questions: int
    models: int
    settings: int
    restricted: bool
    semi_synthetic: bool


@router.get("/")
def home(request: Request) -> Response:
    catalogue: Catalogue = request.app.state.catalogue
    return render(
        request,
        "home.html.j2",
        title=str(catalogue.spec.get("title") or catalogue.name),
        level=f"{100 * catalogue.spec['statistics']['level']:g}{SPACE}%",
        rankings=[ranking(catalogue, dataset) for dataset in catalogue.datasets],
        sources=[_source(catalogue, dataset) for dataset in catalogue.datasets],
        tables=catalogue.tables(),
    )


@router.get("/report")
def report(request: Request) -> Response:
    """The run's report as it lies there. Its style stands in the page: a hash of it allows that one and no other."""
    path = request.app.state.catalogue.file("report.html")
    policy = CONTENT_POLICY.replace("style-src 'self'", f"style-src {_style_hashes(path)}")
    return FileResponse(path, media_type="text/html; charset=utf-8", headers={"content-security-policy": policy})


@router.get("/tables/{name}.csv")
def table(request: Request, name: str) -> Response:
    catalogue: Catalogue = request.app.state.catalogue
    if name not in catalogue.tables():
        raise NotThere.named("table", name, catalogue.tables())
    return FileResponse(
        catalogue.file(f"tables/{name}.csv"),
        media_type="text/csv; charset=utf-8",
        filename=f"{catalogue.name}-{name}.csv",
    )


def _source(catalogue: Catalogue, dataset: str) -> Source:
    studies = catalogue.studies(dataset)
    numbers = next(iter(where(catalogue.table("dataset"), dataset=dataset)), {})
    return Source(
        name=dataset,
        modality=next((study.modality for study in studies.values()), ""),
        studies=len(studies),
        rejected=sum(study.problem is not None for study in studies.values()),
        patients=int(number(numbers.get("patients")) or 0),
        questions=len(catalogue.questions(dataset)),
        models=len(catalogue.models(dataset)),
        settings=len(catalogue.settings(dataset)),
        restricted=catalogue.restricted(dataset),
        semi_synthetic=any(study.semi_synthetic for study in studies.values()),
    )


def _style_hashes(path: Path) -> str:
    """The sources of a content policy that allow the style elements of a page, by what stands in them."""
    styles = re.findall(rb"<style[^>]*>(.*?)</style>", regular(path).read_bytes(), flags=re.DOTALL)
    hashes = (base64.b64encode(hashlib.sha256(style).digest()).decode() for style in styles)
    return " ".join(f"'sha256-{one}'" for one in hashes) or "'none'"
