"""The real server is killed, twice, while several clients send 500 parts: what it acknowledged is there, once."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

from overread_viewer.readers.database import Database
from overread_viewer.readers.ratings import rows

RATERS, QUESTIONS = 5, 50
KILLS = (120, 330)
"""After so many acknowledged parts."""


class Server:
    def __init__(self, results: Path, file: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        options = ["--study", str(file), "--port", str(self.port)]
        self.command = [sys.executable, "-u", "-m", "overread", "serve", str(results), *options]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if "organiser (" in line:
                return
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        assert self.process.wait(10) == -signal.SIGKILL
        assert self.process.stdout is not None
        assert "read/" not in self.process.stdout.read()  # no link, after those that it began with


class Client(threading.Thread):
    """A rater's session. What gets no answer is sent again, as a browser's user would."""

    def __init__(self, port: int, rater: str, link: str, acknowledged: list[tuple[str, int, str]]) -> None:
        super().__init__(daemon=True)
        self.port, self.rater, self.link, self.acknowledged = port, rater, link, acknowledged
        self.problems: list[str] = []
        self.connection: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, form: dict[str, str] | None = None) -> int:
        end = time.monotonic() + 120
        while time.monotonic() < end:
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
                headers = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin"}
                self.connection.request(method, self.link + path, urlencode(form) if form else None, headers)
                answer = self.connection.getresponse()
                answer.read()
                return answer.status
            except (OSError, http.client.HTTPException):
                self.connection = None
                time.sleep(0.1)
        return 0

    def run(self) -> None:
        for place in range(1, QUESTIONS + 1):
            page = f"/question/{place}"
            reading = {"option": str(1 + place % 2), "confidence": str(1 + place % 5), "answerable": "yes"}
            judgement = {"agrees": "yes", "relevant": "no", "comment": f"{self.rater} {place}"}
            for method, path, form in (
                ("GET", page, None), ("POST", f"{page}/reading", reading), ("POST", f"{page}/judgement", judgement)
            ):  # fmt: skip
                status = self.ask(method, path, form)
                if status != (200 if method == "GET" else 303):
                    self.problems.append(f"{path}: {status}")
                    return
                if form:
                    self.acknowledged.append((self.rater, place, path.rpartition("/")[2]))


def stored(path: Path) -> set[tuple[str, int, str]]:
    base = Database(path)
    found: set[tuple[str, int, str]] = set()
    for rater in base.raters():
        for place in range(1, QUESTIONS + 1):
            item = base.item(rater.rater, False, place)
            assert item is not None
            found |= {(rater.rater, place, "reading")} if item.reading else set()
            found |= {(rater.rater, place, "judgement")} if item.judgement else set()
    base.close()
    return found


def test_what_was_acknowledged_outlives_sigkill_and_nothing_is_stored_twice(results: Path, tmp_path: Path):
    file, base_file = tmp_path / "readers.yaml", tmp_path / "study.sqlite"
    raters = {f"rater-{k}": f"Rater {k}" for k in range(RATERS)}
    content: dict[str, Any] = {
        "name": "killed", "dataset": "xray", "questions": {"sample": QUESTIONS}, "raters": raters, "view": "frontal",
        "options": "as-written", "database": str(base_file),
    }  # fmt: skip
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    server = Server(results, file)
    acknowledged: list[tuple[str, int, str]] = []
    base = Database(base_file)
    links = {one.rater: f"/read/{one.token}" for one in base.raters()}
    base.close()
    clients = [Client(server.port, rater, links[rater], acknowledged) for rater in raters]
    try:
        for client in clients:
            client.start()
        for count in KILLS:
            while len(acknowledged) < count and any(client.is_alive() for client in clients):
                time.sleep(0.005)
            assert count <= len(acknowledged) < 2 * RATERS * QUESTIONS, "the kill must come in the middle"
            server.kill()
            known = set(acknowledged)  # the clients get no answer any more
            assert known <= stored(base_file)
            server.start()
        for client in clients:
            client.join(120)
    finally:
        server.kill()
    assert [problem for client in clients for problem in client.problems] == []
    assert len(acknowledged) == len(set(acknowledged)) == 2 * RATERS * QUESTIONS == 500
    base = Database(base_file)
    found = rows(base)
    assert base._kept.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    base.close()
    assert len(found) == len({(row["rater"], row["question"]) for row in found}) == RATERS * QUESTIONS
    assert [row["comment"] for row in found] == [
        f"{rater} {place}" for rater in sorted(raters) for place in range(1, 51)
    ]
    assert all(row["confidence"] == str(1 + int(row["place"]) % 5) for row in found)
