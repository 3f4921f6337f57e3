"""Back end `transformers`: prompts that begin alike are computed once. Against one `generate` a trial."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks.conftest import Bench
from data.checkpoints import make_checkpoint
from data.trials import make_model, make_trial, picture_block
from overread.backends.base import load
from overread.core.records import Block, Trial

REPORT = " ".join(["The heart is large and the lungs are clear without an effusion ."] * 6)
QUESTIONS = 14


def xray_trials(folder: Path, studies: int) -> list[Trial]:
    """The papers' shape: a picture, with and without its report, fourteen yes-no questions."""
    draw = np.random.default_rng(0)
    trials = []
    for study in range(studies):
        Image.fromarray(draw.integers(0, 255, (64, 64), dtype=np.uint8)).save(folder / f"{study}.png")
        picture = picture_block(folder, str(study))
        for arm in ((), (Block(role="report", text=REPORT),)):
            for number in range(QUESTIONS):
                asked = Block(role="question", text=f"Is there an effusion in part {number} of the lungs?")
                name = hashlib.sha256(f"{study} {number} {len(arm)}".encode()).hexdigest()
                trials.append(
                    make_trial(
                        int(name[:6], 16),
                        blocks=(picture, *arm, asked, Block(role="instruction", text="answer with yes or no .")),
                        readout="choice",
                    )
                )
    return trials


@pytest.mark.parametrize("kind", ["gemma3"])
def bench_shared_beginnings(bench: Bench, tmp_path: Path, kind: str) -> None:
    checkpoint = make_checkpoint(
        kind, tmp_path / kind, hidden=bench.size(384, 192), layers=4, heads=6, image_tokens=256
    )
    trials = xray_trials(tmp_path, bench.size(8, 3))
    ours = load(make_model(checkpoint, batch=64), kind)
    alone = load(make_model(checkpoint, batch=1, share_prefix=False), kind)
    list(ours.answer(trials, tmp_path))
    limit = ours.account.prompt_tokens / ours.account.prefilled_tokens
    bench.against(
        f"{len(trials)} yes-no trials, {kind}",
        lambda: list(ours.answer(trials, tmp_path)),
        "one generate per trial",
        lambda: list(alone.answer(trials, tmp_path)),
        expected=8 if not bench.quick else 6,
        limit=limit,
    )
