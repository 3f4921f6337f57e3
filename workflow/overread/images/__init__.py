"""Images: from a study's files to the pictures that a model is shown.

Rendering is done once for each study and view, and never per question. A study with a file that can't be used is
listed with the reason; it stops no other study.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overread.core.errors import BadInput
from overread.core.outputs import OutputFolder

if TYPE_CHECKING:
    from overread.config.views import ViewSection
    from overread.core.records import Picture, Study
    from overread.edits.base import EditSection


def render_study(
    study: Study,
    views: Mapping[str, ViewSection],
    folder: Path,
    left_out: list[dict[str, str]] | None = None,
    edits: Mapping[str, Sequence[EditSection]] | None = None,
) -> list[Picture]:
    """The pictures of a study under `folder`/pictures, a PNG or .nii.gz each; those of an earlier run are
    removed.

    views     by name; those of another modality than the study's are passed over
    folder    <dataset>/images/<study>
    left_out  gets an entry (view, series, reason) for each series that a view of all series had to go without, and for
              each view whose edits can't be made of this study, with no series
    edits     of views that show the image edited, by name
    raises    BadFile: a file that a view needs can't be used; BadInput: a view that does not fit the study, or a file
              in `folder`/pictures that no earlier run wrote
    """
    pictures = OutputFolder(folder / "pictures", "images render")
    pictures.clear()
    try:
        with pictures.guarding():
            return list(_rendered(study, views, folder, left_out if left_out is not None else [], edits or {}))
    except BadInput:
        pictures.clear()  # no picture of a study that is rejected stays behind
        raise


def _rendered(
    study: Study,
    views: Mapping[str, ViewSection],
    folder: Path,
    left_out: list[dict[str, str]],
    edits: Mapping[str, Sequence[EditSection]],
) -> Iterator[Picture]:
    from overread.core.records import Picture
    from overread.edits.base import NotEdited
    from overread.images.files import MASKS, StudyFiles
    from overread.images.render import pixel_hash, suspicions, write_png
    from overread.images.volume_file import SUFFIX, VolumePicture, write_volume

    files = StudyFiles(study, views.values(), whole=[view for name, view in views.items() if edits.get(name)])
    for name, view in sorted(views.items()):
        if view.modality != study.modality:
            continue
        changes = edits.get(name, ())
        try:
            with files.editing(changes):
                rendered = list(view.render(study, files)) if changes else view.render(study, files)
        except NotEdited as reason:
            left_out.append({"view": name, "series": "", "reason": f"{_named(changes)}: {reason}"})
            continue
        mask = files.edit_mask  # of all the view's pictures: they have been drawn where there are edits
        for order, (shown, about) in enumerate(rendered):
            place = folder / "pictures" / f"{name}-{order}"
            suspect: list[str] = []
            if isinstance(shown, VolumePicture):
                path = place.with_name(f"{place.name}{SUFFIX}")
                write_volume(shown, path)
                facts = shown.facts
            else:
                path = place.with_name(f"{place.name}.png")
                write_png(shown, path)
                facts = {"pixels": pixel_hash(shown), "width": shown.width, "height": shown.height}
                if about.get("series") not in MASKS and about.get("caption") != "after":  # a stack ends in black slices
                    suspect = suspicions(shown)
            row = {
                "study": study.study,
                "view": name,
                "order": order,
                "path": path.relative_to(folder.parent.parent).as_posix(),
                **facts,
                **about,
                "edit": edits_as_text(changes) if changes else None,
                "edit_mask": mask,
            }
            doubts = list(files.doubts) if about.get("chosen_by") is not None and view.takes_tumour else []
            row["doubt"] = "; ".join([*doubts, *suspect]) or None
            yield Picture.model_validate(row)
        left_out.extend({"view": name, "series": series, "reason": why} for series, why in files.left_out)
        files.left_out.clear()


def edits_as_text(edits: Sequence[EditSection]) -> str:
    """All that says which edits were made, as JSON: kinds and every number, in their order."""
    return json.dumps([one.model_dump(mode="json", exclude_none=True) for one in edits], separators=(",", ":"))


def _named(edits: Sequence[EditSection]) -> str:
    return ", ".join(one.kind for one in edits)
