"""Reading NIfTI volumes: every voxel checked, none converted before it is needed.

Every reason why a file can't be used is a `BadFile` that names the file. Values are scaled by the file's slope and
intercept as they are taken out.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from overread.core.inputs import regular
from overread.core.records import Geometry
from overread.images.header import BadFile, FloatArray, Header, Readable, parse_header, times

__all__ = ["BadFile", "BoolArray", "FloatArray", "Header", "LabelArray", "Volume", "read_header", "read_volume"]

BoolArray = npt.NDArray[np.bool_]
LabelArray = npt.NDArray[np.uint8]

MOST_DEFLATED = 1100
"""Bytes that one byte of gzip can stand for: 1,032 by the format, and some room."""


@dataclass(frozen=True)
class Volume:
    """A 3-D series. Stored values are kept as they are; what is taken out is scaled."""

    path: Path
    stored: npt.NDArray[Any]
    affine: FloatArray
    slope: float
    intercept: float
    of: int = 1
    """How many volumes the file holds; this is the first of them."""
    meanings: dict[int, int] | None = None
    """Of a tumour mask: the number of `labels.LABELS`, or 0, by the number in the file; None where nobody said so."""

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
    def labels(self) -> tuple[LabelArray, dict[str, int]]:
        """Of a tumour mask: `labels.read_labels`, once."""
        from overread.images.labels import read_labels

        return read_labels(self)

    @cached_property
    def labelled(self) -> BoolArray:
        """Of a mask: where the label is not 0. A label may read 0.9999999998, so half a unit around 0 is 0."""
        return self.beyond(0.5)

    @cached_property
    def foreground(self) -> BoolArray:
        """Of a series: where the value is not 0, rounding errors of the scaling aside."""
        extent = max(
            abs(float(value) * self.slope + self.intercept) for value in (self.stored.min(), self.stored.max())
        )
        return self.beyond(1e-6 * extent)

    def beyond(self, margin: float) -> BoolArray:
        """Where the value is at least `margin` away from 0."""
        low, high = sorted(((value - self.intercept) / self.slope) for value in (-margin, margin))
        if self.stored.dtype.kind in "iu":  # whole numbers are compared as such, which is much faster
            least, most = int(np.floor(low)), int(np.ceil(high))
            if most - least == 2:
                return np.asarray(self.stored != least + 1)
            return np.asarray((self.stored <= least) | (self.stored >= most))
        return np.asarray((self.stored <= low) | (self.stored >= high))


def read_header(path: Path, geometry: Geometry = "agree") -> Header:
    """The header of a `.nii` or `.nii.gz`. BadFile if it is none, or holds what can't be true."""
    with _opened(path) as (file, _):
        return parse_header(path, file, geometry)


def read_volume(path: Path, *, may_be_empty: bool = False, first: bool = False, geometry: Geometry = "agree") -> Volume:
    """A 3-D volume, every voxel checked.

    may_be_empty  whether all voxels may be 0, as in the tumour mask of a brain without a tumour
    first         take the first volume of a 4-D series; of the others nothing is read
    geometry      which part of the header says how the patient lies, where its parts differ
    raises        BadFile: missing, empty, truncated, damaged, not NIfTI, not 3-D, too large, NaN or infinite, all equal
    """
    with _opened(path) as (file, at_most):
        header = parse_header(path, file, geometry)
        shape = header.shape
        of = shape[-1] if first and len(shape) == 4 else 1
        if of > 1:
            shape = shape[:3]
        if len(shape) != 3:
            raise BadFile(f"{path.name}: expected a 3-D volume, found {len(shape)}-D ({times(shape)})")
        if min(shape) < 2:
            raise BadFile(f"{path.name}: wrong shape {times(shape)}: a single slice is no volume")
        count = int(np.prod(shape))
        size = count * header.dtype.itemsize
        there = max(0, at_most - header.offset)
        if there < size:  # said before any memory is asked for
            raise BadFile(f"{path.name}: truncated: at most {there} of {size} bytes of voxels")
        file.read(header.offset - file.tell())
        content = file.read(size)
        if len(content) < size:
            raise BadFile(f"{path.name}: truncated: {len(content)} of {size} bytes of voxels")
        if of == 1:
            file.read(1)  # reaches the end of a gzip stream, where its checksum is tested
    stored = np.frombuffer(content, dtype=header.dtype, count=count).reshape(shape, order="F")
    _check_values(path, stored, header)
    if not _varies(stored):
        value = float(stored.flat[0]) * header.slope + header.intercept
        if not (may_be_empty and abs(value) < 1e-6):
            raise BadFile(f"{path.name}: all voxels are {'zero' if abs(value) < 1e-6 else f'equal to {value:g}'}")
    return Volume(path, stored, header.affine, header.slope, header.intercept, of)


def _check_values(path: Path, stored: npt.NDArray[Any], header: Header) -> None:
    """BadFile for anything that is no finite number, as it is stored or after scaling. Whole numbers all are."""
    if stored.dtype.kind != "f":
        return
    least, most = float(stored.min()), float(stored.max())  # NaN if there is any
    if not (np.isfinite(least) and np.isfinite(most)):
        bad = int(np.count_nonzero(~np.isfinite(stored)))
        raise BadFile(f"{path.name}: {bad} of {stored.size} voxels are NaN or infinite")
    if not all(np.isfinite(value * header.slope + header.intercept) for value in (least, most)):
        raise BadFile(f"{path.name}: values beyond what a number can hold, with a slope of {header.slope:g}")


def _varies(stored: npt.NDArray[Any]) -> bool:
    """Whether there are two different values. A few voxels tell it of nearly every file, else all are looked at."""
    flat = stored.reshape(-1, order="F")
    return bool((flat[:: 1 + flat.size // 10_000] != flat[0]).any()) or bool((flat != flat[0]).any())


@cache
def _gzip_library() -> tuple[Any, Any]:
    """A gzip file class and its error: of zlib-ng where it is installed, which is a tenth faster than ISA-L."""
    try:
        from zlib_ng import gzip_ng, zlib_ng  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        from isal import igzip, isal_zlib

        return igzip.IGzipFile, isal_zlib.error
    return gzip_ng.GzipNGFile, zlib_ng.error


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Readable, int]]:
    """The uncompressed bytes of a file, and how many they can be at most; what goes wrong becomes a BadFile."""
    unpacker, error_of_unpacker = _gzip_library()
    damage: Any = (error_of_unpacker, zlib.error, struct.error, gzip.BadGzipFile)
    try:
        with regular(path).open("rb") as raw:
            size = raw.seek(0, 2)
            raw.seek(0)
            if size == 0:
                raise BadFile(f"{path.name}: empty file")
            magic = raw.read(2)
            raw.seek(0)
            if magic == b"\x1f\x8b":
                with unpacker(fileobj=raw, mode="rb") as unpacked:
                    yield unpacked, size * MOST_DEFLATED
            elif path.suffix == ".gz":
                raise BadFile(f"{path.name}: not gzip, which its name says")
            else:
                yield raw, size
    except FileNotFoundError:
        raise BadFile(f"{path.name}: missing") from None
    except EOFError:
        raise BadFile(f"{path.name}: truncated: the gzip stream ends early") from None
    except damage as error:
        raise BadFile(f"{path.name}: damaged gzip stream ({error})") from None
    except OSError as error:
        raise BadFile(f"{path.name}: not readable ({error.strerror or error})") from None
