"""From files to a mask on the disk, against MONAI's bare sliding window with the same network and windows."""

from __future__ import annotations

from pathlib import Path

import monai.networks.nets
import nibabel as nib
import numpy as np
import torch
from monai.inferers.utils import sliding_window_inference

from benchmarks.conftest import Bench
from data.small_brain import SHAPE, study
from overread.config import SwinUnetr
from overread.images.segmentation.study import segment

FEATURES = 12


def bench_files_to_mask(bench: Bench, tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = monai.networks.nets.SwinUNETR(in_channels=4, out_channels=3, feature_size=FEATURES).eval()
    torch.save({"state_dict": network.state_dict()}, tmp_path / "model.pt")
    section = SwinUnetr(
        method="swin-unetr", checkpoint=str(tmp_path / "model.pt"), feature_size=FEATURES, roi=(64, 64, 64),
        overlap=0.5, device="cpu",
    )  # fmt: skip
    one = study(tmp_path)
    channels = torch.from_numpy(
        np.stack([nib.load(one.images[name]).get_fdata() for name in ("FLAIR", "T1c", "T1", "T2")])
    ).float()[None]
    assert channels.shape[2:] == SHAPE

    def bare() -> None:
        with torch.inference_mode():
            sliding_window_inference(channels, (64, 64, 64), 1, network, overlap=0.5, mode="gaussian")

    def ours() -> None:
        assert segment(one, section, tmp_path / "out" / "mask.nii.gz").problem is None

    bench.against("a study from files to its mask", ours, "MONAI's sliding window alone", bare, expected=0.8, limit=1.0)
