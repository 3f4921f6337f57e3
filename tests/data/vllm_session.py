"""What vLLM's engine does, written down for the tests. Runs in vLLM's own environment, on one engine for everything.

    python tests/data/vllm_session.py FOLDER

needs    FOLDER/qwen2.5-vl.json          a model with its checkpoint in the folder
         FOLDER/d                        the dataset's folder, with trials/s/run-1.parquet
         FOLDER/other.pickle             probes, and what transformers gives for them with other weights; the last two
                                         probes are a trial with one picture, and the same with it inverted
makes    FOLDER/qwen2.5-vl.vllm.parquet  responses
         FOLDER/session.json             what was seen, by what was tried
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from overread.backends.vllm import parity, reader
from overread.backends.vllm.backend import VllmBackend
from overread.backends.vllm.reader import Reader
from overread.backends.vllm.reference import by_transformers
from overread.backends.vllm.section import VllmModel
from overread.config import Decoding
from overread.core.errors import BadInput
from overread.core.records import Block, Trial, read_trials
from overread.responses.answering import answer_trials


def main(folder: Path) -> None:
    model = VllmModel.model_validate_json((folder / "qwen2.5-vl.json").read_text())
    file = folder / "d" / "trials" / "s" / "run-1.parquet"
    out = folder / "qwen2.5-vl.vllm.parquet"
    backend = VllmBackend(model, "tiny")
    answer_trials(file, model, "tiny", folder / "session.jsonl", out, backend=backend)
    seen: dict[str, Any] = {"account": asdict(backend.account)}

    def ask(trials: Sequence[Trial], **changes: Any) -> list[dict[str, Any]]:
        """Through another back end on the same engine."""
        other = VllmBackend(model.model_copy(update=changes), "tiny")
        assert backend._loaded is not None
        other._loaded = Reader(other.model, "tiny"), backend._loaded[1]
        return [asdict(answer) for answer in other.answer(trials, folder / "d")]

    trials = read_trials(file)
    seen["together"] = ask(trials)
    seen["alone"] = [ask([trial])[0] for trial in trials[::-1]][::-1]

    free = [trial for trial in trials if trial.readout in ("yes-no", "free-text")]
    warm = {"decoding": Decoding(temperature=1.5, top_p=0.95, max_tokens=8)}
    seen["drawn together"] = ask(free, **warm)
    seen["drawn alone"] = [ask([trial], **warm)[0] for trial in free[::-1]][::-1]
    seen["drawn in another run"] = ask([trial.model_copy(update={"run": 2}) for trial in free], **warm)
    seen["options"] = [list(trial.options) for trial in free]
    seen["held to the options"] = ask(free, structured="choice")
    seen["held to JSON"] = ask(free, structured="json", decoding=Decoding(max_tokens=60))

    shows = next(trial for trial in free if trial.images)
    lost = shows.images[0].model_copy(update={"image": "lost.png"})
    long = Block(role="report", text="the heart is large . " * 2000)
    spoilt = [
        _with_blocks(shows, (lost, *shows.blocks[1:])),
        _with_blocks(shows, (*shows.blocks, long)),
        free[-1],
    ]
    seen["spoilt"] = ask(spoilt)
    seen["sound"] = ask(free[-1:])

    read, engine = backend._loaded or (None, None)
    assert read is not None and engine is not None
    probes, other = pickle.loads((folder / "other.pickle").read_bytes())
    seen["other weights"] = _refused(lambda: parity.check(engine, read, probes, other, folder / "d"))
    own = by_transformers(model, "tiny", probes, folder / "d")
    seen["own weights"] = _refused(lambda: parity.check(engine, read, probes, own, folder / "d"))
    reader.picture_name = lambda pixels: "a picture"
    seen["pictures of one name"] = _refused(lambda: parity.check(engine, read, probes[-2:], own[-2:], folder / "d"))
    (folder / "session.json").write_text(json.dumps(seen))


def _with_blocks(trial: Trial, blocks: Sequence[Block]) -> Trial:
    return Trial.model_validate({**trial.model_dump(), "trial": "", "blocks": [block.model_dump() for block in blocks]})


def _refused(attempt: Callable[[], None]) -> str | None:
    """The message that it ends with; None if it ends well."""
    try:
        attempt()
    except BadInput as error:
        return str(error)
    return None


if __name__ == "__main__":
    main(Path(sys.argv[1]))
