"""One job of a model behind a server: trials with pictures in a folder, put to the server as the command puts them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image

from data.endpoint_calls import QUICK
from overread.backends.openai.backend import OpenaiBackend
from overread.backends.openai.section import OpenaiModel
from overread.backends.transport.client import Patience
from overread.config import Decoding, Takes
from overread.core.records import Block, Response, Trial, read_responses, write_trials
from overread.responses.answering import Counts, answer_trials

LOBES = ("left lobe", "right lobe", "both lobes", "no lobe")


def openai_model(endpoint: str, **changes: Any) -> OpenaiModel:
    """A model without log-probabilities, unless `takes` says otherwise."""
    fields: dict[str, Any] = {
        "label": "M",
        "backend": "openai",
        "model": "m-1",
        "endpoint": endpoint,
        "takes": Takes(images=8, logprobs=False),
        "decoding": Decoding(temperature=0, max_tokens=64),
        "batch": 4,
    }
    return OpenaiModel(**{**fields, **changes})


def with_logprobs(**changes: Any) -> dict[str, Any]:
    return {"takes": Takes(images=8, logprobs=True), **changes}


def choice(number: int, permutation: Sequence[int] = (0, 1, 2, 3), *blocks: Block, **changes: Any) -> Trial:
    """A question of four options, shown in the order of `permutation`; the first as written is right."""
    options = tuple(LOBES[place] for place in permutation)
    listed = "\n".join(f"{place}) {option}" for place, option in enumerate(options, 1))
    text = [
        Block(role="question", text=f"Question: Which lobe of brain {number}?"),
        Block(role="options", text=f"Options:\n{listed}"),
        Block(role="instruction", text="Reply with the number of the correct option, from 1 to 4, and nothing else."),
    ]
    fields: dict[str, Any] = {
        "dataset": "d", "setting": "s", "run": 1, "question": f"q{number:04}", "topic": "lobe",
        "study": f"s{number:04}", "patient": f"p{number}", "image_study": None, "image_patient": None,
        "label": "left lobe", "image_label": None, "blocks": (*blocks, *text), "options": options,
        "permutation": tuple(permutation), "answer": list(permutation).index(0), "readout": "choice",
        "restricted": False,
    }  # fmt: skip
    return Trial(**{**fields, **changes})


def yes_no(number: int, *blocks: Block, **changes: Any) -> Trial:
    text = [
        Block(role="question", text=f"Question: Is there an effusion in chest {number}?"),
        Block(role="instruction", text="Reply with one word, Yes or No."),
    ]
    fields = {"options": ("yes", "no"), "permutation": (0, 1), "answer": 0, "readout": "yes-no", "label": "yes"}
    return choice(number, **{**fields, "blocks": (*blocks, *text), **changes})


def picture(folder: Path, name: str, shade: int = 0) -> Block:
    """A picture of the data set `d`, with a comment in its file that another encoder would not write."""
    from PIL.PngImagePlugin import PngInfo

    path = folder / "d" / "images" / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.new("L", (9, 7))
    image.putdata([(place * 7 + shade) % 256 for place in range(63)])
    comment = PngInfo()
    comment.add_text("Comment", f"made for {name}")
    image.save(path, pnginfo=comment, compress_level=1)
    pixels = hashlib.sha256(f"L:{image.width}x{image.height}:".encode() + image.tobytes()).hexdigest()
    return Block(role="image", image=f"images/{name}.png", pixels=pixels)


class Place:
    """Paths of one job, and what becomes of it."""

    def __init__(self, folder: Path, trials: Sequence[Trial], name: str = "run-1") -> None:
        self.folder = folder
        self.trials = folder / "d" / "trials" / "s" / f"{name}.parquet"
        self.work, self.out = folder / "work" / f"{name}.jsonl", folder / "d" / "responses" / f"{name}.parquet"
        self.ledger = folder / "work" / "spent.jsonl"
        self.batches = self.work.with_suffix(".batches.jsonl")
        write_trials(trials, self.trials)

    def ask(self, model: OpenaiModel, patience: Patience | None = None, attested: Sequence[str] = ()) -> Counts:
        back_end = OpenaiBackend(model, "m")
        back_end.patience = replace(patience or QUICK, in_flight=model.batch)
        back_end.poll = 0.01
        return answer_trials(
            self.trials, model, "m", self.work, self.out, attested=attested, ledger=self.ledger, backend=back_end
        )

    @property
    def responses(self) -> list[Response]:
        return read_responses(self.out)

    @property
    def kept(self) -> list[dict[str, Any]]:
        """The answers in the work file."""
        if not self.work.exists():
            return []
        return [json.loads(line)["answer"] for line in self.work.read_bytes().splitlines()]

    def command(self, model: OpenaiModel, *more: str) -> list[str]:
        """Arguments of `overread` that ask the same."""
        return [
            "responses", "answer", str(self.trials), "--model", model.model_dump_json(), "--id", "m",
            "--work", str(self.work), "--out", str(self.out), "--ledger", str(self.ledger), *more,
        ]  # fmt: skip
