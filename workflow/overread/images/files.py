"""The files of one study: each is opened when it is first needed, and never twice.

Most series are only looked at in a few slices. So a file that no view wants whole is unpacked, cut at the levels of all
views and forgotten, and the memory that it took serves the next one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from overread.core.errors import BadInput
from overread.core.records import Geometry, Study
from overread.edits.base import NotEdited
from overread.images.dicom_series import is_series, read_series
from overread.images.labels import doubts, meanings_of
from overread.images.slices import Level, cut, largest_tumour, middle
from overread.images.volume import BadFile, BoolArray, FloatArray, Volume, read_volume

if TYPE_CHECKING:
    from overread.config.views import Plane, SliceChoice, ViewSection
    from overread.edits.base import EditSection, Scene
    from overread.images.edited import EditedVolume
    from overread.images.radiograph import Radiograph
    from overread.images.slices import Layout

K = TypeVar("K")
V = TypeVar("V")

BRAIN, TUMOUR = "brain_segmentation", "tumor_segmentation"
MASKS = frozenset({BRAIN, "brain_parenchyma_segmentation", TUMOUR})

FOUR_D = frozenset({"DTI_eddy_noreg"})
"""Series of several volumes, of which the first is taken: of a diffusion series the one without diffusion weighting."""


class StudyFiles:
    """Volumes of a study by series name, and slices of them.

    views  all that will be rendered: what is known beforehand is cut in one go
    whole  those of them of which all series are kept whole: of an edited view
    """

    def __init__(self, study: Study, views: Iterable[ViewSection] = (), whole: Iterable[ViewSection] = ()) -> None:
        self._study = study
        self._whole: dict[str, Volume] = {}
        self._cuts: dict[tuple[str, tuple[object, ...]], FloatArray | BadFile] = {}
        self._levels: dict[tuple[object, ...], Level | BadFile] = {}
        self._of: dict[str, int] = {}
        self.left_out: list[tuple[str, str]] = []
        """Series that a view of all series went without, and why."""
        self._wanted: list[tuple[Plane, SliceChoice]] = []
        self._wanted_whole = {TUMOUR}
        self._edits: tuple[EditSection, ...] = ()
        self.hides: float | None = None
        """Of the picture that was edited last: what share of the lesion in it a covered box hides; None: no such box,
        or no lesion."""
        self._edits_asked = False
        self._masks: list[BoolArray] = []
        self._scenes: dict[tuple[object, ...], Scene] = {}
        self._shared: dict[str, dict[Any, Any]] = {}
        self._radiographs: dict[Path, Radiograph] = {}
        for view in views:
            self._wanted.extend(view.levels)
            self._wanted_whole |= view.whole
        self._all_whole = any(True for _ in whole)
        if any(choice == "middle" for _, choice in self._wanted):
            self._wanted_whole.add(BRAIN)

    def has(self, series: str) -> bool:
        return series in self._study.images

    def name(self, series: str) -> str:
        """The file of a series that the study has."""
        return Path(self._study.images[series]).name

    def volume(self, series: str) -> Volume:
        """The series, checked, whole and kept. BadFile if the study has none, or none that can be used."""
        if series not in self._whole:
            self._whole[series] = self._read(series)
        return self._whole[series]

    @property
    def brain(self) -> Volume | None:
        """The brain mask, if the study has one."""
        return self.volume(BRAIN) if self.has(BRAIN) else None

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Of the tumour mask, where a view took it: `labels.doubts`."""
        return doubts(self._whole[TUMOUR]) if TUMOUR in self._whole else ()

    def volumes_in(self, series: str) -> int:
        """How many volumes the file of a series that was read holds: more than 1 in a 4-D series."""
        return self._of[series]

    def level(self, plane: Plane, choice: SliceChoice, series: str) -> Level:
        """The slice that a view shows.

        series  whose foreground stands for the brain where the study has no brain mask
        raises  BadFile: a mask that is needed is missing or can't be used
        """
        key = (plane, choice) if choice != "middle" or self.has(BRAIN) else (plane, choice, series)
        return _kept(self._levels, key, lambda: self._level(plane, choice, series))

    def cut(self, series: str, level: Level) -> FloatArray:
        """`slices.cut` of a series at a level. BadFile if the series can't be used, or does not reach the level."""
        key = (series, level.key)
        forget = not self._all_whole and series not in self._whole and series not in self._wanted_whole
        if key not in self._cuts and forget:
            self._cut_all(series, level)
        return _kept(self._cuts, key, lambda: cut(self.volume(series), level, nearest=series in MASKS))

    # -- edits -------------------------------------------------------------------------------------------------------

    @contextmanager
    def editing(self, edits: Sequence[EditSection]) -> Iterator[None]:
        """Within it, `edited` and its kin give the values as these edits leave them.

        raises  BadInput if nothing edited was asked for: the view would show the image as it is and call it edited
        """
        self._edits, self._edits_asked, self._masks = tuple(edits), False, []
        try:
            yield
            if edits and not self._edits_asked:
                raise BadInput("this kind of view makes no edits: its settings can have no 'edit'")
        finally:
            self._edits = ()

    @property
    def edit_mask(self) -> str | None:
        """SHA-256 of the masks that the edits of the view took: shapes and voxels; None where they took none."""
        if not self._masks:
            return None
        found = hashlib.sha256()
        for mask in self._masks:
            found.update(f"{mask.shape}".encode())
            found.update(np.packbits(mask).tobytes())
        return found.hexdigest()

    @property
    def are_edited(self) -> bool:
        """Whether the view that is rendered has edits."""
        return bool(self._edits)

    def edited(self, series: str, level: Level, window: tuple[float, float]) -> FloatArray:
        """`cut` of a series with the edits of the view; without any, the cut itself.

        window  what the unedited picture shows black and white
        raises  NotEdited where an edit can't be made of the study
        """
        if not self._edits:
            return self.cut(series, level)
        shown = cut(self._edited(series, level.layout, window), level, nearest=series in MASKS)
        self.hides = self._hidden(lambda: self._lesion_at(series, level))
        return shown

    def edited_volume(self, series: str, axes: Layout, window: tuple[float, float]) -> Volume:
        """The whole series with the edits of the view; without any, as it is."""
        return self._edited(series, axes, window).whole if self._edits else self.volume(series)

    def radiograph(self, path: Path) -> Radiograph:
        """A radiograph with the edits of the view. The file is read once, whatever number of edits there are."""
        from overread.images.radiograph import read_radiograph

        if path not in self._radiographs:
            self._radiographs[path] = read_radiograph(path)
        plain = self._radiographs[path]
        self._edits_asked = True
        if not self._edits:
            return plain
        from overread.images.edited import boxed, edited_radiograph

        def find(label: str | None) -> BoolArray:
            return boxed(self._study.boxes, plain.grey.shape, label)

        self._note_masks(find)
        self.hides = self._hidden(lambda: find(None))
        return edited_radiograph(plain, self._edits, find, (self._study.study, path.name))

    def _hidden(self, lesion: Callable[[], BoolArray]) -> float | None:
        """lesion  (rows, columns) of the picture"""
        if all(one.covered(1, 1) is None for one in self._edits):
            return None
        try:
            seen = lesion()
        except (NotEdited, BadFile):
            return None
        if not seen.any():
            return None
        parts = [one.covered(*seen.shape) for one in self._edits]
        covered = np.logical_or.reduce([part for part in parts if part is not None])
        return float(np.count_nonzero(seen & covered) / np.count_nonzero(seen))

    def _lesion_at(self, series: str, level: Level) -> BoolArray:
        """The lesion in a slice, as the picture shows it."""
        volume = self.volume(series)
        mask = self._lesion(volume, series, None).astype(np.uint8)
        found: BoolArray = cut(Volume(volume.path, mask, volume.affine, 1.0, 0.0), level, nearest=True) > 0.5
        return found

    def _edited(self, series: str, axes: Layout, window: tuple[float, float]) -> EditedVolume:
        from overread.images.edited import EditedVolume, volume_scene

        self._edits_asked = True
        volume = self.volume(series)
        self._note_masks(lambda label: self._lesion(volume, series, label))
        key = (series, axes, window)
        if key not in self._scenes:
            self._scenes[key] = volume_scene(
                volume, axes, window, lambda label: self._lesion(volume, series, label), self._organ(volume, series),
                (self._study.study, series), self._shared.setdefault(series, {}),
            )  # fmt: skip
        return EditedVolume(
            volume.path, volume.stored, volume.affine, volume.slope, volume.intercept, volume.of,
            meanings=volume.meanings, edits=self._edits, scene=self._scenes[key], mask=series in MASKS,
        )  # fmt: skip

    def _note_masks(self, find: Callable[[str | None], BoolArray]) -> None:
        """The masks that the view's edits of the lesion take, to be told of."""
        for one in self._edits:
            if one.family == "lesion":
                self._masks.append(find(getattr(one, "label", None)))

    def _lesion(self, volume: Volume, series: str, label: str | None) -> BoolArray:
        from overread.images.edited import NO_LESION, labels_found

        kept = self._shared.setdefault(series, {})
        if ("lesion", label) not in kept:
            if not self.has(TUMOUR):
                raise NotEdited(NO_LESION)
            try:
                kept["lesion", label] = labels_found(self.volume(TUMOUR), volume, label)
            except BadFile as error:
                raise NotEdited(str(error)) from None
        found: BoolArray = kept["lesion", label]
        return found

    def _organ(self, volume: Volume, series: str) -> BoolArray:
        """The brain on a series' grid: by its mask, or without one whatever is not 0."""
        from overread.images.edited import on_grid

        kept = self._shared.setdefault(series, {})
        if "organ" not in kept:
            brain = self.brain
            kept["organ"] = volume.foreground if brain is None else on_grid(brain.labelled, brain.affine, volume)
        found: BoolArray = kept["organ"]
        return found

    def _level(self, plane: Plane, choice: SliceChoice, series: str) -> Level:
        if choice == "middle":
            brain = self.brain
            return middle(brain or self.volume(series), plane, is_mask=brain is not None)
        label = None if choice == "largest-tumour" else int(choice.removeprefix("largest-label-"))
        tumour = self.volume(TUMOUR)
        return largest_tumour(tumour, None if tumour.labels[0].any() else self.brain, plane, label)

    def _cut_all(self, series: str, level: Level) -> None:
        """Read a series, keep its slices at `level` and at those of all views, and forget the rest."""
        levels = [level]
        for plane, choice in self._wanted:
            if choice == "middle" and not self.has(BRAIN):
                continue  # then each series may have a middle of its own
            try:
                levels.append(self.level(plane, choice, series))
            except BadFile:
                continue  # the view that wants it will say so itself
        volume = self._whole[series] if series in self._whole else self._read(series)
        for each in levels:
            try:
                self._cuts[series, each.key] = cut(volume, each, nearest=series in MASKS)
            except BadFile as error:
                self._cuts[series, each.key] = error

    def _read(self, series: str) -> Volume:
        if not self.has(series):
            why = self._study.attributes.get(f"unusable {series}", "missing: the study has no such series")
            raise BadFile(f"{series}: {why}")
        path = Path(self._study.images[series])
        if is_series(path):
            volume = read_series(path, may_be_empty=series == TUMOUR)
        else:
            geometry = cast("Geometry", self._study.reading.get("geometry", "agree"))
            volume = read_volume(path, may_be_empty=series == TUMOUR, first=series in FOUR_D, geometry=geometry)
        if series == TUMOUR:
            volume = replace(volume, meanings=meanings_of(self._study.reading))
        self._of[series] = volume.of
        return volume


def _kept(kept: dict[K, V | BadFile], key: K, make: Callable[[], V]) -> V:
    """What is kept under `key`, made the first time; a BadFile that making it raised is raised again."""
    if key not in kept:
        try:
            kept[key] = make()
        except BadFile as error:
            kept[key] = error
    found = kept[key]
    if isinstance(found, BadFile):
        raise found
    return found
