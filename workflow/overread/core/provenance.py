"""What made a result: the code of a stage, as a hash that its rules depend on."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[2]


@cache
def source_hash(*parts: str) -> str:
    """Hash of the sources of `parts` (folders or files of the packages, without `.py`), a rule's reason to run again.

    Snakemake notices a changed shell command, but not a changed package behind it.
    raises  FileNotFoundError for a part that is not there
    """
    digest = hashlib.sha256()
    for part in sorted({*parts, "overread/core/records"}):
        folder = PACKAGES / part
        files = sorted(folder.rglob("*")) if folder.is_dir() else [folder.with_suffix(".py")]
        for file in files:
            if file.suffix in (".py", ".j2", ".css"):
                digest.update(str(file.relative_to(PACKAGES)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
