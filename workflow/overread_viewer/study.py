"""The page of a study: its images, its report, its questions, and what every model answered."""

from __future__ import annotations

import re
from typing import Any, cast
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import Response

from overread.core.records import Picture, Study
from overread.images.files import BRAIN, TUMOUR
from overread.views.slice.drawing import LABEL_NAMES, USUAL_ORDER
from overread_viewer.catalogue import Catalogue
from overread_viewer.errors import BadRequest
from overread_viewer.files import network_masks, picture_url
from overread_viewer.marking import mark
from overread_viewer.matrix import SIGNS, WORDS, By, matrix
from overread_viewer.pages import render

router = APIRouter()

SECTIONS = ("examination", "indication", "technique", "comparison", "findings", "impression")
"""The order in which a report is read; other sections follow by name."""

FIRST = ("FLAIR", "T1c", "T2", "T1")
"""The series to begin with: what shows a glioma best."""

MASK_NAMES = {TUMOUR: "tumour", BRAIN: "brain"}


@router.get("/study/{dataset}/{study}")
def study_page(
    request: Request,
    dataset: str,
    study: str,
    question: str | None = None,
    by: str = "model",
    model: str | None = None,
    setting: str | None = None,
) -> Response:
    """question  whose evidence is marked; by, open (repeated), model and setting are the matrix's"""
    catalogue: Catalogue = request.app.state.catalogue
    found = catalogue.study(dataset, study)
    questions = catalogue.asked_of(dataset, study)
    if by not in ("model", "setting"):
        raise BadRequest(f"by: {by!r}; it is model or setting")
    asked = next((one for one in questions if one.question == question), None)
    if question is not None and asked is None:
        catalogue.question(dataset, question)
        raise BadRequest(f"question {question} is not about study {study}")
    opened = [one for one in request.query_params.getlist("open") if one]
    table = matrix(
        catalogue, dataset, questions, by=cast(By, by), opened=opened, model=model or None, setting=setting or None
    )
    others = [one.study for one in catalogue.studies(dataset).values() if one.patient == found.patient]
    before, after = _neighbours(list(catalogue.studies(dataset)), study)
    return render(
        request,
        "study.html.j2",
        dataset=dataset,
        study=found,
        is_restricted=catalogue.restricted(dataset),
        shown=viewer(catalogue, found),
        has_images=bool(found.images),
        pictures=[(one, picture_url(dataset, one.path)) for one in catalogue.pictures(dataset, study)],
        report=mark(report_of(found), asked.evidence if asked else ""),
        asked=asked,
        questions=questions,
        labels=dict(sorted(found.labels.items())),
        attributes=dict(sorted(found.attributes.items())),
        others=sorted(others),
        before=before,
        after=after,
        matrix=table,
        models={one: catalogue.label(one) for one in catalogue.models(dataset)},
        settings=catalogue.settings(dataset),
        model=model,
        setting=setting,
        signs=SIGNS,
        words=WORDS,
        can_ask=any(getattr(route, "path", "").startswith("/ask/") for route in request.app.routes),
    )


def report_of(study: Study) -> dict[str, str]:
    """The sections of a report in the order in which it is read."""
    order = [*SECTIONS, *sorted(set(study.report) - set(SECTIONS))]
    return {name: study.report[name] for name in order if study.report.get(name, "").strip()}


def viewer(catalogue: Catalogue, study: Study) -> dict[str, Any]:
    """What the viewer's script needs: series, masks and the models' slices of an MRI, or the views of a radiograph."""
    if study.modality == "xray":
        views = sorted(study.images, key=lambda name: (name != "frontal", name))
        return {"series": [], "images": [{"name": name, **_urls("image", study, name)} for name in views]}
    order = [name for name in USUAL_ORDER if name in study.images]
    order += sorted(set(study.images) - set(order))
    shown = [name for name in order if name not in MASK_NAMES]
    first = [name for name in FIRST if name in shown] or shown
    return {
        "images": [],
        "series": [{"name": name, **_urls("series", study, name, ".nii.gz")} for name in shown],
        "first": first,
        "masks": _masks(catalogue, study),
        "labels": {str(label): name for label, name in LABEL_NAMES.items()},
        "slices": slices([one for one in catalogue.pictures(study.dataset, study.study) if one.edit is None]),
    }


def slices(pictures: list[Picture]) -> list[dict[str, Any]]:
    """Where the models looked: the slice of each flat picture, in RAS+ millimetres along its normal, with its window.

    Of a stack of slices only the first and the last are told: a button for each would hide the others.
    """
    stacks: dict[str, list[Picture]] = {}
    for one in pictures:
        if one.plane is not None and one.position_mm is not None:
            stacks.setdefault(one.view, []).append(one)
    found = []
    for view, several in stacks.items():
        chosen = several if len(several) <= 6 else [several[0], several[len(several) // 2], several[-1]]
        for one in chosen:
            assert one.position_mm is not None
            window = WINDOW.match(one.scaling or "")
            found.append(
                {
                    "view": view,
                    "name": one.name,
                    "series": one.series,
                    "plane": one.plane,
                    # Positions are told as DICOM does, to the left, to the back and upwards; the viewer is in RAS+.
                    "mm": one.position_mm if one.plane == "axial" else -one.position_mm,
                    "chosen": one.chosen_by,
                    "window": [float(window[1]), float(window[2])] if window else None,
                }
            )
    return found


WINDOW = re.compile(r"(-?[\d.]+(?:e[+-]?\d+)?) to (-?[\d.]+(?:e[+-]?\d+)?): ")
"""How `views.slice` begins to say what is black and what is white."""


def _masks(catalogue: Catalogue, study: Study) -> list[dict[str, str]]:
    """Tumour and brain masks: a network's where the run uses one, and the data set's own."""
    made = network_masks(catalogue, study.dataset, study.study)
    found = [
        {"kind": kind, "name": f"{kind}, by the network", **_urls("mask", study, kind, ".nii.gz")}
        for kind in sorted(made)
    ]
    for series, kind in MASK_NAMES.items():
        if series in study.images:
            name = f"{kind}, of the data set" if kind in made else kind
            found.append({"kind": kind, "name": name, **_urls("series", study, series, ".nii.gz")})
    return found


def _urls(route: str, study: Study, name: str, suffix: str = "") -> dict[str, str]:
    place = "/".join(quote(part, safe="") for part in (study.dataset, study.study, name))
    return {"url": f"/files/{route}/{place}{suffix}", "facts": f"/files/facts/{route}/{place}"}


def _neighbours(names: list[str], study: str) -> tuple[str | None, str | None]:
    place = names.index(study)
    return (names[place - 1] if place else None, names[place + 1] if place + 1 < len(names) else None)
