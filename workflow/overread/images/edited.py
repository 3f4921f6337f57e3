"""The edits of a view, laid over the values of a study's files before any window is."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from overread.edits.base import NotEdited, Scene
from overread.images.labels import NUMBERS
from overread.images.slices import Layout
from overread.images.volume import BoolArray, FloatArray, Volume

if TYPE_CHECKING:
    from overread.core.records import Box
    from overread.edits.base import Below, EditSection, Place
    from overread.images.radiograph import Radiograph

NO_LESION = "the study names no mask of a lesion"
NO_BOX = "nobody marked a finding on the radiograph"


@dataclass(frozen=True)
class EditedVolume(Volume):
    """A volume whose parts are edited as they are taken out. What chooses slices and windows asks the plain one."""

    edits: tuple[EditSection, ...] = ()
    scene: Scene | None = None
    mask: bool = False
    """Whether its values are labels."""

    def part(self, place: tuple[slice | int, ...]) -> FloatArray:
        box = tuple(
            slice(*one.indices(n)[:2]) if isinstance(one, slice) else slice(one, one + 1)
            for one, n in zip(place, self.shape, strict=True)
        )
        taken = tuple(slice(None) if isinstance(one, slice) else 0 for one in place)
        return np.asarray(self._topmost(box)[taken])

    @cached_property
    def _topmost(self) -> Below:
        """The last edit: it asks the one before it for what it needs, and the first asks the file."""
        assert self.scene is not None
        return chain(super().part, self.edits, self.scene, labels=self.mask)

    @cached_property
    def whole(self) -> Volume:
        """All of it, edited."""
        everything = self.part((slice(None),) * 3).astype(np.float32)
        return Volume(self.path, everything, self.affine, 1.0, 0.0, self.of, meanings=self.meanings)


def chain(below: Below, edits: Sequence[EditSection], scene: Scene, *, labels: bool = False) -> Below:
    """The edits one above the other, in their order."""
    for one in edits:
        below = partial(one.labels if labels else one.part, below, scene=scene)
    return below


def volume_scene(
    volume: Volume,
    axes: Layout,
    window: tuple[float, float],
    find: Callable[[str | None], BoolArray],
    organ: BoolArray,
    key: tuple[str, ...],
    shared: dict[Any, Any],
) -> Scene:
    """What the edits of a volume are told."""
    import nibabel as nib

    sizes = np.linalg.norm(volume.affine[:3, :3], axis=0)
    world, direction = nib.orientations.io_orientation(volume.affine).T  # type: ignore[no-untyped-call]
    return Scene(
        shape=volume.shape, spacing=tuple(float(one) for one in sizes), unit="mm",
        world=tuple(int(one) for one in world), reversed=tuple(bool(one < 0) for one in direction),
        down=axes.down, right=axes.right, flip_down=axes.flip_down, flip_right=axes.flip_right,
        low=window[0], high=window[1], plain=volume.part, find=find, organ=organ, key=key, shared=shared,
    )  # fmt: skip


def labels_found(tumour: Volume, volume: Volume, label: str | None) -> BoolArray:
    """Where a tumour mask has a label, or any, on the grid of a volume.

    raises  NotEdited for a mask without it; BadFile for one whose values are no labels
    """
    labels, _ = tumour.labels
    named = {name: number for name, number in NUMBERS.items() if number}
    if label is not None and label not in named and not label.isdecimal():
        raise NotEdited(f"its mask has no label {label!r}: they are numbers, or {', '.join(named)}")
    mask = labels != 0 if label is None else labels == (named[label] if label in named else int(label))
    if not mask.any():
        raise NotEdited("its mask holds no lesion" if label is None else f"its mask has no label {label}")
    found = on_grid(mask, tumour.affine, volume)
    if not found.any():
        raise NotEdited(f"the lesion lies outside of {volume.path.name}")
    return found


def boxed(boxes: Sequence[Box], shape: tuple[int, ...], label: str | None) -> BoolArray:
    """(rows, columns) inside the boxes of a topic, or of all.

    raises  NotEdited where there is none, or one reaches beyond the picture by more than a pixel
    """
    if not boxes:
        raise NotEdited(NO_BOX)
    wanted = [box for box in boxes if label is None or box.topic == label]
    if not wanted:
        topics = ", ".join(sorted({box.topic for box in boxes}))
        raise NotEdited(f"the study has no box of {label!r}; its boxes are of {topics}")
    rows, columns = shape
    found = np.zeros(shape, dtype=np.bool_)
    for box in wanted:
        across, down = (columns, rows) if box.unit == "shares" else (1, 1)
        left, right, top, bottom = box.left * across, box.right * across, box.top * down, box.bottom * down
        if right > columns + 1 or bottom > rows + 1:
            raise NotEdited(
                f"a box of {box.topic} reaches to {right:g}, {bottom:g} in a picture of {columns} x {rows} pixels: was "
                "it drawn on a file of another size?"
            )
        found[math.floor(top) : math.ceil(bottom), math.floor(left) : math.ceil(right)] = True
    return found


def on_grid(mask: BoolArray, affine: FloatArray, volume: Volume) -> BoolArray:
    """A mask on another volume's grid: of each voxel the nearest of the mask's."""
    from scipy.ndimage import affine_transform

    if mask.shape == volume.shape and np.abs(affine - volume.affine).max() < 1e-3:
        return mask
    there = np.linalg.inv(affine) @ volume.affine
    found = affine_transform(
        mask.astype(np.uint8), there[:3, :3], there[:3, 3], volume.shape, order=0, mode="constant", cval=0
    )
    return np.asarray(found > 0)


def edited_radiograph(
    radiograph: Radiograph, edits: Sequence[EditSection], find: Callable[[str | None], BoolArray], key: tuple[str, ...]
) -> Radiograph:
    """A radiograph with its grey values edited: they are what its window made of the file's."""
    whole = radiograph.grey.dtype == np.uint8
    low, high = (0.0, 255.0) if whole else (0.0, 1.0)
    grey = radiograph.grey

    def plain(place: Place) -> FloatArray:
        return grey[place].astype(np.float64)

    finest = min(radiograph.spacing)
    scene = Scene(
        shape=grey.shape, spacing=tuple(one / finest for one in radiograph.spacing), unit="pixels",
        world=(2, 0), reversed=(False, False), down=0, right=1, flip_down=False, flip_right=False,
        low=low, high=high, plain=plain, find=find, organ=None, key=key, shared={},
    )  # fmt: skip
    values = np.clip(chain(plain, edits, scene)(scene.everything), low, high)
    edited = np.rint(values).astype(np.uint8) if whole else values.astype(np.float32)
    return dataclasses.replace(radiograph, grey=edited)
