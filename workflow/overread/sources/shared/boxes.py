"""Boxes that people drew around findings on chest X-rays: which part of the picture an edit erases.

Two published layouts are read: the CSV of VinDr-CXR (a row per box in pixels, or without a box for "No finding"), and
the JSON of PadChest-GR (a list of studies with findings, whose boxes are shares of width and height).
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from overread.config.datasets import Boxes
from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.records import Box, Study
from overread.sources.shared.remarks import Remarks
from overread.sources.shared.rows import read_rows

CORNERS = ("x_min", "y_min", "x_max", "y_max")
Found = Iterator[tuple[str, str, list[float] | None, str]]
"""By box: the image's id, the topic, its corners (None: not numbers), and where it stands in the file."""


def with_boxes(studies: Sequence[Study], section: Boxes, remarks: Remarks) -> list[Study]:
    """The studies with the boxes of their frontal image. An image is known by its file's name without the ending.

    raises  BadInput for a file that is missing or of another layout, or whose images are all of other studies
    """
    path = Path(section.path)
    by_image: dict[str, list[Box]] = defaultdict(list)
    for image, topic, corners, place in (_vindr if section.layout == "vindr-cxr" else _padchest)(path):
        unit = "pixels" if section.layout == "vindr-cxr" else "shares"
        wrong = _wrong(corners, unit)
        if wrong is not None or corners is None:
            remarks.add(path, place, f"a box of {topic!r} on {image}: {wrong}: left out")
            remarks.count("boxes left out")
            continue
        left, top, right, bottom = corners
        by_image[_stem(image)].append(Box(topic=topic, left=left, top=top, right=right, bottom=bottom, unit=unit))
    found = [
        study.model_copy(update={"boxes": tuple(sorted(by_image[image], key=_order))})
        if (image := _stem(study.images.get("frontal", ""))) in by_image
        else study
        for study in studies
    ]
    boxed = [study for study in found if study.boxes]
    if by_image and not boxed:
        named, own = min(by_image), next((Path(one.images["frontal"]).name for one in studies if one.images), "none")
        raise BadInput(
            f"boxes: {path}: its images (such as {named}) are none of this data set's (such as {own}): an image is "
            "known by its file's name without the ending"
        )
    remarks.count("boxes", sum(len(study.boxes) for study in boxed))
    remarks.count("studies with a box", len(boxed))
    taken = {_stem(study.images["frontal"]) for study in boxed}
    remarks.count("images with boxes that are not of this data set", len(by_image.keys() - taken))
    return found


def _stem(image: str) -> str:
    return Path(image).name.partition(".")[0]


def _order(box: Box) -> tuple[str, float, float, float, float]:
    return box.topic, box.left, box.top, box.right, box.bottom


def _wrong(corners: list[float] | None, unit: str) -> str | None:
    if corners is None or not all(map(math.isfinite, corners)):
        return "its corners are not four numbers"
    left, top, right, bottom = corners
    if left >= right or top >= bottom:
        return f"it has no area ({left:g}, {top:g}, {right:g}, {bottom:g})"
    if min(corners) < 0 or (unit == "shares" and max(corners) > 1):
        return f"it lies outside of the picture ({left:g}, {top:g}, {right:g}, {bottom:g})"
    return None


def _numbers(values: Sequence[object]) -> list[float] | None:
    try:
        found = [float(value) for value in values]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return found if len(found) == 4 else None


def _vindr(path: Path) -> Found:
    for row in read_rows(path, ("image_id", "class_name", *CORNERS)):
        cells = [row.cells[name] for name in CORNERS]
        if any(cells):  # a reader who found nothing has a row without corners
            yield row.cells["image_id"], row.cells["class_name"], _numbers(cells), row.place


def _padchest(path: Path) -> Found:
    """Boxes of both readers (`boxes`, `extra_boxes`), once for each label of their finding."""
    try:
        content = json.loads(regular(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"boxes: {path}: no such file") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"boxes: {path}: not JSON: {error}") from None
    if not isinstance(content, list) or not all(isinstance(one, dict) and "ImageID" in one for one in content):
        raise BadInput(f"boxes: {path}: not of PadChest-GR's layout: a list of objects with an 'ImageID' is expected")
    for number, study in enumerate(content, start=1):
        for finding in _listed(study.get("findings")):
            drawn = [*_listed(finding.get("boxes")), *_listed(finding.get("extra_boxes"))]
            for topic in _listed(finding.get("labels")) or ["finding"]:
                for box in drawn:
                    corners = _numbers(box) if isinstance(box, list) else None
                    yield str(study["ImageID"]), str(topic), corners, f"study {number}"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
