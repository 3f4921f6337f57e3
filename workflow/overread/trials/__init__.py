"""Trials: a question under a setting becomes the very request that a model is put."""

from __future__ import annotations

from pathlib import Path


def template_files(report: str, *folders: Path) -> list[Path]:
    """The templates that trials with a report are made of, sorted: one in an earlier folder hides its namesakes.

    The edits of other reports are no part of it, nor are the templates that write and check questions.
    """
    found: dict[str, Path] = {}
    for folder in reversed(folders):
        found |= {file.name: file for file in folder.glob("*.j2")}
    others = {"generate.j2", "validate.j2"}
    return sorted(
        file
        for name, file in found.items()
        if name not in others and (not name.startswith("report-") or name == f"report-{report}.j2")
    )
