"""Weights in a folder: what they are, and whether they can be loaded.

Only safetensors are loaded. The older formats are pickles, which run code when they are read.
"""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from overread.errors import BadInput

_PICKLES = {".bin", ".pt", ".pth", ".ckpt"}
_DOCUMENTS = {".md", ".txt.license", ".png", ".gitattributes"}


def is_folder(weights: str) -> bool:
    """A folder begins with `.`, `/` or `~`; anything else is a hub id."""
    return weights.startswith((".", "/", "~"))


def folder_identity(folder: Path, model_id: str) -> dict[str, str]:
    """SHA-256 by file of a folder of weights, without loading any: weights, configuration, tokenizer, templates.

    Documents are left out, since they change no answer. BadInput if the folder is missing.
    """
    if not folder.is_dir():
        raise BadInput(f"model {model_id!r}: {folder}: no such folder of weights; put them there, or correct `weights`")
    files: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and path.suffix not in _DOCUMENTS and not name.startswith("."):
            with path.open("rb") as file:
                files[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return files


def check_folder(folder: Path, model_id: str) -> None:
    """BadInput if the folder's weights are missing, are pickles, or have a shard that is missing or damaged."""
    place = f"model {model_id!r}: {folder}"
    if not (folder / "config.json").is_file():
        raise BadInput(f"{place}: no config.json; this is no folder of a model")
    shards = sorted(folder.glob("*.safetensors"))
    if not shards:
        pickles = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLES)
        if pickles:
            raise BadInput(f"{place}: {pickles[0]} is a pickle, which can run code; convert the weights to safetensors")
        raise BadInput(f"{place}: no *.safetensors file; download the weights again")
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            wanted = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (ValueError, KeyError, AttributeError):
            raise BadInput(f"{index}: not an index of shards; download the weights again") from None
        for name in sorted(wanted - {shard.name for shard in shards}):
            raise BadInput(f"{folder / name}: this shard is missing; download the weights again")
    from safetensors import SafetensorError, safe_open

    for shard in shards:
        try:
            with safe_open(shard, framework="pt"):
                pass
        except (SafetensorError, OSError) as error:
            raise BadInput(f"{shard}: damaged ({error}); download the weights again") from None


def versions(*packages: str) -> dict[str, Any]:
    """Installed versions, without importing the packages."""
    found: dict[str, Any] = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found
