"""The file that says a folder is semi-synthetic. Readers look for it, so that the fact follows the studies."""

from __future__ import annotations

from pathlib import Path

from overread.core.outputs import replacing

MARKER = "SEMI-SYNTHETIC.txt"


def mark(folder: Path, sentence: str) -> None:
    """Write the marker with one sentence that says what is real and what is planted."""
    with replacing(folder / MARKER) as temporary:
        temporary.write_text(f"{sentence}\n", encoding="utf-8")


def is_semi_synthetic(folder: Path) -> bool:
    return (folder / MARKER).is_file()
