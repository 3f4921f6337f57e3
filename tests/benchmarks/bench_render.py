"""Rendering a study of 22 series, against nibabel and Pillow, one file after the other."""

from __future__ import annotations

import gzip
from pathlib import Path

import nibabel as nib
import numpy as np
from PIL import Image

from benchmarks.conftest import Bench
from data.small_mri import ALL
from overread.core.records import Study
from overread.images import render_study
from overread.views.slice.section import SliceView

MASKS = ("brain_segmentation", "brain_parenchyma_segmentation", "tumor_segmentation")


def full_size(folder: Path, shape: tuple[int, int, int]) -> Study:
    """A study of full-size noise in an ellipsoid, with a tumour: as hard to unpack as real scans."""
    draw = np.random.default_rng(0)
    grid = np.indices(shape) - np.reshape(shape, (3, 1, 1, 1)) / 2
    inside = (grid / (np.reshape(shape, (3, 1, 1, 1)) / 2.4) ** 1) ** 2
    brain = inside.sum(axis=0) <= 1
    folder.mkdir()
    paths = {}
    for name in dict.fromkeys([*ALL, *MASKS]):
        if name == "tumor_segmentation":
            values = np.zeros(shape, dtype=np.int16)
            values[tuple(slice(size // 2, size // 2 + size // 6) for size in shape)] = 2
        elif name in MASKS:
            values = brain.astype(np.int16)
        else:
            values = np.where(brain, 400 + draw.normal(0, 60, shape), 0).astype(np.int16)
        if name == "DTI_eddy_noreg":
            values = np.stack([values, values], axis=-1)
        paths[name] = str(folder / f"{name}.nii.gz")
        nib.save(nib.Nifti1Image(values, np.diag([-1.0, -1.0, 1.0, 1.0])), paths[name])
    return Study(
        study="A", patient="A", dataset="d", modality="mri", images=paths, report={}, labels={}, restricted=False
    )


def bench_views_of_a_study(bench: Bench, tmp_path: Path) -> None:
    side = bench.size(240, 120)
    study = full_size(tmp_path / "A", (side, side, side * 155 // 240))
    series = [name for name in study.images if name not in MASKS]
    view = SliceView(series=tuple(series))

    def ours() -> None:
        assert len(render_study(study, {"all": view}, tmp_path / "images" / "A")) == len(series)

    def by_hand() -> None:
        mask = np.asanyarray(nib.load(study.images["tumor_segmentation"]).dataobj)
        brain = np.asanyarray(nib.load(study.images["brain_segmentation"]).dataobj) > 0
        place = int((mask > 0).sum(axis=(0, 1)).argmax())
        for name in series:
            values = nib.load(study.images[name]).get_fdata()
            values = values[..., 0] if values.ndim == 4 else values
            seen = values[:, :, place]
            low, high = np.percentile(seen[brain[:, :, place]], (0.5, 99.5))
            grey = np.rint(np.clip((seen - low) / (high - low), 0, 1) * 255).astype(np.uint8)
            Image.fromarray(np.rot90(grey)).save(tmp_path / f"{name}.png")

    def unpack() -> None:
        for path in study.images.values():
            gzip.decompress(Path(path).read_bytes())

    row = bench.against(f"{len(series)} series of {side} x {side}", ours, "nibabel and Pillow", by_hand, expected=1.5)
    bench.against(f"{len(series)} series of {side} x {side}", ours, "unpacking alone (zlib)", unpack, expected=0.8)
    assert row.ours > 0
