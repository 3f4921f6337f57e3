"""Trials: a question under a setting becomes the very request that a model is put."""

from __future__ import annotations

from pathlib import Path

REPORTS = ("none", "full", "neutral", "boilerplate", "without-finding", "with-answer", "substitute")
"""Those that there are without a template of the user's own."""

PLAIN_REPORTS = ("none", "full", "substitute")
"""Those that are no edit: they need no template of their own."""


def own_reports(folder: str | None) -> frozenset[str]:
    """The reports that the user's own templates make: `<name>` of each `report-<name>.j2` in a folder."""
    files = Path(folder).glob("report-*.j2") if folder is not None else ()
    return frozenset(file.stem.removeprefix("report-") for file in files)


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
