"""Reading NIfTI volumes of which nothing is taken on trust.

The header is read first and held against a bound, so a broken file can't make the process ask for terabytes. Every
reason why a file can't be used is a `BadFile` that names the file. Values are scaled by the file's slope and intercept.
"""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from overread.errors import BadInput

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

MAX_VOXELS = 512**3
"""A 3-D brain series has about 9 million voxels."""

MAX_AXIS = 4096


class BadFile(BadInput):
    """A file that can't be used, and why: `file: reason`."""


class _Readable(Protocol):
    """A stream of uncompressed bytes."""

    def read(self, size: int = -1, /) -> bytes: ...

    def tell(self) -> int: ...


@dataclass(frozen=True)
class Header:
    """What a file says about itself."""

    shape: tuple[int, ...]
    affine: FloatArray  # (4, 4) voxel to RAS+ world, mm
    dtype: np.dtype[Any]
    offset: int  # first byte of the voxels
    slope: float
    intercept: float


@dataclass(frozen=True)
class Volume:
    """A 3-D series. Stored values are kept as they are; what is taken out is scaled."""

    path: Path
    stored: npt.NDArray[Any]
    affine: FloatArray
    slope: float
    intercept: float

    @property
    def shape(self) -> tuple[int, ...]:
        return self.stored.shape

    def part(self, place: tuple[slice | int, ...]) -> FloatArray:
        """Scaled values of a part of the array."""
        return np.asarray(self.stored[place].astype(np.float64) * self.slope + self.intercept)

    def slice(self, axis: int, index: int) -> FloatArray:
        """Scaled values of slice `index` across array axis `axis`."""
        return self.part(tuple(index if a == axis else slice(None) for a in range(3)))

    @cached_property
    def labelled(self) -> BoolArray:
        """Of a mask: where the label is not 0. A label may read 0.9999999998, so half a unit around 0 is 0."""
        return self._beyond(0.5)

    @cached_property
    def foreground(self) -> BoolArray:
        """Of a series: where the value is not 0, rounding errors of the scaling aside."""
        extent = max(
            abs(float(value) * self.slope + self.intercept) for value in (self.stored.min(), self.stored.max())
        )
        return self._beyond(1e-6 * extent)

    def _beyond(self, margin: float) -> BoolArray:
        low, high = sorted(((value - self.intercept) / self.slope) for value in (-margin, margin))
        return np.asarray((self.stored <= low) | (self.stored >= high))


def read_header(path: Path) -> Header:
    """The header of a `.nii` or `.nii.gz`. BadFile if it is none, or holds what can't be true."""
    with _opened(path) as file:
        return _header(path, file)


def read_volume(path: Path, *, may_be_empty: bool = False) -> Volume:
    """A 3-D volume, every voxel checked.

    may_be_empty  whether all voxels may be 0, as in the tumour mask of a brain without a tumour
    raises        BadFile: missing, empty, truncated, damaged, not NIfTI, not 3-D, too large, NaN or infinite, all equal
    """
    with _opened(path) as file:
        header = _header(path, file)
        if len(header.shape) != 3:
            raise BadFile(f"{path.name}: {len(header.shape)}-D {_times(header.shape)} where a 3-D volume is due")
        if min(header.shape) < 2:
            raise BadFile(f"{path.name}: wrong shape {_times(header.shape)}: a single slice is no volume")
        count = int(np.prod(header.shape))
        size = count * header.dtype.itemsize
        file.read(header.offset - file.tell())
        content = file.read(size)
        if len(content) < size:
            raise BadFile(f"{path.name}: truncated: {len(content)} of {size} bytes of voxels")
        file.read(1)  # reaches the end of a gzip stream, where its checksum is tested
    stored = np.frombuffer(content, dtype=header.dtype, count=count).reshape(header.shape, order="F")
    if stored.dtype.kind == "f" and not np.isfinite(stored).all():
        bad = int(np.count_nonzero(~np.isfinite(stored)))
        raise BadFile(f"{path.name}: {bad} of {count} voxels are NaN or infinite")
    low, high = (float(value) * header.slope + header.intercept for value in (stored.min(), stored.max()))
    if low == high and not (may_be_empty and abs(low) < 1e-6):
        raise BadFile(f"{path.name}: all voxels are {'zero' if abs(low) < 1e-6 else f'equal to {low:g}'}")
    return Volume(path, stored, header.affine, header.slope, header.intercept)


@contextmanager
def _opened(path: Path) -> Iterator[_Readable]:
    """The uncompressed bytes of a file; what goes wrong while they are read becomes a BadFile."""
    from isal import igzip, isal_zlib

    damage: Any = (isal_zlib.error, zlib.error, struct.error, gzip.BadGzipFile)
    try:
        if path.stat().st_size == 0:
            raise BadFile(f"{path.name}: empty file")
        with path.open("rb") as raw:
            magic = raw.read(2)
            raw.seek(0)
            if magic == b"\x1f\x8b":
                with igzip.IGzipFile(fileobj=raw, mode="rb") as unpacked:  # type: ignore[no-untyped-call]
                    yield unpacked
            elif path.suffix == ".gz":
                raise BadFile(f"{path.name}: not gzip, which its name says")
            else:
                yield raw
    except FileNotFoundError:
        raise BadFile(f"{path.name}: missing") from None
    except EOFError:
        raise BadFile(f"{path.name}: truncated: the gzip stream ends early") from None
    except damage as error:
        raise BadFile(f"{path.name}: damaged gzip stream ({error})") from None
    except OSError as error:
        raise BadFile(f"{path.name}: not readable ({error.strerror or error})") from None


def _header(path: Path, file: _Readable) -> Header:
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
        slope, intercept = parsed.get_slope_inter()
        affine = np.asarray(parsed.get_best_affine(), dtype=np.float64)
        offset = int(parsed["vox_offset"])
    except (HeaderDataError, ValueError, KeyError, OverflowError) as error:
        raise BadFile(f"{path.name}: unreadable header ({' '.join(str(error).split())})") from None
    if not 1 <= len(shape) <= 7 or not all(0 < n <= MAX_AXIS for n in shape):
        raise BadFile(f"{path.name}: unreadable header: a shape of {_times(shape)}")
    voxels = int(np.prod([float(n) for n in shape[:3]]))
    if voxels > MAX_VOXELS:
        raise BadFile(f"{path.name}: wrong shape {_times(shape)}: more than {MAX_VOXELS} voxels")
    if dtype.kind not in "iuf":
        raise BadFile(f"{path.name}: voxels of type {dtype}, not plain numbers")
    if not np.isfinite(affine).all() or abs(np.linalg.det(affine[:3, :3])) < 1e-9:
        raise BadFile(f"{path.name}: unreadable header: an affine that places no voxel")
    if offset < size:
        raise BadFile(f"{path.name}: unreadable header: voxels begin at byte {offset}, inside the header")
    slope = 1.0 if slope is None else float(slope)
    intercept = 0.0 if intercept is None else float(intercept)
    if not (np.isfinite(slope) and np.isfinite(intercept)):
        raise BadFile(f"{path.name}: unreadable header: slope {slope}, intercept {intercept}")
    return Header(shape, affine, dtype, offset, slope, intercept)


def _times(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))
