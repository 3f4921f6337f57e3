"""Overread measures whether a medical vision-language model reads the image or only the text beside it.

results = overread.open("results/demo")
results.answers.groupby(["model", "setting"])["correct"].mean()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from overread.library.results import Results

__version__ = "0.1.0"


def open(folder: str | Path) -> Results:
    """A finished run as data frames: `results.studies`, `questions`, `trials`, `answers` and `tables["accuracy"]`.

    folder  the run's folder, results/<name>
    raises  BadInput if it is none
    """
    from overread.library.results import Results

    return Results(folder)
