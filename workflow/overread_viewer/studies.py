"""The list of studies, filtered by what the address says: it works without a script and can be kept as a link."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from overread_viewer.catalogue import Catalogue
from overread_viewer.errors import NotThere
from overread_viewer.ignoring import ranking
from overread_viewer.listing import ORDERS, OUTCOMES, STATES, Filters, found, labels_of, own_setting
from overread_viewer.pages import render

router = APIRouter()

PER_PAGE = 50


@router.get("/studies")
def studies(
    request: Request,
    dataset: str = "",
    text: str = "",
    patient: str = "",
    label: str = "",
    modality: str = "",
    state: str = "all",
    model: str = "",
    outcome: str = "any",
    order: str = "study",
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
) -> Response:
    """The page. NotThere for a dataset or a model that the run has not; BadRequest for a word that is no filter."""
    catalogue: Catalogue = request.app.state.catalogue
    given: dict[str, Any] = {
        "dataset": dataset, "text": text, "patient": patient, "label": label, "modality": modality, "state": state,
        "model": model, "outcome": outcome, "order": order,
    }  # fmt: skip
    filters = Filters(**given)
    if dataset and dataset not in catalogue.datasets:
        raise NotThere.named("dataset", dataset, catalogue.datasets)
    models = sorted({one for name in catalogue.datasets for one in catalogue.models(name)})
    if model and model not in models:
        raise NotThere.named("model", model, models)
    lines = found(catalogue, filters)
    last = max(1, -(-len(lines) // PER_PAGE))
    page = min(page, last)
    datasets = [dataset] if dataset else list(catalogue.datasets)
    set_ = {name: value for name, value in given.items() if value != getattr(Filters(), name)}
    return render(
        request,
        "studies.html.j2",
        lines=lines[(page - 1) * PER_PAGE : page * PER_PAGE],
        count=len(lines),
        total=sum(len(catalogue.studies(name)) for name in catalogue.datasets),
        patients=len({(line.study.dataset, line.study.patient) for line in lines}),
        questions=sum(line.questions for line in lines),
        rejected=sum(line.study.problem is not None for line in lines),
        page=page,
        last=last,
        first=(page - 1) * PER_PAGE + 1,
        link=lambda **changes: "/studies?" + urlencode({k: v for k, v in {**set_, **changes}.items() if v != ""}),
        filters=filters,
        datasets=catalogue.datasets,
        modalities=sorted({one.modality for name in catalogue.datasets for one in catalogue.studies(name).values()}),
        models=[(one, catalogue.label(one)) for one in models],
        topics=labels_of(catalogue, datasets),
        outcomes=OUTCOMES,
        orders=ORDERS,
        states=STATES,
        counted=[
            (name, own_setting(catalogue, name), swap.pair[1] if swap.pair else None)
            for name in datasets
            for swap in [ranking(catalogue, name)]
        ],
    )
