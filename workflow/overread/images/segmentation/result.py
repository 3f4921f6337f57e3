"""What a segmentation leaves: mask.nii.gz, mask.json, and mask_brain.nii.gz where the study brings no brain mask.

The JSON is written last, so where it stands the masks are whole. A study that can't be segmented has the reason there
and no mask. Finished ones are kept in a work folder under a key of all that they depend on: a batch system that kills
one job of a group takes the files of the whole group away.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationError

from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.outputs import OutputFolder
from overread.core.records import Record, Study, one_line

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from overread.images.segmentation.grid import Grid

BrainSource = Literal["provided", "deepbet", "none"]


class Segmentation(Record):
    """`mask.json`: which mask this is, and how it came about."""

    study: str
    method: str
    problem: str | None = None  # why there is no mask
    volumes_ml: dict[str, float] | None = None  # by label: 1 necrotic core, 2 oedema, 4 enhancing
    brain: BrainSource = "none"  # where the brain mask comes from
    brain_ml: float | None = None
    checkpoint_sha256: str | None = None
    feature_size: int | None = None
    roi: tuple[int, int, int] | None = None
    overlap: float | None = None
    flips: bool | None = None
    device: str | None = None
    precision: str | None = None
    seconds: float | None = None  # from reading to writing, without the start of the program
    network_seconds: float | None = None  # of them in the network
    resampled: tuple[str, ...] = ()  # series that lay on another grid than FLAIR
    background_removed: tuple[str, ...] = ()  # series that had signal outside of the brain
    relabelled: dict[str, int] = Field(default_factory=dict)  # numbers in the file that stand for others here
    key: str | None = None  # of all that the masks depend on


def json_path(mask: Path) -> Path:
    """The JSON beside a mask `<name>.nii.gz`. BadInput for a mask of another name."""
    if not mask.name.endswith(".nii.gz") or mask.name == ".nii.gz":
        raise BadInput(f"{mask}: a mask is written as <name>.nii.gz")
    return mask.with_name(mask.name.removesuffix(".nii.gz") + ".json")


def brain_path(mask: Path) -> Path:
    """Where the brain mask that was made for a study lies."""
    return mask.with_name(mask.name.removesuffix(".nii.gz") + "_brain.nii.gz")


def write_mask(labels: npt.NDArray[np.uint8], grid: Grid, path: Path) -> None:
    """A NIfTI of whole numbers on `grid`. The same mask gives the same bytes."""
    import nibabel as nib
    from isal import isal_zlib

    image: Any = nib.Nifti1Image(labels, grid.affine)  # type: ignore[no-untyped-call]
    image.set_sform(grid.affine, code=1)
    image.set_qform(grid.affine, code=1)
    image.header.set_xyzt_units("mm")
    pack = isal_zlib.compressobj(2, wbits=31)  # gzip without name and time
    with folder(path).writing(path) as temporary:
        temporary.write_bytes(pack.compress(image.to_bytes()) + pack.flush())


def write_result(result: Segmentation, mask: Path) -> None:
    with folder(mask).writing(json_path(mask)) as temporary:
        temporary.write_text(result.model_dump_json(indent=1) + "\n", encoding="utf-8")


def read_result(path: Path) -> Segmentation:
    """BadInput if there is none, or it is none."""
    try:
        return Segmentation.model_validate_json(regular(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; segment the study first") from None
    except (ValidationError, ValueError) as error:
        why = one_line(error) if isinstance(error, ValidationError) else str(error)
        raise BadInput(f"{path}: not the JSON of a segmentation ({why}); segment the study again") from None


def clear(mask: Path) -> None:
    """Remove what an earlier run left, the JSON first. BadInput for a file that no earlier run wrote."""
    folder(mask).remove(json_path(mask).name, mask.name, brain_path(mask).name)


def folder(mask: Path) -> OutputFolder:
    """Where a mask and what goes beside it lie: a person may keep masks of their own there."""
    return OutputFolder(mask.parent, "images segment")


def keep(mask: Path, place: Path) -> None:
    """A copy of a finished segmentation in the folder `place`; the JSON is copied last. BadInput for another's file."""
    for path in (mask, brain_path(mask), json_path(mask)):
        if path.exists():
            with folder(place / mask.name).writing(place / path.name) as temporary:
                shutil.copyfile(path, temporary)


def take(mask: Path, work: Path, key: str) -> Segmentation | None:
    """Put what was kept under `key` in its place; None if nothing whole was."""
    kept = work / mask.name
    try:
        result = read_result(json_path(kept))
    except BadInput:  # nothing, or what another version wrote
        return None
    needed = [kept, *([brain_path(kept)] if result.brain == "deepbet" else [])]
    if result.key != key or not all(path.exists() for path in needed):
        return None
    clear(mask)
    keep(kept, mask.parent)
    return result


# -- what views take from it -------------------------------------------------------------------------------------------


def with_masks(study: Study, path: Path) -> tuple[Study, str]:
    """The study with the masks of the JSON at `path` in place of its own, and which these are, for the index.

    A study that could not be segmented has the reason as its problem.
    raises  BadInput if the JSON is missing, none, or another study's
    """
    from overread.images.files import BRAIN, TUMOUR

    result = read_result(path)
    if result.study != study.study:
        raise BadInput(f"{path}: is of study {result.study}, not {study.study}")
    if result.problem is not None:
        return study.model_copy(update={"problem": study.problem or f"{result.method}: {result.problem}"}), ""
    mask = path.with_suffix(".nii.gz")
    masks = {TUMOUR: str(mask)}
    which = f"tumour mask: {result.method}"
    if result.brain == "deepbet":
        masks[BRAIN] = str(brain_path(mask))
        which += "; brain mask: deepbet"
    # A mask that was written here has the numbers of `images.labels`, whatever the data set's own had.
    reading = {name: how for name, how in study.reading.items() if not name.startswith("label ")}
    return study.model_copy(update={"images": {**study.images, **masks}, "reading": reading}), which
