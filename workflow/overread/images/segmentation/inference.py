"""From channels to probabilities: a sliding window with Gaussian weights, and the mean over mirror images."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Literal

import numpy as np

from overread.core.errors import BadInput
from overread.images.segmentation.grid import SingleArray

if TYPE_CHECKING:
    import torch

AXES = (2, 3, 4)
"""Of a batch (1, channel, x, y, z)."""


def device_of(wanted: Literal["auto", "cpu", "cuda"]) -> torch.device:
    """BadInput if a GPU is asked for and PyTorch sees none."""
    import torch

    there = torch.cuda.is_available()
    if wanted == "cuda" and not there:
        raise BadInput("segmentation.device: cuda, but PyTorch sees no GPU here; give the job one, or say auto")
    return torch.device("cuda" if there and wanted != "cpu" else "cpu")


def precision_of(device: torch.device) -> str:
    """Networks are run in mixed half precision on a GPU, as they were trained, and in single precision on a CPU."""
    return "float16" if device.type == "cuda" else "float32"


def probabilities(
    network: torch.nn.Module,
    channels: SingleArray,
    *,
    roi: tuple[int, int, int],
    overlap: float,
    flips: bool,
    device: torch.device,
) -> SingleArray:
    """Probability (3, x, y, z) of each region in each voxel.

    channels  (4, x, y, z), normalised
    roi       window, voxels; a smaller volume is padded with 0
    overlap   share of a window that the next one covers again
    flips     mean of the probabilities over the 8 mirror images
    """
    import torch
    from monai.inferers.utils import sliding_window_inference

    network = network.to(device).eval()
    batch = torch.from_numpy(np.ascontiguousarray(channels))[None].to(device)
    mirrored = [axes for count in range(4) for axes in itertools.combinations(AXES, count)] if flips else [()]
    half = precision_of(device) == "float16"
    total: torch.Tensor | None = None
    with torch.inference_mode(), torch.autocast(device.type, dtype=torch.float16, enabled=half):
        for axes in mirrored:
            logits = sliding_window_inference(
                torch.flip(batch, axes) if axes else batch,
                roi_size=roi,
                sw_batch_size=1,
                predictor=network,
                overlap=overlap,
                mode="gaussian",
            )
            assert isinstance(logits, torch.Tensor)
            found = torch.sigmoid(logits.float())
            found = torch.flip(found, axes) if axes else found
            total = found if total is None else total.add_(found)
    assert total is not None
    return np.asarray((total[0] / len(mirrored)).cpu().numpy(), dtype=np.float32)
