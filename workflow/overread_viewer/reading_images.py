"""What the viewer of the other pages needs to show a rater whole series: no masks, and no slice that a model saw."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from fastapi.responses import JSONResponse, Response

from overread.core.inputs import regular
from overread.core.records import Picture
from overread_viewer import files
from overread_viewer.catalogue import Catalogue
from overread_viewer.errors import NotThere
from overread_viewer.radiographs import Radiographs
from overread_viewer.readers.opening import ReaderStudy
from overread_viewer.study import FIRST
from overread_viewer.volumes import Volumes, geometry_of


@cache
def volumes() -> Volumes:
    return Volumes()


@cache
def radiographs() -> Radiographs:
    return Radiographs()


def content(study: ReaderStudy, name: str, page: str) -> dict[str, Any]:
    """The content of study/volumes.html.j2 (`series`) or study/radiograph.html.j2 (`images`); both empty if neither.

    page   the question's page, under which its files lie
    """
    try:
        names = study.series(name)
        flat = study.run.studies(study.dataset)[name].modality == "xray"
    except (NotThere, KeyError):
        names, flat = [], False
    numbered = [
        {"name": one, "url": f"{page}/series/{number}", "facts": f"{page}/facts/{number}"}
        for number, one in enumerate(names, start=1)
    ]
    first = [one for one in FIRST if one in names] if study.fixed.series == "all" else names
    return {
        "images": numbered if flat else [],
        "series": [] if flat else numbered,
        "first": first or names,
        "masks": [],
        "labels": {},
        "slices": [],
    }


SIDES = re.compile(r"left to right: (\w+) to (\w+); top to bottom: (\w+) to (\w+)")


def sides(picture: Picture) -> dict[str, str]:
    """The patient's sides at the edges of a picture, as DICOM's letters by `left`, `right`, `top` and `bottom`; empty
    where the picture does not say."""
    found = SIDES.fullmatch(picture.orientation or "")
    return dict(zip(("left", "right", "top", "bottom"), found.groups(), strict=True)) if found else {}


def sent(catalogue: Catalogue, dataset: str, study: str, series: str, *, facts: bool) -> Response:
    """A series as gzipped NIfTI, or a radiograph's pixels; or what the viewer needs to know of it.

    raises   NotThere or BadInput for a file that can't be shown
    """
    path = files.series_file(catalogue, dataset, study, series)
    if catalogue.study(dataset, study).modality == "xray":
        pixels = radiographs().pixels(path)
        return JSONResponse(pixels.facts) if facts else Response(pixels.content, media_type=files.OCTETS)
    scan = volumes().scan(path, geometry_of(catalogue.study(dataset, study)))
    if facts:
        return JSONResponse(scan.facts)
    whole = scan.content if isinstance(scan.content, bytes) else regular(scan.content).read_bytes()
    return Response(whole, media_type=files.PACKED)
