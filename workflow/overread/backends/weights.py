"""Weights in a folder: what they are, and whether they can be loaded.

Only safetensors are loaded. The older formats are pickles, which run code when they are read.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from overread.backends.beside import INDEX, check_beside, read_object
from overread.config import ModelSection, WeightsModel, is_folder
from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.records import content_hash, replacing

M = TypeVar("M", bound=ModelSection)

_PICKLES = {".bin", ".pt", ".pth", ".ckpt"}
_DOCUMENTS = {".md", ".txt.license", ".png", ".gitattributes"}


def folder_identity(folder: Path, model_id: str) -> dict[str, str]:
    """SHA-256 by file of a folder of weights, without loading any: weights, configuration, tokenizer, templates.

    Documents are left out, since they change no answer. BadInput if the folder is missing.
    """
    if not folder.is_dir():
        raise BadInput(f"model {model_id!r}: {folder}: no such folder of weights; put them there, or correct `weights`")
    files: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and path.suffix not in _DOCUMENTS and not name.startswith("."):
            files[name] = path
    return HashCache().of(files)


def pinned(model: M, model_id: str) -> M:
    """The model with its hub repositories at the commits that they are at on this machine.

    What is loaded and what the request key names are then the same weights, also where the model file names a branch
    or nothing. A model without hub weights is returned as it is. BadInput if the hub's cache does not hold them.
    """
    if not isinstance(model, WeightsModel):
        return model
    commits = {}
    if not is_folder(model.weights):
        commits["revision"] = hub_commit(model.weights, model.revision, model_id)
    tower = getattr(model, "vision_tower", None)
    if tower is not None and not is_folder(tower):
        commits["vision_tower_revision"] = hub_commit(tower, getattr(model, "vision_tower_revision", None), model_id)
    return model.model_copy(update=commits)


def hub_folder(weights: str, revision: str | None, model_id: str) -> Path:
    """Where the hub's cache holds the files of a repository at a revision. It need not be there."""
    from huggingface_hub import constants

    place = Path(constants.HF_HUB_CACHE) / f"models--{weights.replace('/', '--')}"
    return place / "snapshots" / hub_commit(weights, revision, model_id)


def hub_commit(weights: str, revision: str | None, model_id: str) -> str:
    """The commit of a hub repository that a revision stands for on this machine: what pins an answer to its weights.

    A whole commit stands for itself. A branch or a tag, and no revision, which is the main branch, are looked up in
    the hub's cache (HF_HOME), without a network.

    raises   BadInput if the cache does not hold it
    """
    if revision is not None and re.fullmatch(r"[0-9a-f]{40}", revision):
        return revision
    from huggingface_hub import constants

    place = Path(constants.HF_HUB_CACHE) / f"models--{weights.replace('/', '--')}"
    try:
        return regular(place / "refs" / (revision or "main")).read_text(encoding="utf-8").strip()
    except OSError:
        named = f" --revision {revision}" if revision else ""
        raise BadInput(
            f"model {model_id!r}: {weights} at revision {revision or 'main'} is not in the hub's cache "
            f"{constants.HF_HUB_CACHE}: run `hf download {weights}{named}` first, or give the whole commit as revision"
        ) from None


class HashCache:
    """SHA-256 of files, each hashed once for as long as it stays what it is.

    54 GB take minutes to hash, and every response job asks. A file counts as the same while its path, size, inode and
    times of modification and of change are: the last is the kernel's, and no program can set it back. One small file a
    set of files, written whole and renamed, so that jobs which hash at the same time do no harm.
    """

    def __init__(self, folder: Path | None = None) -> None:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self.folder = folder or cache / "overread" / "hashes"

    def of(self, files: Mapping[str, Path]) -> dict[str, str]:
        """The hash of each file, by its name."""
        kept_in = self.folder / f"{content_hash(sorted(str(path.resolve()) for path in files.values()))}.json"
        try:
            kept = json.loads(regular(kept_in).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            kept = {}
        seen: dict[str, str] = {}
        hashes: dict[str, str] = {}
        for name, path in files.items():
            mark = _mark(path)
            if mark not in kept:
                with regular(path).open("rb") as file:
                    kept[mark] = hashlib.file_digest(file, "sha256").hexdigest()
                if _mark(path) != mark:
                    raise BadInput(f"{path}: changed while it was read; wait until it is there whole")
            hashes[name] = seen[mark] = kept[mark]
        try:
            if seen != kept or not kept_in.exists():
                with replacing(kept_in) as temporary:
                    temporary.write_text(json.dumps(seen), encoding="utf-8")
        except OSError:
            pass  # a home that can't be written to costs time, not correctness
        return hashes


def _mark(path: Path) -> str:
    state = path.stat()
    return f"{path.resolve()} {state.st_size} {state.st_ino} {state.st_mtime_ns} {state.st_ctime_ns}"


def check_folder(folder: Path, model_id: str) -> None:
    """BadInput if the folder's weights are missing, are pickles, or have a shard that is missing or damaged, or if a
    file beside them is damaged."""
    place = f"model {model_id!r}: {folder}"
    if not (folder / "config.json").is_file():
        raise BadInput(f"{place}: no config.json; this is no folder of a model")
    shards = sorted(folder.glob("*.safetensors"))
    if not shards:
        pickles = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLES)
        if pickles:
            raise BadInput(f"{place}: {pickles[0]} is a pickle, which can run code; convert the weights to safetensors")
        raise BadInput(f"{place}: no *.safetensors file; download the weights again")
    check_beside(folder)
    if (folder / INDEX).is_file():
        wanted = set(read_object(folder / INDEX)["weight_map"].values())
        for name in sorted(wanted - {shard.name for shard in shards}):
            raise BadInput(f"{folder / name}: this shard is missing; download the weights again")
    from safetensors import SafetensorError, safe_open

    for shard in shards:
        try:
            with safe_open(regular(shard), framework="pt"):
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
