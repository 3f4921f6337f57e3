"""The semi-synthetic studies that the readers learn from: drawn once, kept as 64 x 64 pictures with their truth."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import numpy.typing as npt
from demo.training.architecture import IMAGE_SIZE
from PIL import Image

Pictures = npt.NDArray[np.uint8]

DRAWN_SIZE = 128
"""X-rays are drawn at this size and reduced, as the processor reduces the rendered view."""


@dataclass(frozen=True)
class Studies:
    """Studies number 0 .. n - 1 of one seed.

    pictures   (n, 64, 64) grey levels
    truth      n times the right answer by topic: yes or no, or an option's text
    reports    n times the text by section
    """

    pictures: Pictures
    truth: Sequence[dict[str, str]]
    reports: Sequence[dict[str, str]]


def reduced(picture: Image.Image) -> Pictures:
    """As the processor resizes."""
    return np.asarray(picture.convert("L").resize((IMAGE_SIZE, IMAGE_SIZE), Image.Resampling.BILINEAR), dtype=np.uint8)


def _xray(index: int, seed: int) -> tuple[Pictures, dict[str, str], dict[str, str]]:
    from overread_phantom.xray import PLANTED, draw_study, radiograph

    planted = draw_study(seed, index)
    truth = {finding: "yes" if planted.labels.get(finding) == 1 else "no" for finding in PLANTED}
    return reduced(radiograph(planted, DRAWN_SIZE)), truth, planted.report


def _mri(index: int, seed: int) -> tuple[Pictures, dict[str, str], dict[str, str]]:
    from overread_phantom.grammar import labels, report
    from overread_phantom.mri import draw_study, flair_picture

    planted = draw_study(seed, index)
    return reduced(flair_picture(planted)), labels(planted.facts), report(planted).sections


def draw(kind: str, seed: int, count: int, folder: Path, processes: int) -> Studies:
    """`count` studies of `kind` (mri, xray); taken from `folder` if they were drawn before."""
    path = folder / f"{kind}-{seed}-{count}.npz"
    if not path.is_file():
        make = partial({"mri": _mri, "xray": _xray}[kind], seed=seed)
        with get_context("spawn").Pool(processes) as pool:
            pictures, truth, reports = zip(*pool.map(make, range(count), chunksize=50), strict=True)
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(path, pictures=np.stack(pictures), told=json.dumps([truth, reports]))
    with np.load(path) as kept:
        truth, reports = json.loads(str(kept["told"]))
        return Studies(kept["pictures"], truth, reports)
