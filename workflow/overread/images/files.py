"""The files of one study: each is opened when it is first needed, and never twice.

Most series are only looked at in a few slices. So a file that no view wants whole is unpacked, cut at the levels of all
views and forgotten, and the memory that it took serves the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from overread.core.records import Study
from overread.images.dicom_series import is_series, read_series
from overread.images.slices import Level, cut, largest_tumour, middle
from overread.images.volume import BadFile, FloatArray, Volume, read_volume

if TYPE_CHECKING:
    from overread.config.views import Plane, SliceChoice, ViewSection

K = TypeVar("K")
V = TypeVar("V")

BRAIN, TUMOUR = "brain_segmentation", "tumor_segmentation"
MASKS = frozenset({BRAIN, "brain_parenchyma_segmentation", TUMOUR})

FOUR_D = frozenset({"DTI_eddy_noreg"})
"""Series of several volumes, of which the first is taken: of a diffusion series the one without diffusion weighting."""


class StudyFiles:
    """Volumes of a study by series name, and slices of them.

    views  all that will be rendered: what is known beforehand is cut in one go
    """

    def __init__(self, study: Study, views: Iterable[ViewSection] = ()) -> None:
        self._study = study
        self._whole: dict[str, Volume] = {}
        self._cuts: dict[tuple[str, tuple[object, ...]], FloatArray | BadFile] = {}
        self._levels: dict[tuple[object, ...], Level | BadFile] = {}
        self._of: dict[str, int] = {}
        self.left_out: list[tuple[str, str]] = []
        """Series that a view of all series went without, and why."""
        self._wanted: list[tuple[Plane, SliceChoice]] = []
        self._wanted_whole = {TUMOUR}
        for view in views:
            self._wanted.extend(view.levels)
            self._wanted_whole |= view.whole
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
        if key not in self._cuts and series not in self._whole and series not in self._wanted_whole:
            self._cut_all(series, level)
        return _kept(self._cuts, key, lambda: cut(self.volume(series), level, nearest=series in MASKS))

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
            volume = read_volume(path, may_be_empty=series == TUMOUR, first=series in FOUR_D)
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
