"""Images: from a study's files to the pictures that a model is shown.

Rendering is done once for each study and view, and never per question. A study with a file that can't be used is
listed with the reason; it stops no other study.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from overread.errors import BadInput, unknown

if TYPE_CHECKING:
    from PIL import Image

    from overread.config import View
    from overread.images.files import StudyFiles
    from overread.records import Picture, Study


def _slices(study: Study, view: View, files: StudyFiles) -> Iterator[tuple[Image.Image, dict[str, object]]]:
    from overread.images.slice_view import render_slices

    return render_slices(study, view, files)  # type: ignore[arg-type]


def _frontal(study: Study, view: View, files: StudyFiles) -> Iterator[tuple[Image.Image, dict[str, object]]]:
    from overread.images.frontal import render_frontal
    from overread.images.volume import BadFile

    try:
        picture = render_frontal(study, view)  # type: ignore[arg-type]
    except BadInput as error:
        raise BadFile(str(error)) from None
    yield picture, {"name": "frontal chest X-ray", "series": "frontal"}


Renderer = Callable[["Study", "View", "StudyFiles"], "Iterator[tuple[Image.Image, dict[str, object]]]"]

KINDS: dict[str, Renderer] = {"slice": _slices, "frontal": _frontal}
"""What renders a kind of view: pictures in their order, each with what a `Picture` says about it."""


def render_study(study: Study, views: Mapping[str, View], folder: Path) -> list[Picture]:
    """The pictures of a study under `folder`/pictures, a PNG each; what lay there before is removed.

    views   by name; those of another modality than the study's are passed over
    folder  <dataset>/images/<study>
    raises  BadFile: a file that a view needs can't be used; BadInput: a kind of view that can't be rendered yet
    """
    shutil.rmtree(folder / "pictures", ignore_errors=True)
    try:
        return list(_rendered(study, views, folder))
    except BadInput:
        shutil.rmtree(folder / "pictures", ignore_errors=True)  # no picture of a study that is rejected stays behind
        raise


def _rendered(study: Study, views: Mapping[str, View], folder: Path) -> Iterator[Picture]:
    from overread.images.files import StudyFiles
    from overread.images.render import pixel_hash, write_png
    from overread.records import Picture

    files = StudyFiles(study)
    for name, view in sorted(views.items()):
        if view.modality != study.modality:
            continue
        if view.kind not in KINDS:
            raise BadInput(f"view {name!r}: {unknown('kind', view.kind, KINDS)}")
        for order, (image, about) in enumerate(KINDS[view.kind](study, view, files)):
            path = folder / "pictures" / f"{name}-{order}.png"
            write_png(image, path)
            row = {
                "study": study.study,
                "view": name,
                "order": order,
                "path": path.relative_to(folder.parent.parent).as_posix(),
                "pixels": pixel_hash(image),
                "width": image.width,
                "height": image.height,
                **about,
            }
            yield Picture.model_validate(row)
