"""The header of a NIfTI file, of which nothing is taken on trust.

It is read before the voxels and held against bounds, so that a broken file can't make the process ask for terabytes;
what can't be true of a scan is refused. Nothing is guessed: a file that does not say how it lies is refused too.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from overread.core.errors import BadInput
from overread.core.records import Geometry

FloatArray = npt.NDArray[np.float64]

MAX_VOXELS = 512**3
"""A 3-D brain series has about 9 million voxels."""

MAX_AXIS = 4096

MAX_OFFSET = 2**24
"""Bytes. Extensions of a header lie before the voxels; 16 MB of them are no scan's."""

MOST_SHEAR = 0.02
"""Cosine of the angle between two axes of the grid: 1.1 degrees off perpendicular, more than rounding can do."""


MOST_APART = 0.1
"""Of the smallest voxel edge: how far sform and qform may place the same corner of the grid apart. Rounding to 32 bits
moves it by less than a thousandth."""

MOST_UNEQUAL = 0.01
"""By how much of it a voxel's edge in the affine may differ from the one in pixdim."""


class BadFile(BadInput):
    """A file that can't be used, and why: `file: reason`."""


class Readable(Protocol):
    """A stream of uncompressed bytes."""

    def read(self, size: int = -1, /) -> bytes: ...

    def tell(self) -> int: ...


@dataclass(frozen=True)
class Header:
    """What a file says about itself."""

    shape: tuple[int, ...]  # three axes, or more of a series of volumes; further axes of length 1 are left out
    affine: FloatArray  # (4, 4) voxel to RAS+ world, mm
    dtype: np.dtype[Any]
    offset: int  # first byte of the voxels
    slope: float
    intercept: float


def parse_header(path: Path, file: Readable, geometry: Geometry = "agree") -> Header:
    """The header at the beginning of `file`, which stands behind it afterwards.

    path      only named in errors
    geometry  which part is believed where sform, qform and pixdim differ
    raises    BadFile if it is no NIfTI header, or holds what can't be true
    """
    import nibabel as nib
    from nibabel.spatialimages import HeaderDataError

    start = file.read(4)
    size = {348: 348, 540: 540}.get(min(int.from_bytes(start, "little"), int.from_bytes(start, "big")))
    if size is None:
        raise BadFile(f"{path.name}: not NIfTI: no header of 348 or 540 bytes")
    content = start + file.read(size - 4)
    if len(content) < size:
        raise BadFile(f"{path.name}: truncated: {len(content)} of {size} bytes of header")
    kind = nib.Nifti1Header if size == 348 else nib.Nifti2Header
    place = 344 if size == 348 else 4
    if content[place : place + 3] not in (b"n+1", b"n+2"):
        raise BadFile(f"{path.name}: not NIfTI: no magic string")
    try:
        parsed = kind.from_fileobj(io.BytesIO(content), check=False)  # type: ignore[no-untyped-call]
        shape = tuple(int(n) for n in parsed.get_data_shape())
        dtype = parsed.get_data_dtype()
        slope, intercept = parsed.get_slope_inter()  # none for a slope of 0, which means: as stored
        offset = int(parsed["vox_offset"])
    except (HeaderDataError, ValueError, KeyError, OverflowError) as error:
        raise _unreadable(path, " ".join(str(error).split())) from None
    if not 1 <= len(shape) <= 7 or not all(0 < n <= MAX_AXIS for n in shape):
        raise _unreadable(path, f"a shape of {times(shape)}")
    while len(shape) > 3 and shape[-1] == 1:
        shape = shape[:-1]
    voxels = int(np.prod([float(n) for n in shape[:3]]))
    if voxels > MAX_VOXELS:
        raise BadFile(f"{path.name}: wrong shape {times(shape)}: more than {MAX_VOXELS} voxels")
    if dtype.kind not in "iuf":
        raise BadFile(f"{path.name}: voxels of type {dtype}, not plain numbers")
    if offset < size:
        raise _unreadable(path, f"voxels begin at byte {offset}, inside the header")
    if offset > MAX_OFFSET:
        raise _unreadable(path, f"voxels begin at byte {offset}, more than {MAX_OFFSET}")
    slope = 1.0 if slope is None else float(slope)
    intercept = 0.0 if intercept is None else float(intercept)
    if not (np.isfinite(slope) and np.isfinite(intercept)):
        raise _unreadable(path, f"slope {slope}, intercept {intercept}")
    return Header(shape, _affine(path, parsed, shape, geometry), dtype, offset, slope, intercept)


def _affine(path: Path, parsed: Any, shape: tuple[int, ...], geometry: Geometry) -> FloatArray:
    """The affine of the sform, else of the qform: as nibabel chooses, but only where all parts of the header agree.

    A file with neither says nothing about where the patient's left is, and nibabel's default would be a guess. Where
    the two differ, readers differ too (ITK takes the qform of most such files, nibabel the sform), and nobody can tell
    by the file which one is right.
    """
    spacing = np.asarray(parsed["pixdim"][1:4], dtype=np.float64)
    if not (np.isfinite(spacing) & (spacing > 0)).all():
        raise _unreadable(path, f"a voxel spacing of {times(spacing)} mm")
    unit = {1: "metres", 3: "micrometres"}.get(int(parsed["xyzt_units"]) & 7)
    if unit is not None:
        raise _unreadable(path, f"lengths are in {unit}; expected millimetres")
    coded = [name for name in ("sform", "qform") if int(parsed[f"{name}_code"]) > 0]
    if not coded:
        raise _unreadable(path, "neither sform nor qform says how the patient lies")
    if geometry != "agree" and geometry not in coded:
        raise _unreadable(path, f"no {geometry}, which 'geometry' names: its code is 0")
    chosen = coded[0] if geometry == "agree" else geometry
    affine = _placing(path, parsed, chosen)
    if geometry == "agree":
        for other in coded[1:]:
            _agree(path, affine, _placing(path, parsed, other), shape)
        edges = np.linalg.norm(affine[:3, :3], axis=0)
        if (np.abs(edges - spacing) > MOST_UNEQUAL * spacing).any():
            raise _unreadable(
                path,
                f"voxels of {times(np.round(edges, 4))} mm by the {chosen} and {times(np.round(spacing, 4))} mm by "
                f"pixdim{_SETTLE}",
            )
    return affine


_SETTLE = "; set geometry: sform or qform to say which one holds"


def _placing(path: Path, parsed: Any, name: str) -> FloatArray:
    """The affine of the `sform` or the `qform`. BadFile if it can't be that of a grid in space."""
    from nibabel.spatialimages import HeaderDataError

    try:
        affine = np.asarray(parsed.get_sform() if name == "sform" else parsed.get_qform(), dtype=np.float64)
    except (HeaderDataError, ValueError) as error:
        raise _unreadable(path, f"{name}: {' '.join(str(error).split())}") from None
    axes = affine[:3, :3]
    if not np.isfinite(affine).all() or abs(np.linalg.det(axes)) < 1e-9:
        raise _unreadable(path, "an affine that places no voxel")
    unit = axes / np.linalg.norm(axes, axis=0)
    cosine = float(np.abs(unit.T @ unit - np.eye(3)).max())
    if cosine > MOST_SHEAR:
        off = abs(90 - float(np.degrees(np.arccos(cosine))))
        raise _unreadable(path, f"an affine whose axes are not perpendicular ({off:.1f} degrees off)")
    return affine


def _agree(path: Path, sform: FloatArray, qform: FloatArray, shape: tuple[int, ...]) -> None:
    """BadFile unless both place all corners of the grid alike: that tells sides, turns, shifts and lengths."""
    corners = np.array([[x, y, z, 1.0] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
    corners[:, :3] *= np.array([*shape, 1, 1][:3]) - 1
    apart = float(np.linalg.norm(corners @ (sform - qform).T, axis=1).max())
    if apart <= MOST_APART * float(np.linalg.norm(sform[:3, :3], axis=0).min()):
        return
    axes, others = sform[:3, :3], qform[:3, :3]
    if np.linalg.det(axes) * np.linalg.det(others) < 0:
        what = "which side is left"
    else:
        turned = (axes / np.linalg.norm(axes, axis=0)).T @ (others / np.linalg.norm(others, axis=0))
        angle = float(np.degrees(np.arccos(np.clip((np.trace(turned) - 1) / 2, -1, 1))))
        what = f"how the patient lies (turned by {angle:.1f} degrees)" if angle > 1 else "where the patient lies"
    raise _unreadable(path, f"sform and qform disagree on {what}, by up to {apart:.4g} mm{_SETTLE}")


def _unreadable(path: Path, why: str) -> BadFile:
    return BadFile(f"{path.name}: unreadable header: {why}")


def times(sizes: npt.ArrayLike) -> str:
    """`240x240x155`."""
    return "x".join(f"{size:g}" for size in np.asarray(sizes).tolist())
