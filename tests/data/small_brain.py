"""A study of brain MRI in miniature: four series and two masks as NIfTI on one grid, no two series alike."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import nibabel as nib
import numpy as np

from overread.core.records import Study

SHAPE = (40, 36, 28)
LPS = np.array([[-1.0, 0, 0, 0], [0, -1, 0, 35], [0, 0, 1, 0], [0, 0, 0, 1]])
SERIES = ("FLAIR", "T1", "T1c", "T2")


def brain() -> np.ndarray:
    """An ellipsoid that touches no face."""
    axes = np.meshgrid(*(np.linspace(-1, 1, n) for n in SHAPE), indexing="ij")
    return np.asarray(sum((axis / 0.9) ** 2 for axis in axes) < 1)


def series(seed: int = 0) -> dict[str, np.ndarray]:
    """Random signal inside of the brain, each series with a mean and a spread of its own, 0 outside."""
    rng = np.random.default_rng(seed)
    inside = brain()
    made = {}
    for place, name in enumerate(SERIES):
        values = np.rint(rng.normal(400 + 300 * place, 40 + 25 * place, SHAPE))
        made[name] = (np.maximum(values, 1) * inside).astype(np.int16)
    return made


def tumour() -> np.ndarray:
    """High in the brain, oedema around an enhancing rim around a necrotic core: labels 2, 4, 1."""
    labels = np.zeros(SHAPE, dtype=np.int16)
    labels[8:26, 10:26, 17:25] = 2
    labels[12:22, 13:22, 19:24] = 4
    labels[15:19, 15:20, 20:23] = 1
    return labels


def save(path: Path, data: np.ndarray, affine: np.ndarray = LPS) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(data, affine), path)
    return str(path)


def study(root: Path, name: str = "A", volumes: Mapping[str, np.ndarray] | None = None, **more: object) -> Study:
    """A row of `studies.parquet` with its files under `root`/`name`. What `volumes` names replaces the usual."""
    whole = {
        **series(),
        "brain_segmentation": brain().astype(np.int16),
        "tumor_segmentation": tumour(),
        **(volumes or {}),
    }
    paths = {one: save(root / name / f"{name}_{one}.nii.gz", data) for one, data in whole.items()}
    row: dict[str, object] = {
        "study": name, "patient": f"p{name}", "dataset": "d", "modality": "mri", "images": paths, "report": {},
        "labels": {}, "restricted": False,
    }  # fmt: skip
    return Study.model_validate({**row, **more})


def without(one: Study, *names: str) -> Study:
    return one.model_copy(update={"images": {name: path for name, path in one.images.items() if name not in names}})
