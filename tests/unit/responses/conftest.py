"""A random Gemma 3 made tiny on the spot, a folder of pictures, and trials about them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from data.checkpoints import make_checkpoint
from overread.config import Decoding, Takes, TransformersModel
from overread.records import Block, Trial


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


def picture_block(folder: Path, name: str) -> Block:
    """An image block with the hash of the pixels, computed here."""
    from PIL import Image

    with Image.open(folder / f"{name}.png") as picture:
        head = f"{picture.mode}:{picture.width}x{picture.height}:".encode()
        return Block(role="image", image=f"{name}.png", pixels=hashlib.sha256(head + picture.tobytes()).hexdigest())


def make_trial(number: int = 0, *, images: tuple[Block, ...] = (), **changes: Any) -> Trial:
    """A trial of question `q<number>`; `changes` replace its fields."""
    question = f"Is there an effusion in study {'very ' * (number % 5)}number {number}?"
    fields: dict[str, Any] = {
        "dataset": "d",
        "setting": "s",
        "run": 1,
        "question": f"q{number}",
        "topic": "Pleural Effusion",
        "study": f"s{number}",
        "patient": f"p{number // 3}",
        "image_study": f"s{number}" if images else None,
        "image_patient": None,
        "label": "yes",
        "image_label": None,
        "options": ("yes", "no"),
        "permutation": (0, 1),
        "answer": 0,
        "readout": "yes-no",
        "restricted": False,
        "blocks": (
            *images,
            Block(role="question", text=question),
            Block(role="instruction", text="answer with yes or no ."),
        ),
    }
    return Trial(**{**fields, **changes})


def make_model(folder: Path, **changes: Any) -> TransformersModel:
    fields: dict[str, Any] = {
        "label": "tiny",
        "backend": "transformers",
        "weights": str(folder),
        "dtype": "float32",
        "takes": Takes(images=4),
        "decoding": Decoding(max_tokens=4),
        "batch": 8,
    }
    return TransformersModel(**{**fields, **changes})


Shown = Callable[[str], Block]


@pytest.fixture(scope="session")
def shown(dataset: Path) -> Shown:
    """A picture of the dataset as a block."""
    return lambda name: picture_block(dataset, name)
