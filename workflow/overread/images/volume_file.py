"""A whole volume as a picture: its file, and the hash that stands for its content.

The voxels are kept as they were scanned, with the scaling beside them. Only the order of the axes is canonical: they
run to the patient's right, front and top (RAS+), so that two files of one scan are one picture.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.records import replacing

if TYPE_CHECKING:
    from overread.images.volume import FloatArray, Volume

SUFFIX = ".nii.gz"
COMPRESSION = 2
OFFSET = 352
"""The first byte of the voxels."""


@dataclass(frozen=True)
class VolumePicture:
    """What a file of `write_volume` holds.

    stored            (right, front, top) voxels; the value of one is stored * slope + intercept
    affine            (4, 4) voxel to RAS+ world, mm, rounded to what the file can hold (32 bits)
    slope, intercept  rounded likewise
    """

    stored: npt.NDArray[Any]
    affine: FloatArray
    slope: float = 1.0
    intercept: float = 0.0

    @property
    def values(self) -> npt.NDArray[np.float32]:
        """Scaled, (right, front, top)."""
        return np.asarray(self.stored * np.float32(self.slope) + np.float32(self.intercept), dtype=np.float32)

    @cached_property
    def pixels(self) -> str:
        """`digest` of all of it."""
        voxels = np.asfortranarray(self.stored)
        return digest(
            voxels.dtype.str, voxels.shape, self.affine_rows, self.slope, self.intercept, voxels.tobytes(order="F")
        )

    @property
    def affine_rows(self) -> tuple[float, ...]:
        """The first three rows of the affine, one after the other."""
        return tuple(float(value) for value in self.affine[:3].ravel())

    @property
    def facts(self) -> dict[str, object]:
        """What a `Picture` says about it."""
        width, height, depth = self.stored.shape
        return {
            "pixels": self.pixels,
            "width": width,
            "height": height,
            "depth": depth,
            "affine": self.affine_rows,
        }


def canonical(volume: Volume) -> VolumePicture:
    """A series as it was scanned, its axes in canonical order. Nothing is interpolated."""
    import nibabel as nib

    orientation = nib.orientations.io_orientation(volume.affine)  # type: ignore[no-untyped-call]
    stored = nib.orientations.apply_orientation(volume.stored, orientation)  # type: ignore[no-untyped-call]
    turned = nib.orientations.inv_ornt_aff(orientation, volume.shape)  # type: ignore[no-untyped-call]
    return VolumePicture(
        stored=stored.astype(stored.dtype.newbyteorder("<"), copy=False),
        affine=_rounded(volume.affine @ turned),
        slope=float(np.float32(volume.slope)),
        intercept=float(np.float32(volume.intercept)),
    )


def digest(
    dtype: str, shape: Sequence[int], affine: Sequence[float], slope: float, intercept: float, voxels: bytes
) -> str:
    """SHA-256 over what makes a volume: type, shape, affine, scaling and voxels.

    dtype   as numpy writes it, `<i2`
    affine  the first three rows, one after the other
    voxels  the first axis fastest, little-endian
    """
    numbers = np.array([*affine, slope, intercept], dtype="<f4").tobytes()
    head = f"volume:{dtype}:{'x'.join(map(str, shape))}:".encode()
    return hashlib.sha256(head + numbers + voxels).hexdigest()


def write_volume(volume: VolumePicture, path: Path) -> None:
    """A `.nii.gz` without a date. The same volume gives the same bytes."""
    with replacing(path) as temporary:
        temporary.write_bytes(volume_bytes(volume))


def volume_bytes(volume: VolumePicture) -> bytes:
    """What `write_volume` writes."""
    import nibabel as nib
    from isal import isal_zlib

    header: Any = nib.Nifti1Header()  # type: ignore[no-untyped-call]
    header.set_data_dtype(volume.stored.dtype)
    header.set_data_shape(volume.stored.shape)
    header.set_zooms(np.linalg.norm(volume.affine[:3, :3], axis=0))
    header.set_xyzt_units("mm")
    header.set_sform(volume.affine, code=1)
    header.set_qform(volume.affine, code=1)
    header.set_slope_inter(volume.slope, volume.intercept)
    header["vox_offset"], header["magic"] = OFFSET, b"n+1"
    pack = isal_zlib.compressobj(COMPRESSION, wbits=31)
    content = pack.compress(header.binaryblock + bytes(4))
    return bytes(content + pack.compress(volume.stored.tobytes(order="F")) + pack.flush())


def read_volume_picture(path: Path, pixels: str | None = None) -> VolumePicture:
    """A file of `write_volume`.

    pixels  the hash that it must have, if that is known
    raises  BadInput if it is missing, damaged, no 3-D volume in canonical order, or not the one of that hash
    """
    import nibabel as nib

    again = "render the images of this dataset again"
    try:
        image: Any = nib.load(regular(path))
        volume = VolumePicture(
            stored=np.asarray(image.dataobj.get_unscaled()),
            affine=np.asarray(image.affine, dtype=np.float64),
            slope=float(image.dataobj.slope),
            intercept=float(image.dataobj.inter),
        )
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; {again}") from None
    except (OSError, EOFError, ValueError, zlib.error, gzip.BadGzipFile, nib.filebasedimages.ImageFileError) as error:
        raise BadInput(f"{path}: not readable as a volume ({' '.join(str(error).split())}); {again}") from None
    axes = "".join(nib.orientations.aff2axcodes(volume.affine))  # type: ignore[no-untyped-call]
    if volume.stored.ndim != 3 or axes != "RAS":
        raise BadInput(f"{path}: {volume.stored.ndim}-D, {axes}; a picture is 3-D with axes RAS; {again}")
    if pixels is not None and volume.pixels != pixels:
        raise BadInput(f"{path}: its content has changed since the trials were built; {again}")
    return volume


def volume_hash(path: Path) -> str:
    """The `pixels` of the volume in a file, however the file is compressed. BadInput if it can't be read."""
    return read_volume_picture(path).pixels


def _rounded(affine: FloatArray) -> FloatArray:
    """As the header's 32 bits hold it: what is hashed is what is read back. -0 becomes 0."""
    return np.asarray(affine.astype(np.float32).astype(np.float64) + 0.0)
