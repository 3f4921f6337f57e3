"""Fixtures that several folders of tests share: a random Gemma 3 made tiny on the spot, a folder of pictures, a small
run with its report."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from data.checkpoints import make_checkpoint
from data.trials import Shown, picture_block

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))

if TYPE_CHECKING:
    from report_run import Run


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A small random checkpoint of a kind that `data.checkpoints` knows; made once."""

    @cache
    def made(kind: str) -> Path:
        return make_checkpoint(kind, tmp_path_factory.mktemp(kind))

    return made


@pytest.fixture(scope="session")
def gemma(checkpoint: Callable[[str], Path]) -> Path:
    return checkpoint("gemma3")


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset's folder with four small grey pictures of noise, a black one, and nothing else."""
    import numpy as np
    from PIL import Image

    folder = tmp_path_factory.mktemp("dataset")
    draw = np.random.default_rng(0)
    for name in ("0", "1", "2", "3"):
        Image.fromarray(draw.integers(0, 255, (40, 40), dtype=np.uint8)).save(folder / f"{name}.png")
    Image.fromarray(np.zeros((40, 40), dtype=np.uint8)).save(folder / "black.png")
    return folder


@pytest.fixture(scope="session")
def shown(dataset: Path) -> Shown:
    """A picture of the dataset as a block."""
    return lambda name: picture_block(dataset, name)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One dataset of more than the fewest patients for a verdict, and one of fewer. Copy it before changing it."""
    import made
    from report_run import make_run

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made, "PATIENTS", {"mri": (1, 1, 1, 2), "xray": (1, 2, 3, 1, 1, 1, 2, 1, 1, 1, 2, 1)})
        return make_run(tmp_path_factory.mktemp("report") / "small")


@pytest.fixture(scope="session")
def restricted(small: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same shape of run, with its X-rays restricted."""
    from report_run import make_run

    folder = tmp_path_factory.mktemp("restricted") / "small"
    return make_run(folder, restricted={"xray"}, figures=small.folder / "figures")
