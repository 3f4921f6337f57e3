"""A series for the browser: its file as it was scanned where a browser can read it, else the same voxels as NIfTI.

A browser unpacks gzip and reads plain numbers of up to 64 bits in little-endian order. What is something else - a DICOM
series, a file that is not packed, big-endian, 64-bit whole numbers, several volumes in one file - goes through the
project's own readers, which check every voxel, and is kept in memory.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from overread.core.inputs import regular
from overread_viewer.kept import Kept

if TYPE_CHECKING:
    from overread.core.records import Geometry, Study
    from overread.images.volume_file import VolumePicture

READABLE = frozenset({"|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<f4", "<f8"})
"""Types of voxels, as numpy writes them, for which browsers have an array."""

BUDGET = 384 * 2**20


@dataclass(frozen=True)
class Scan:
    """What a browser needs to show a series.

    content  its file where it can be sent as it is, else the bytes of a `.nii.gz`
    facts    shape, affine (voxel to RAS+ world, mm, four rows), dtype, offset of the first voxel, slope, intercept, and
             a note for a person
    """

    content: Path | bytes
    facts: dict[str, Any]

    @cached_property
    def tag(self) -> str:
        """Of the bytes, as HTTP's entity tag; a file has its own."""
        assert isinstance(self.content, bytes)
        return tag_of(self.content)


def tag_of(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


class Volumes:
    """The scans that were asked for, kept while their files are what they were. Several readers may ask at once."""

    def __init__(self, budget: int = BUDGET) -> None:
        self._kept = Kept(budget)

    def scan(self, path: Path, geometry: Geometry = "agree") -> Scan:
        """A series of any format that the project reads; of several volumes in a file the first.

        geometry  which part of a NIfTI header holds where its parts disagree: `geometry_of` a study
        raises    BadFile with the file and the reason
        """
        also = tuple(sorted(path.iterdir())) if path.is_dir() else ()
        scan: Scan = self._kept.get(path, lambda: _scan(path, geometry), also=also, size=_size, part=geometry)
        return scan


def _size(scan: Scan) -> int:
    return len(scan.content) if isinstance(scan.content, bytes) else 0


def geometry_of(study: Study) -> Geometry:
    """Which part of its files' headers holds, as its source was told."""
    return cast("Geometry", study.reading.get("geometry", "agree"))


def _scan(path: Path, geometry: Geometry) -> Scan:
    from overread.images.dicom_series import is_series, read_series
    from overread.images.volume import read_header, read_volume
    from overread.images.volume_file import canonical

    if is_series(path):
        return _made(canonical(read_series(path, may_be_empty=True)), "DICOM series, turned into NIfTI for display")
    header = read_header(path, geometry)
    note = f"{_grid(header.shape, header.affine)}, as scanned"
    if header.dtype.str in READABLE and len(header.shape) == 3 and min(header.shape) > 1 and _is_packed(path):
        facts = _facts(
            header.shape, header.affine.tolist(), header.dtype.str, header.offset, header.slope, header.intercept, note
        )
        return Scan(path, facts)
    volume = read_volume(path, may_be_empty=True, first=True, geometry=geometry)
    note = f"{_grid(volume.shape, volume.affine)}, {'as scanned' if volume.of == 1 else f'volume 1 of {volume.of}'}"
    return _made(canonical(volume), note)


def _made(volume: VolumePicture, note: str) -> Scan:
    import numpy as np

    from overread.images.volume_file import OFFSET, volume_bytes

    if volume.stored.dtype.str not in READABLE:
        volume = replace(volume, stored=volume.stored.astype("<f8"))
    affine = [[float(value) for value in row] for row in np.asarray(volume.affine)]
    shape = tuple(int(size) for size in volume.stored.shape)
    facts = _facts(shape, affine, volume.stored.dtype.str, OFFSET, volume.slope, volume.intercept, note)
    return Scan(volume_bytes(volume), facts)


def _facts(
    shape: tuple[int, ...],
    affine: list[list[float]],
    dtype: str,
    offset: int,
    slope: float,
    intercept: float,
    note: str,
) -> dict[str, Any]:
    return {
        "shape": list(shape), "affine": affine, "dtype": dtype, "offset": offset, "slope": slope,
        "intercept": intercept, "note": note,
    }  # fmt: skip


def _grid(shape: tuple[int, ...], affine: Any) -> str:
    import numpy as np

    from overread.images.header import times

    sizes = np.linalg.norm(np.asarray(affine)[:3, :3], axis=0)
    spacing = f"{sizes[0]:.3g}" if np.allclose(sizes, sizes[0], rtol=1e-3) else times(np.round(sizes, 2))
    return f"{times(shape[:3])} voxels of {spacing} mm"


def _is_packed(path: Path) -> bool:
    with regular(path).open("rb") as file:
        return file.read(2) == b"\x1f\x8b"
