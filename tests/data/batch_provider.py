"""The other half of a provider's server: files and batches, whose requests a script answers line by line.

with OpenaiServer(script, also=(provider := BatchProvider(script))) as server: ...
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from data.openai_server import Asked, Completion, Raw, Script, Status, completion_of, error_of

Answered = tuple[int, bytes]


@dataclass
class BatchProvider:
    """Keeps files and batches in memory.

    ends     what becomes of the batch with a number, from 0: a status
    most     so many requests of a batch are answered before it ends
    ready    whether batches have ended yet
    broken   replaces a line of a result file
    before   is called with method and path first; a status that it gives is the answer
    refuses  parameters for which a line gets status 400
    """

    script: Script
    ends: Callable[[int], str] = lambda number: "completed"
    most: int = 10**9
    ready: Callable[[], bool] = lambda: True
    broken: Callable[[dict[str, Any]], bytes | None] = lambda line: None
    before: Callable[[str, str], Status | None] = lambda method, path: None
    refuses: tuple[str, ...] = ()
    root: str = "/v1"
    files: dict[str, bytes] = field(default_factory=dict)
    batches: list[dict[str, Any]] = field(default_factory=list)
    uploaded: list[list[dict[str, Any]]] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """How often each custom_id was in a batch."""

    def __call__(self, method: str, path: str, raw: bytes) -> Answered | None:
        path, _, query = path.removeprefix(self.root).partition("?")
        happening = self.before(method, path)
        if happening is not None:
            return happening.code, json.dumps(error_of(happening)).encode()
        if (method, path) == ("POST", "/files"):
            return self._upload(raw)
        if (method, path) == ("POST", "/batches"):
            return self._create(json.loads(raw))
        if (method, path) == ("GET", "/batches"):
            return self._listed(query)
        if found := re.fullmatch(r"/batches/([\w-]+)", path):
            batch = next((each for each in self.batches if each["id"] == found[1]), None)
            return None if batch is None else (200, json.dumps(self._shown(batch)).encode())
        if found := re.fullmatch(r"/files/([\w-]+)/content", path):
            return (200, self.files[found[1]]) if found[1] in self.files else None
        if (found := re.fullmatch(r"/files/([\w-]+)", path)) and method == "DELETE":
            self.deleted.append(found[1])
            self.files.pop(found[1], None)
            return 200, json.dumps({"id": found[1], "object": "file", "deleted": True}).encode()
        return None

    def _keep(self, content: bytes) -> str:
        name = f"file-{len(self.files) + len(self.deleted)}-{hashlib.sha256(content).hexdigest()[:8]}"
        self.files[name] = content
        return name

    def _upload(self, raw: bytes) -> Answered:
        boundary = raw.split(b"\r\n", 1)[0]
        part = next(each for each in raw.split(boundary) if b"filename=" in each)
        content = part.split(b"\r\n\r\n", 1)[1].removesuffix(b"\r\n")
        self.uploaded.append([json.loads(line) for line in content.splitlines()])
        name = self._keep(content)
        return 200, json.dumps(
            {"id": name, "object": "file", "bytes": len(content), "created_at": 0, "filename": "requests.jsonl",
             "purpose": "batch", "status": "processed"}
        ).encode()  # fmt: skip

    def _create(self, asked: dict[str, Any]) -> Answered:
        lines = [json.loads(line) for line in self.files[asked["input_file_id"]].splitlines()]
        self.counts.update(line["custom_id"] for line in lines)
        batch = {
            "id": f"batch_{len(self.batches)}", "object": "batch", "endpoint": asked["endpoint"], "created_at": 0,
            "completion_window": asked["completion_window"], "input_file_id": asked["input_file_id"],
            "metadata": asked.get("metadata"), "status": "validating", "lines": lines,
        }  # fmt: skip
        self.batches.append(batch)
        return 200, json.dumps(self._public(batch)).encode()

    def _listed(self, query: str) -> Answered:
        newest = [self._public(each) for each in reversed(self.batches)]
        after = re.search(r"after=([\w-]+)", query)
        start = next((n + 1 for n, each in enumerate(newest) if after and each["id"] == after[1]), 0)
        page = newest[start : start + 2]
        more = start + 2 < len(newest)
        return 200, json.dumps({"object": "list", "data": page, "has_more": more}).encode()

    def _public(self, batch: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in batch.items() if key != "lines"}

    def _shown(self, batch: dict[str, Any]) -> dict[str, Any]:
        if self.ready() and batch["status"] == "validating":
            batch["status"] = self.ends(self.batches.index(batch))
            if batch["status"] == "failed":
                batch["errors"] = {"object": "list", "data": [{"code": "token_limit_exceeded", "message": "secret"}]}
            else:
                self._answer(batch)
        return self._public(batch)

    def _answer(self, batch: dict[str, Any]) -> None:
        """Answers in another order than that of the requests, as providers give them."""
        good, bad = [], []
        lines = batch["lines"][: self.most]
        for line in reversed(lines):
            status, body = self._outcome(line)
            response = {"status_code": status, "request_id": "r", "body": body}
            entry = {"id": "x", "custom_id": line["custom_id"], "response": response, "error": None}
            written = self.broken(entry) or json.dumps(entry).encode()
            (good if status == 200 else bad).append(written)
        for line in batch["lines"][self.most :]:
            error = {"code": "batch_expired", "message": "secret"}
            bad.append(
                json.dumps({"id": "x", "custom_id": line["custom_id"], "response": None, "error": error}).encode()
            )
        batch["output_file_id"] = self._keep(b"\n".join(good) + b"\n") if good else None
        batch["error_file_id"] = self._keep(b"\n".join(bad) + b"\n") if bad else None
        batch["request_counts"] = {"total": len(batch["lines"]), "completed": len(good), "failed": len(bad)}

    def _outcome(self, line: dict[str, Any]) -> tuple[int, Any]:
        for name in self.refuses:
            if name in line["body"]:
                error = {"message": f"Unsupported parameter: '{name}'", "param": name, "code": "unsupported_parameter"}
                return 400, error_of(Status(400, error))
        asked = Asked(line["body"], {}, self.counts[line["custom_id"]])
        happening = self.script(asked)
        if isinstance(happening, Status):
            return happening.code, error_of(happening)
        if isinstance(happening, Raw):
            return 200, json.loads(happening.body)
        assert isinstance(happening, Completion), happening
        return 200, completion_of(happening, asked)
