"""A study's `views.json`, and the gathering of all of them: images.parquet, studies_rejected.csv, black pictures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overread.core.columns import PATIENT, STUDY, text
from overread.core.csv_files import CsvFile
from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.outputs import OutputFolder
from overread.core.records import Picture, Study, replacing, write_pictures
from overread.images import render_study
from overread.images.black import write_black
from overread.images.volume import BadFile

if TYPE_CHECKING:
    from overread.config import View
    from overread.edits.base import EditSection

REJECTED = CsvFile(
    "<dataset>/studies_rejected.csv",
    "The studies that could not be used.",
    (
        STUDY,
        PATIENT,
        text("stage", "the stage that left it out", values=("studies", "images")),
        text("reason", "why it could not be used"),
    ),
)


LEFT_OUT = CsvFile(
    "<dataset>/pictures_left_out.csv",
    "What could not be shown of a study that is used otherwise: series that a view went without, edits not made.",
    (
        STUDY,
        text("rendered_view", "the view, with the ending of its edits"),
        text(
            "missing_series", "the series that the view went without", blank="the whole view: its edits can not be made"
        ),
        text("why", "the reason"),
    ),
)


def write_views(
    study: Study,
    views: Mapping[str, View],
    path: Path,
    masks: str = "",
    edits: Mapping[str, Sequence[EditSection]] | None = None,
) -> str | None:
    """The study's pictures beside `path`, and `path` itself, which lists them. Returns why there are none, if so.

    masks  whose masks chose the slices, if not the study's own; `chosen_by` says so
    edits  of views that show the image edited, by name
    """
    problem, pictures = study.problem, []
    left_out: list[dict[str, str]] = []
    if problem is None:
        try:
            pictures = render_study(study, views, path.parent, left_out, edits)
        except BadFile as error:
            problem = str(error)
    if masks:
        chosen = [picture.chosen_by and f"{picture.chosen_by} ({masks})" for picture in pictures]
        pictures = [one.model_copy(update={"chosen_by": by}) for one, by in zip(pictures, chosen, strict=True)]
    content = {
        "study": study.study,
        "problem": problem,
        "left_out": left_out if problem is None else [],
        "pictures": [picture.model_dump(mode="json") for picture in pictures],
    }
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return problem


def read_views(path: Path) -> tuple[str | None, list[Picture], list[dict[str, str]]]:
    """The problem and the pictures of a `views.json`, and what is left out."""
    try:
        content = json.loads(regular(path).read_text(encoding="utf-8"))
        pictures = [Picture.model_validate(row) for row in content["pictures"]]
        return content["problem"], pictures, content["left_out"]
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; render the study's views first") from None
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path}: not a list of views ({' '.join(str(error).split())}); render them again") from None


def reasons(path: Path) -> dict[tuple[str, str], str]:
    """Of a `pictures_left_out.csv`: by study and view that is not shown at all, why."""
    return {
        (row["study"], row["rendered_view"]): row["why"] for row in LEFT_OUT.read(path) if not row["missing_series"]
    }


def index_images(
    studies: Iterable[Study], images: Path, out: Path, rejected: Path, left_out: Path | None = None
) -> tuple[int, int]:
    """Gather the views of all studies under `images`; returns how many studies have pictures and how many don't.

    studies   with those that can't be used: they are rejected by the stage `studies`
    images    <dataset>/images
    left_out  CSV to write of what could not be shown of studies that are used
    raises    BadInput if a study was not rendered, or none can be used
    """
    pictures: list[Picture] = []
    refused: list[dict[str, str]] = []
    lacking: list[dict[str, str]] = []
    count = 0
    for study in sorted(studies, key=lambda one: one.study):
        count += 1
        stage, problem = "studies", study.problem
        if problem is None:
            problem, rendered, without = read_views(images / study.study / "views.json")
            stage = "images"
            lacking.extend(
                {
                    "study": study.study,
                    "rendered_view": one["view"],
                    "missing_series": one["series"],
                    "why": one["reason"],
                }
                for one in without
            )
            pictures.extend(rendered if problem is None else [])
        if problem is not None:
            refused.append({"study": study.study, "patient": study.patient, "stage": stage, "reason": problem})
    REJECTED.write(rejected, refused)
    if left_out is not None:
        LEFT_OUT.write(left_out, lacking)
    if len(refused) == count:
        first = f"; the first: {refused[0]['study']}: {refused[0]['reason']}" if refused else ""
        raise BadInput(f"{images}: none of {count} studies can be used{first}")
    with OutputFolder(images / "black", "images index").guarding():
        write_black(pictures, images / "black")
    write_pictures(pictures, out)
    return count - len(refused), len(refused)
