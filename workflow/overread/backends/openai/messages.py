"""A trial as a chat message: its blocks in their order, its pictures as the very bytes of their PNG files."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from overread.backends.base import content
from overread.backends.transport.client import Messages
from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.records import Trial

Read = Callable[[Path, str], str]
"""A picture's data URL, from its path and the hash of its pixels."""


def reader() -> Read:
    """Questions about one study follow each other: its pictures are read once."""
    return lru_cache(maxsize=32)(data_url)


def messages(trial: Trial, folder: Path, read: Read, detail: str | None = None) -> Messages:
    """One message of the user.

    folder  which the pictures' paths are relative to
    detail  how closely the server is to look at pictures
    raises  BadInput for a picture that can't be read or is not the trial's
    """
    pixels = iter([str(block.pixels) for block in trial.images])
    parts = content(trial.blocks)
    if not trial.images:
        return [{"role": "user", "content": str(parts[0])}]
    said: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, str):
            said.append({"type": "text", "text": part})
        else:
            url = {"url": read(folder / part, next(pixels)), **({"detail": detail} if detail else {})}
            said.append({"type": "image_url", "image_url": url})
    return [{"role": "user", "content": said}]


def data_url(path: Path, pixels: str) -> str:
    """The file's bytes as they are: another encoding would be another picture. BadInput for another one's pixels."""
    from PIL import Image

    from overread.images.render import pixel_hash

    try:
        png = regular(path).read_bytes()
        with Image.open(io.BytesIO(png)) as picture:
            form, found = picture.format, pixel_hash(picture)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such picture; render the images again") from None
    except (OSError, SyntaxError, ValueError) as error:
        raise BadInput(f"{path}: damaged picture ({error}); render the images again") from None
    if form != "PNG" or found != pixels:
        raise BadInput(f"{path}: another picture than the trial was built with; build the trials again")
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"
