"""Trials, pictures and models of the tests of back ends."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from overread.backends.transformers.section import TransformersModel
from overread.config import Decoding, Takes
from overread.core.records import Block, Trial


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
