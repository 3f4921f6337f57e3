"""A small brain MRI study for tests: no two sides of it are alike, and its tumour lies in front, left and above.

    one = mri_study(tmp_path, "A", series=("T1", "FLAIR"), axes="LPS")

Everything is made in patient space (RAS+, 1 mm) and then written along other axes, so that files with other axes are
one scan.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import nibabel as nib
import numpy as np

from overread.core.records import Study
from overread.views.slice.drawing import USUAL_ORDER

SHAPE = (32, 30, 20)
"""Voxels to the right, front and top."""

ORIGIN = (-16.0, 5.0, -40.0)
"""Where voxel (0, 0, 0) lies, mm."""

MASKS = ("brain_segmentation", "brain_parenchyma_segmentation", "tumor_segmentation")
ALL = USUAL_ORDER
TUMOUR = (slice(5, 11), slice(18, 24), slice(9, 15))
"""Of oedema; its rim enhances from slice 11 to 13, so slice 12 has most of it by a voxel more."""


def inside() -> np.ndarray:
    """The brain: an egg, narrower in front, with a corner cut off on the right."""
    x, y, z = np.indices(SHAPE) - np.reshape([15.5, 14.0, 9.5], (3, 1, 1, 1))
    egg = (x / (12.5 - 0.12 * y)) ** 2 + (y / 13) ** 2 + (z / 8.5) ** 2 <= 1
    return np.asarray(egg & ~((x > 6) & (y < -6)))


def tumour() -> np.ndarray:
    """Labels 2 and 4, most in slice 12."""
    labels = np.zeros(SHAPE, dtype=np.int16)
    labels[TUMOUR] = 2
    labels[6:10, 19:23, 11:14] = 4
    labels[7:9, 20:22, 12] = 1
    labels[11, 20, 12] = 2
    return labels


def along(values: np.ndarray, axes: str) -> nib.Nifti1Image:
    """An array of patient space as an image whose axes run to `axes`, at the same place."""
    affine = np.eye(4)
    affine[:3, 3] = ORIGIN
    ornt = nib.orientations.ornt_transform(
        nib.orientations.axcodes2ornt("RAS"), nib.orientations.axcodes2ornt(tuple(axes))
    )
    turned = nib.orientations.apply_orientation(values, ornt)
    return nib.Nifti1Image(turned, affine @ nib.orientations.inv_ornt_aff(ornt, values.shape))


def series_values(name: str, seed: int) -> np.ndarray:
    """A series' values in patient space, int16, 0 outside the brain."""
    if name in MASKS:
        return tumour() if name == "tumor_segmentation" else inside().astype(np.int16)
    rng = np.random.default_rng([seed, *name.encode()])
    level = rng.uniform(300, 900)
    slope = np.indices(SHAPE) * np.reshape(rng.uniform(1, 6, 3), (3, 1, 1, 1))
    values = level + slope.sum(axis=0) + rng.normal(0, 30, SHAPE) + 400 * (tumour() > 0)
    return np.asarray(np.where(inside(), np.maximum(values, 1), 0).astype(np.int16))


def mri_study(
    root: Path, name: str = "A", *, series: Collection[str] = ALL, axes: str = "LPS", seed: int = 0, **more: object
) -> Study:
    """A study with `series` and the masks, each a file under `root`/`name`. Names and seed decide what is in them."""
    paths = {}
    for one in dict.fromkeys([*series, *MASKS]):
        values = series_values(one, seed + len(name) + ord(name[0]))
        if one == "DTI_eddy_noreg":
            values = np.stack([values, values // 2], axis=-1)
        path = root / name / f"{name}_{one}.nii.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        image = along(values[..., 0], axes) if values.ndim == 4 else along(values, axes)
        if values.ndim == 4:
            stacked = np.stack([along(values[..., n], axes).get_fdata() for n in range(2)], axis=-1).astype(np.int16)
            image = nib.Nifti1Image(stacked, image.affine)
        nib.save(image, path)
        paths[one] = str(path)
    row: dict[str, object] = {
        "study": name, "patient": f"p{name}", "dataset": "d", "modality": "mri", "images": paths, "report": {},
        "labels": {}, "restricted": False,
    }  # fmt: skip
    return Study.model_validate({**row, **more})


def without(study: Study, *series: str) -> Study:
    """The study as if these files had never been there."""
    return study.model_copy(
        update={"images": {name: path for name, path in study.images.items() if name not in series}}
    )
