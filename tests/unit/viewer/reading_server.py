"""A reader study behind a client, for the tests of its pages."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

STUDY: dict[str, Any] = {
    "name": "fellows",
    "dataset": "mri",
    "questions": {"sample": 4},
    "raters": {"ann": "Ann", "bob": "Bob"},
    "view": "flair-axial",
    "options": "as-written",
}
FIRST = {"option": "2", "confidence": "3", "answerable": "yes"}
SECOND = {"agrees": "yes", "relevant": "no", "comment": ""}


class Served:
    """A study's client, its database and its links."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.study = client.app.state.reader_study
        self.base = self.study.database
        self.links = {one.rater: f"/read/{one.token}" for one in self.base.raters()}
        self.organiser = f"/read/{self.base.organiser()}"

    def get(self, path: str, **more: Any) -> Any:
        return self.client.get(path, follow_redirects=False, **more)

    def post(self, path: str, data: Any, **more: Any) -> Any:
        return self.client.post(path, data=data, follow_redirects=False, **more)

    def read(self, rater: str, place: int, **changes: str) -> Any:
        self.get(f"{self.links[rater]}/question/{place}")
        return self.post(f"{self.links[rater]}/question/{place}/reading", FIRST | changes)

    def judge(self, rater: str, place: int, **changes: str) -> Any:
        return self.post(f"{self.links[rater]}/question/{place}/judgement", SECOND | changes)

    def ratings(self) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.get(f"{self.organiser}/ratings.csv").text)))


def server(client_of: Callable[..., Any], results: Path, folder: Path) -> Callable[..., Served]:
    """A function that serves `STUDY`, changed by its keywords, on `results` or another run, from `folder`."""

    def of(run: Path = results, **changes: Any) -> Served:
        file = folder / "readers.yaml"
        file.write_text(yaml.safe_dump(STUDY | changes), encoding="utf-8")
        return Served(client_of(run, readers=file))

    return of
