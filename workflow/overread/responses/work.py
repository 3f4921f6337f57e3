"""The work file of the answers to trials."""

from __future__ import annotations

from pathlib import Path

from overread.backends.base import Answer
from overread.core.work import KeptAnswers


class WorkFile(KeptAnswers[Answer]):
    """The answers to trials."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, Answer)
