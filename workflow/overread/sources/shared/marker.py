"""The file that says a folder is semi-synthetic. Readers look for it, so that the fact follows the studies."""

from __future__ import annotations

from pathlib import Path

MARKER = "SEMI-SYNTHETIC.txt"


def mark(folder: Path, sentence: str) -> None:
    """Write the marker with one sentence that says what is real and what is planted."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKER).write_text(f"{sentence}\n", encoding="utf-8")


def is_semi_synthetic(folder: Path) -> bool:
    return (folder / MARKER).is_file()
