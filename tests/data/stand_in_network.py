"""A network in miniature for tests of segmentation, whose mask can be worked out with NumPy alone.

It weighs each channel, each output and, if it is asked to, each side of the volume differently.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest
import torch

from overread.config import SegResNet, SwinUnetr
from overread.core.records import Study
from overread.images.segmentation import networks

ORDERS = {"swin-unetr": ("FLAIR", "T1c", "T1", "T2"), "segresnet": ("T1c", "T1", "T2", "FLAIR")}
"""As published with the weights."""

WEIGHTS = np.array([[1.4, -0.5, 0.3, -0.9], [-0.2, 1.1, 0.8, 0.5], [0.6, 0.4, -1.3, 1.0]])
BIASES = np.array([-0.4, -0.3, -0.7])
"""Of the outputs TC, WT, ET; below 0, so that there is no tumour where there is no signal."""

SLOPES = (0.021, -0.034, 0.045)
"""How the output may rise along the axes of a window."""

LEVEL = (0.0, 0.0, 0.0)

Section = SwinUnetr | SegResNet


class StandIn(torch.nn.Module):
    """A weighted sum of the channels in each voxel, and `slopes` times its place in the window."""

    def __init__(self, slopes: tuple[float, float, float] = LEVEL) -> None:
        super().__init__()
        self.mix = torch.nn.Conv3d(4, 3, 1)
        self.slopes = slopes
        with torch.no_grad():
            self.mix.weight.copy_(torch.from_numpy(WEIGHTS)[..., None, None, None])
            self.mix.bias.copy_(torch.from_numpy(BIASES))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.mix(batch) + torch.from_numpy(ramp(tuple(batch.shape[2:]), self.slopes)).to(batch.dtype)


def ramp(shape: tuple[int, ...], slopes: tuple[float, float, float]) -> np.ndarray:
    axes = (np.arange(n) - (n - 1) / 2 for n in shape)
    grids = np.meshgrid(*axes, indexing="ij")
    return np.asarray(sum(slope * grid for slope, grid in zip(slopes, grids, strict=True)))


def put_in(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    method: str = "swin-unetr",
    slopes: tuple[float, float, float] = LEVEL,
    **more: Any,
) -> Section:
    """Put a stand-in in a method's place, its checkpoint into `folder`; returns the section that asks for it."""
    built = dataclasses.replace(networks.METHODS[method], build=lambda _: StandIn(slopes))
    monkeypatch.setitem(networks.METHODS, method, built)
    checkpoint = folder / "model.pt"
    torch.save({"state_dict": StandIn(slopes).state_dict(), "epoch": 300}, checkpoint)
    kind: type[Section] = {"swin-unetr": SwinUnetr, "segresnet": SegResNet}[method]
    roi = {"swin-unetr": (128, 128, 128), "segresnet": (48, 40, 32)}[method]
    asked = {"method": method, "checkpoint": str(checkpoint), "device": "cpu", "roi": roi, **more}
    return kind.model_validate(asked)


# -- its mask, worked out with the files and NumPy alone -------------------------------------------------------------


def scaled(path: str) -> np.ndarray:
    """Mean 0 and deviation 1 over what is not 0."""
    values = nib.load(path).get_fdata()
    inside = values != 0
    values[inside] = (values[inside] - values[inside].mean()) / values[inside].std()
    return values


def logits(channels: np.ndarray, slopes: tuple[float, float, float] = LEVEL) -> np.ndarray:
    summed = np.einsum("kc,cxyz->kxyz", WEIGHTS, channels) + BIASES[:, None, None, None]
    return summed + ramp(channels.shape[1:], slopes)


def expected(one: Study, order: tuple[str, ...]) -> np.ndarray:
    """Enhancing tumour is 4; else the core is 1; else the whole tumour is 2."""
    core, whole, enhancing = logits(np.stack([scaled(one.images[name]) for name in order])) > 0
    return np.where(enhancing, 4, np.where(core, 1, np.where(whole, 2, 0)))


def mask_of(path: Path) -> np.ndarray:
    return np.asarray(nib.load(path).dataobj)
