"""Answers questions of one's own in a process apart: `python -m overread_viewer.asking_worker`.

The viewer starts it with the interpreter that the model needs, writes one request a line (JSON) to its standard input
and reads one reply a line from its standard output. It holds the model that it was first asked for until it ends: the
viewer ends it when another model is wanted, when a request is cancelled or takes too long, and when nobody has asked
for a while; so the memory is free again, whatever library held it. When the viewer dies, however it dies, the input
ends and the worker with it, and all processes that its libraries started.

    request  {"model": section, "model_id": id, "trial": trial, "folder": dataset's folder, "attested": [endpoints],
              "ledger": file, "study_ledger": file}
    reply    {"response": response} or {"error": one line}
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from overread.config import Model, ServerModel
from overread.core.errors import BadInput, OverreadError
from overread.core.records import Trial

if TYPE_CHECKING:
    from overread.backends.base import Backend

REQUEST = "asked-in-the-viewer"
"""In the place of a request key: no answer of this process is one of the study's."""


class Answerer:
    """Puts single trials to one model, which is loaded with the first."""

    def __init__(self) -> None:
        self._loaded: tuple[str, Backend] | None = None

    def reply(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The response to a request, or why there is none, in one line."""
        try:
            return {"response": self._response(request)}
        except OverreadError as error:
            return {"error": str(error)}
        except MemoryError:
            return {"error": f"model {request['model_id']!r}: the memory of this machine does not hold it"}
        except ImportError as error:
            return {"error": f"model {request['model_id']!r}: {error}; install what its back end needs"}
        except Exception as error:
            first = (str(error).strip().splitlines() or [""])[0]
            return {"error": f"model {request['model_id']!r}: {type(error).__name__}: {first}"}

    def _response(self, request: Mapping[str, Any]) -> dict[str, Any]:
        from overread.backends.base import Job, guard_restricted
        from overread.responses.answering import response

        trial = Trial.model_validate(request["trial"])
        model: Model = TypeAdapter(Model).validate_python(request["model"])
        backend = self._backend(model, request)
        guard_restricted([trial], backend, request["attested"])
        with tempfile.TemporaryDirectory(prefix="overread-asked-") as scratch:
            job = Job(Path(scratch) / "asked.jsonl", Path(request["ledger"]), (), tuple(request["attested"]))
            answers = list(backend.as_they_come([trial], Path(request["folder"]), job))
        if len(answers) != 1:
            raise BadInput(f"model {request['model_id']!r}: its back end gave {len(answers)} answers to one trial")
        return response(REQUEST, trial, request["model_id"], answers[0][1]).model_dump(mode="json")

    def _backend(self, model: Model, request: Mapping[str, Any]) -> Backend:
        """The model's back end; a server's is made anew, for the budget that is left now."""
        from overread.backends.base import load

        if isinstance(model, ServerModel):
            return load(_within_budget(model, Path(request["study_ledger"])), request["model_id"])
        model = model.for_one_question()
        section = json.dumps(request["model"], sort_keys=True)
        if self._loaded is None or self._loaded[0] != section:
            self._loaded = section, load(model, request["model_id"])
        return self._loaded[1]


def _within_budget(model: ServerModel, study_ledger: Path) -> ServerModel:
    """The model with what the study has left of its budget. The study's ledger is read from a copy, never opened.

    raises   BadInput if nothing is left, and for a model that answers by the batch, within a day
    """
    from overread.backends.transport.spending import Purse

    if model.batch_api:
        raise BadInput("this model answers in batches that take up to a day; set batch_api to false to ask it here")
    if not study_ledger.is_file() or (model.budget_dollars is None and model.budget_tokens is None):
        return model
    with tempfile.TemporaryDirectory(prefix="overread-ledger-") as scratch:
        copy = Path(scratch) / "ledger.jsonl"
        shutil.copyfile(study_ledger, copy)
        purse = Purse.of(model, copy, "viewer")
        assert purse is not None
        left = purse.left()
        if left.tokens <= 0 or left.dollars <= 0:
            raise BadInput(purse.exhausted())
    budget: dict[str, float | int | None] = {
        "budget_dollars": None if model.budget_dollars is None else left.dollars,
        "budget_tokens": None if model.budget_tokens is None else left.tokens,
    }
    return model.model_copy(update=budget)


def main() -> None:
    """Reply until the input ends."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not come between the replies
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    answerer = Answerer()
    while True:
        reply = answerer.reply(json.loads(requests.get()))
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def _listen(requests: queue.SimpleQueue[str]) -> None:
    """Hand on requests as they come; end everything when there can be no more, also in the middle of one."""
    for line in sys.stdin:
        requests.put(line)
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main()
