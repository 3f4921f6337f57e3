"""Images and volumes of a run, by the names that its records hold. No path comes from a request.

A picture is sent if a Picture or a trial's block names it and it lies in the dataset's folder; a series or a radiograph
if the study names it and it lies in the run's folder or in a folder that the config names for the data set. Links are
resolved before that is asked, and followed out of those folders only where the config says `follow_links`.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, JSONResponse, Response

from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.records import Study
from overread.sources.shared.paths import DataRoot
from overread_viewer.catalogue import Catalogue
from overread_viewer.errors import NotThere
from overread_viewer.radiographs import Radiographs
from overread_viewer.volumes import Scan, Volumes, geometry_of, tag_of

router = APIRouter()

MASKS = {"tumour": "tumor_segmentation", "brain": "brain_segmentation"}
"""What a network's masks are called here, and in a study."""

PACKED, OCTETS = "application/gzip", "application/octet-stream"
TYPES = {".png": "image/png", ".gz": PACKED}

NOT_KEPT = {"cache-control": "no-store"}


@cache
def _volumes() -> Volumes:
    return Volumes()


@cache
def _radiographs() -> Radiographs:
    return Radiographs()


# -- routes ----------------------------------------------------------------------------------------------------------


@router.get("/files/picture/{dataset}/{path:path}")
def picture(request: Request, dataset: str, path: str) -> Response:
    """A picture as the model saw it."""
    catalogue = request.app.state.catalogue
    file = picture_file(catalogue, dataset, path)
    return _send_file(request, file, TYPES.get(file.suffix, OCTETS), catalogue.restricted(dataset))


@router.get("/files/difference/{dataset}/{study}/{path:path}")
def difference(request: Request, dataset: str, study: str, path: str) -> Response:
    """What an edit changed in a picture: grey where nothing is, brighter or darker by half as much as it became."""
    catalogue = request.app.state.catalogue
    picture = next((one for one in catalogue.pictures(dataset, study) if one.path == path), None)
    plain = catalogue.unedited(dataset, picture) if picture is not None else None
    if picture is None or plain is None or picture.depth is not None:
        raise NotThere(f"no picture {path!r} of {study} in {dataset} that is edited and that was shown as it is, too")
    content = difference_of(*(picture_file(catalogue, dataset, one.path) for one in (plain, picture)))
    return _send_bytes(request, content, tag_of(content), TYPES[".png"], catalogue.restricted(dataset))


def difference_of(before: Path, after: Path) -> bytes:
    """A PNG of two pictures of one size. NotThere if they are of two."""
    import numpy as np
    from PIL import Image

    one, two = (np.asarray(Image.open(regular(path)).convert("L")).astype(np.int16) for path in (before, after))
    if one.shape != two.shape:
        raise NotThere(f"{before.name} and {after.name} are not of one size")
    found = io.BytesIO()
    Image.fromarray(np.clip(128 + (two - one) / 2, 0, 255).astype(np.uint8)).save(found, "PNG")
    return found.getvalue()


@router.get("/files/facts/picture/{dataset}/{path:path}")
def picture_facts(request: Request, dataset: str, path: str) -> Response:
    """What a browser needs to know of a volume that a model saw."""
    catalogue = request.app.state.catalogue
    return _facts(lambda: _volumes().scan(picture_file(catalogue, dataset, path)).facts)


@router.get("/files/series/{dataset}/{study}/{series}.nii.gz")
def series(request: Request, dataset: str, study: str, series: str) -> Response:
    """A study's series."""
    catalogue = request.app.state.catalogue
    scan = _series_scan(catalogue, dataset, study, series)
    return _send_scan(request, scan, catalogue.restricted(dataset))


@router.get("/files/facts/series/{dataset}/{study}/{series}")
def series_facts(request: Request, dataset: str, study: str, series: str) -> Response:
    catalogue = request.app.state.catalogue
    return _facts(lambda: _series_scan(catalogue, dataset, study, series).facts)


def _series_scan(catalogue: Catalogue, dataset: str, study: str, series: str) -> Scan:
    path = series_file(catalogue, dataset, study, series)
    return _volumes().scan(path, geometry_of(catalogue.study(dataset, study)))


@router.get("/files/mask/{dataset}/{study}/{mask}.nii.gz")
def mask(request: Request, dataset: str, study: str, mask: str) -> Response:
    """A mask that a network made for a study."""
    catalogue = request.app.state.catalogue
    scan = _volumes().scan(mask_file(catalogue, dataset, study, mask))
    return _send_scan(request, scan, catalogue.restricted(dataset))


@router.get("/files/facts/mask/{dataset}/{study}/{mask}")
def mask_facts(request: Request, dataset: str, study: str, mask: str) -> Response:
    catalogue = request.app.state.catalogue
    return _facts(lambda: _volumes().scan(mask_file(catalogue, dataset, study, mask)).facts)


@router.get("/files/image/{dataset}/{study}/{view}")
def image(request: Request, dataset: str, study: str, view: str) -> Response:
    """The pixels of a radiograph, as `radiographs.Pixels` has them."""
    catalogue = request.app.state.catalogue
    pixels = _radiographs().pixels(series_file(catalogue, dataset, study, view))
    return _send_bytes(request, pixels.content, pixels.tag, OCTETS, catalogue.restricted(dataset))


@router.get("/files/facts/image/{dataset}/{study}/{view}")
def image_facts(request: Request, dataset: str, study: str, view: str) -> Response:
    catalogue = request.app.state.catalogue
    return _facts(lambda: _radiographs().pixels(series_file(catalogue, dataset, study, view)).facts)


def picture_url(dataset: str, path: str) -> str:
    return f"/files/picture/{quote(dataset, safe='')}/{quote(path)}"


# -- which files -----------------------------------------------------------------------------------------------------


def picture_file(catalogue: Catalogue, dataset: str, path: str) -> Path:
    """The file of a picture. NotThere if no record names it, or it is not in the dataset's folder."""
    file = catalogue.picture_at(dataset, path)
    if file is None:
        raise NotThere(f"no picture {path!r} in {dataset}")
    return _there(file, _of_the_run(catalogue, dataset), f"picture {path!r}")


def series_file(catalogue: Catalogue, dataset: str, study: str, series: str) -> Path:
    """The file of a series or a radiograph of a study.

    raises  NotThere if the study names none, if it is gone, or if it lies outside the run's and the data set's folders
    """
    found = catalogue.study(dataset, study)
    if series not in found.images:
        raise NotThere.named("series", series, sorted(found.images))
    name = f"{series} of {study}"
    return _there(_located(catalogue, found, found.images[series]), roots(catalogue, dataset), name)


def mask_file(catalogue: Catalogue, dataset: str, study: str, mask: str) -> Path:
    """The file of a network's mask, `tumour` or `brain`."""
    made = network_masks(catalogue, dataset, study)
    if mask not in made:
        raise NotThere.named("mask", mask, sorted(made))
    return _there(made[mask], _of_the_run(catalogue, dataset), f"{mask} mask of {study}")


def network_masks(catalogue: Catalogue, dataset: str, study: str) -> dict[str, Path]:
    """The masks that a network made for a study, by name; none where the config asks for none."""
    from overread.images.segmentation.result import with_masks

    segmentation = catalogue.spec["datasets"].get(dataset, {}).get("segmentation") or {}
    if segmentation.get("method", "provided") == "provided":
        return {}
    found = catalogue.study(dataset, study)
    try:
        masked, _ = with_masks(found, catalogue.folder(dataset) / "images" / study / "segmentation" / "mask.json")
    except BadInput:
        return {}  # the study could not be segmented: its problem says why
    made = {name: masked.images.get(series) for name, series in MASKS.items()}
    own = {name: found.images.get(series) for name, series in MASKS.items()}
    return {name: Path(path) for name, path in made.items() if path is not None and path != own[name]}


def _of_the_run(catalogue: Catalogue, dataset: str) -> list[DataRoot]:
    return [DataRoot(catalogue.folder(dataset))]


def roots(catalogue: Catalogue, dataset: str) -> list[DataRoot]:
    """The folders that files of a data set's studies may lie in: the run's, and those that the config names."""
    section = catalogue.section(dataset)
    follow = bool(getattr(section, "follow_links", False))
    named = [DataRoot(_based(catalogue, Path(folder)), follow_links=follow) for folder in section.folders]
    own = [catalogue.results, catalogue.results.resolve()]  # records name either, where the folder is a link
    return [*map(DataRoot, own), *named]


def _based(catalogue: Catalogue, path: Path) -> Path:
    """A path of the run's records: those that are relative start where the run was started, beside results/."""
    return path if path.is_absolute() else catalogue.results.resolve().parent.parent / path


def _located(catalogue: Catalogue, study: Study, text: str) -> Path:
    """The file of a series. What a run made itself moves with the run's folder."""
    path = _based(catalogue, Path(text))
    if catalogue.section(study.dataset).place is not None:
        return path
    if not path.exists() or DataRoot(catalogue.results).problem(path) is not None:
        start = (catalogue.name, study.dataset, "source")
        for place in range(len(path.parts) - len(start), -1, -1):
            if path.parts[place : place + len(start)] == start:
                return catalogue.results.joinpath(*path.parts[place + 1 :])
    return path


def _there(path: Path, allowed: list[DataRoot], name: str) -> Path:
    if all(root.problem(path) is not None for root in allowed):
        raise NotThere(f"{name}: its file lies outside the folders of this run and of its data set, and is not shown")
    if not path.exists():
        raise NotThere(f"{name}: its file is no longer where it was when the run was made")
    return path


# -- sending ---------------------------------------------------------------------------------------------------------


def _facts(make: Callable[[], dict[str, Any]]) -> Response:
    """What is wrong with a file goes to the script that wanted it, in a line for a person."""
    try:
        return JSONResponse(make())
    except NotThere as error:
        return JSONResponse({"problem": str(error)}, 404)
    except BadInput as error:
        return JSONResponse({"problem": str(error)}, 422)


def _send_scan(request: Request, scan: Scan, restricted: bool) -> Response:
    if isinstance(scan.content, bytes):
        return _send_bytes(request, scan.content, scan.tag, PACKED, restricted)
    return _send_file(request, scan.content, PACKED, restricted)


def _send_file(request: Request, path: Path, media_type: str, restricted: bool) -> Response:
    """With a tag, and in parts if they are asked for; what is restricted whole, and never to be kept."""
    if restricted:
        return Response(regular(path).read_bytes(), media_type=media_type, headers=NOT_KEPT)
    state = path.stat()
    tag = f'"{state.st_mtime_ns:x}-{state.st_size:x}"'
    if _has(request, tag):
        return Response(status_code=304, headers={"etag": tag})
    return FileResponse(path, media_type=media_type, headers={"etag": tag})


def _send_bytes(request: Request, content: bytes, tag: str, media_type: str, restricted: bool) -> Response:
    if restricted:
        return Response(content, media_type=media_type, headers=NOT_KEPT)
    if _has(request, tag):
        return Response(status_code=304, headers={"etag": tag})
    return Response(content, media_type=media_type, headers={"etag": tag})


def _has(request: Request, tag: str) -> bool:
    """Whether the browser already holds this version."""
    return tag in [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
