"""The view `slice`: one slice of one or more series at the same level.

What is black and what is white follows the series, if the view sets no window. White is the 99.5th percentile of the
brain in the slice. Black is 0: no signal in a magnitude image (T1, T2, FLAIR, DWI, and SWI, whose veins stay dark),
and in a diffusion or perfusion map the least there can be, where values below it are noise. Masks have a grey level a
label, always the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from overread.core.errors import BadInput, unknown
from overread.core.records import Study
from overread.images.files import BRAIN, MASKS, TUMOUR, StudyFiles
from overread.images.render import grey_picture, label_picture, window
from overread.images.slices import Level, NotShown
from overread.images.volume import BadFile, BoolArray, FloatArray
from overread.views.slice.section import SliceView

if TYPE_CHECKING:
    from PIL import Image

USUAL_ORDER = (
    "T1", "T1_bias", "T1c", "T1c_bias", "T2", "T2_bias", "FLAIR", "FLAIR_bias", "DWI", "DWI_bias", "SWI", "SWI_bias",
    "ADC", "ASL", "DTI_eddy_FA", "DTI_eddy_MD", "DTI_eddy_L1", "DTI_eddy_L2", "DTI_eddy_L3", "DTI_eddy_noreg",
    "brain_segmentation", "brain_parenchyma_segmentation", "tumor_segmentation",
)  # fmt: skip
"""The 23 series of UCSF-PDGM in the order in which `all` shows them; others follow by name."""

NO_PICTURE = frozenset({"ASL_M0"})
"""Not in `all`: the calibration scan of ASL, which only follow-up studies of UCSF-PDGM have."""

POSITIVE = frozenset(
    {"ADC", "ASL", "DTI_eddy_FA", "DTI_eddy_MD", "DTI_eddy_L1", "DTI_eddy_L2", "DTI_eddy_L3"}
)  # fmt: skip
"""Maps of a quantity that has no values below 0."""

TUMOUR_GREYS = {2: 85, 1: 170, 4: 255}
"""From the outside in: oedema, necrotic core; what enhances is brightest."""

LABEL_NAMES = {1: "necrotic core", 2: "oedema", 4: "enhancing"}

LEAST_REACHED = 0.5
"""Share of the brain in the slice that a series must reach. What reaches less lies elsewhere than the mask says."""


def render_slices(
    study: Study, view: SliceView, files: StudyFiles, *, may_lack: bool | None = None
) -> Iterator[tuple[Image.Image, dict[str, object]]]:
    """A picture a series with what it shows.

    may_lack  whether a series that shows nothing at the level is left out, and noted in `files.left_out`; by default
              only under `series: all`. A file that can't be used is an error in any case
    raises    BadFile if a file that is needed can't be used; BadInput for a window of no series
    """
    names = series_of(study, view)
    if may_lack is None:
        may_lack = view.series == "all"
    for name in view.windows:
        if name not in names and name not in USUAL_ORDER:
            raise BadInput(f"windows: {unknown('series', name, names)}")
    if not names:
        raise BadFile("no series: the study has none that can be shown")
    level = files.level(view.plane, view.slice, names[0])
    shown = 0
    for name in names:
        try:
            picture, scaling = _picture(name, level, view, files)
        except NotShown as error:
            if not may_lack:
                raise
            files.left_out.append((name, str(error)))
            continue
        shown += 1
        yield (
            picture,
            {
                "name": f"{name}, {view.plane}",
                "series": name,
                "plane": view.plane,
                "slice_index": level.index,
                "position_mm": level.position_mm,
                "chosen_by": level.chosen_by,
                "scaling": scaling,
                "orientation": level.orientation,
                "caption": view.caption,
                "hides": files.hides if files.are_edited else None,
            },
        )
    if not shown:
        raise BadFile(f"no series shows anything in the {_where(level)}")


def series_of(study: Study, view: SliceView) -> tuple[str, ...]:
    """The names that a view's `series` stands for."""
    if view.series == "all":
        there = set(study.images) - NO_PICTURE
        usual = [name for name in USUAL_ORDER if name in there]
        return (*usual, *sorted(there - set(usual)))
    return (view.series,) if isinstance(view.series, str) else tuple(view.series)


def _picture(name: str, level: Level, view: SliceView, files: StudyFiles) -> tuple[Image.Image, str]:
    """The picture of a series, and what its greys mean."""
    if name in MASKS:
        return _mask_picture(name, level, view, files)
    values = files.cut(name, level)
    inside = _inside(name, values, level, files)
    try:
        if name in view.windows:
            low, high = view.windows[name]
            how = "as configured"
            if (values[inside] <= low).all() or (values[inside] >= high).all():
                least, most = (float(value) for value in np.percentile(values[inside], (0, 100)))
                raise BadFile(
                    f"{files.name(name)}: windows: {low:g} to {high:g} shows nothing of it: the brain's values are "
                    f"{least:g} to {most:g} in the {_where(level)}"
                )
        else:
            low, high = window(values[inside], positive=name in POSITIVE)
            how = f"{'0' if low == 0 else '0.5th'} and 99.5th percentile of the brain in the slice"
        # What is edited is shown in the window of the unedited picture: an edit never changes the rest's brightness.
        shown = files.edited(name, level, (low, high))
        picture = grey_picture(shown, inside, level.spacing_mm, view.size, (low, high))
    except ValueError as error:
        raise NotShown(f"{files.name(name)}: {error}: {_where(level)}") from None
    return picture, f"{low:g} to {high:g}: {how}{_which(name, files)}"


def _mask_picture(name: str, level: Level, view: SliceView, files: StudyFiles) -> tuple[Image.Image, str]:
    """A mask with its labels as grey levels: those of the tumour by `TUMOUR_GREYS`, of another mask all white."""
    if name != TUMOUR:
        labelled = (files.edited(name, level, (0.0, 1.0)) >= 0.5).astype(np.float64)
        return label_picture(labelled, {1: 255}, level.spacing_mm, view.size), "0 black, mask white"
    tumour = files.volume(TUMOUR)
    ours = tumour.meanings
    if ours is None:
        replaced = {int(theirs): label for theirs, label in tumour.labels[1].items()}
        ours = replaced | {label: label for label in TUMOUR_GREYS if label not in replaced.values()}
    greys = {theirs: TUMOUR_GREYS.get(label, 0) for theirs, label in ours.items()}
    meaning = ", ".join(
        f"{theirs} {LABEL_NAMES[label]} {grey}"
        for label, grey in TUMOUR_GREYS.items()
        for theirs, one in sorted(ours.items())
        if one == label
    )
    return label_picture(
        files.edited(name, level, (0.0, 1.0)), greys, level.spacing_mm, view.size
    ), f"labels as greys: {meaning}"


def _inside(name: str, values: FloatArray, level: Level, files: StudyFiles) -> BoolArray:
    """The brain in the slice, where the series reaches it: by its mask, or without one whatever is not 0."""
    reached = np.isfinite(values)
    if not files.has(BRAIN):
        extent = np.abs(values[reached]).max(initial=0.0)
        return np.asarray(reached & (np.abs(np.nan_to_num(values)) > 1e-6 * extent))
    brain = files.cut(BRAIN, level) >= 0.5
    inside = np.asarray(reached & brain)
    there = int(np.count_nonzero(brain))
    share = int(np.count_nonzero(inside)) / max(1, there)
    if there and share < LEAST_REACHED:
        raise NotShown(
            f"{files.name(name)}: reaches only {100 * share:.0f} % of the brain in the {_where(level)}: by its affine "
            "it lies elsewhere than the mask"
        )
    return inside


def _which(name: str, files: StudyFiles) -> str:
    """Of a series of several volumes, which one is shown."""
    several = files.volumes_in(name)
    return "" if several == 1 else f"; volume 1 of {several}"


def _where(level: Level) -> str:
    return f"{level.layout.plane} slice {level.index} ({level.position_mm:g} mm)"
