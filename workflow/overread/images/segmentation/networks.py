"""The networks: which series they take in which order, and how they are built. Both give TC, WT, ET (see `labels`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Method:
    """A network as its weights expect it. `build` takes its section of the config."""

    channels: tuple[str, str, str, str]
    build: Callable[[Any], torch.nn.Module]


def _swin_unetr(section: Any) -> torch.nn.Module:
    from monai.networks.nets.swin_unetr import SwinUNETR

    return SwinUNETR(in_channels=4, out_channels=3, feature_size=section.feature_size)


def _segresnet(section: Any) -> torch.nn.Module:
    """With the parameters of MONAI's bundle brats_mri_segmentation, whose weights have no other shape."""
    from monai.networks.nets.segresnet import SegResNet

    return SegResNet(
        spatial_dims=3,
        init_filters=16,
        in_channels=4,
        out_channels=3,
        dropout_prob=0.2,
        blocks_down=(1, 2, 2, 4),
        blocks_up=(1, 1, 1),
    )


METHODS: dict[str, Method] = {
    "swin-unetr": Method(("FLAIR", "T1c", "T1", "T2"), _swin_unetr),
    "segresnet": Method(("T1c", "T1", "T2", "FLAIR"), _segresnet),
}
"""By `method` of the config. T1c is what BraTS calls T1ce."""
