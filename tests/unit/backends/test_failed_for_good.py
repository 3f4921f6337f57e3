"""Requests that would fail again whenever they are asked: kept and counted as failed, and not asked again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from data.trials import make_trial
from overread.backends.base import Answer, LocalBackend
from overread.backends.calibrated.section import CalibratedModel, Reliance
from overread.core.errors import NotAnswered
from overread.core.records import Trial, read_responses, write_trials
from overread.responses.answering import answer_trials

MODEL = CalibratedModel(label="c", backend="calibrated", reliance=Reliance())


class Reader(LocalBackend):
    """Says yes, but for q1, whose prompt is too long, and q2, for which the network is down as long as it is."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.down = False

    def identity(self) -> dict[str, Any]:
        return {}

    def answer(self, trials: Sequence[Trial], folder: Path) -> Iterator[Answer]:
        for trial in trials:
            self.asked.append(trial.question)
            if trial.question == "q1":
                yield Answer(text="", error="the prompt has 600 tokens; the model reads 512", final=True)
            elif trial.question == "q2" and self.down:
                yield Answer(text="", error="connection refused")
            else:
                yield Answer(text="yes", chosen=0)


def test_a_request_that_can_never_be_answered_is_kept_as_failed_and_the_table_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, work, out = tmp_path / "d" / "trials" / "s" / "run-1.parquet", tmp_path / "w", tmp_path / "out"
    write_trials([make_trial(n) for n in range(3)], path)
    reader = Reader()
    assert answer_trials(path, MODEL, "m", work, out, backend=reader) == (3, 0)
    responses = {each.question: each for each in read_responses(out)}
    assert [responses[name].status for name in ("q0", "q1", "q2")] == ["answered", "failed", "answered"]
    assert responses["q1"].error == "the prompt has 600 tokens; the model reads 512"
    assert (responses["q1"].answer, responses["q1"].choice) == (None, None)
    assert responses["q0"].error is None
    told = capsys.readouterr()
    assert "1 of 3 trials can't be put to m, the first: the prompt has 600 tokens" in told.out + told.err
    assert answer_trials(path, MODEL, "m", work, out, backend=reader) == (0, 3)
    assert reader.asked == ["q0", "q1", "q2"]


def test_what_may_yet_be_answered_still_holds_the_table_back(tmp_path: Path) -> None:
    path, work, out = tmp_path / "d" / "trials" / "s" / "run-1.parquet", tmp_path / "w", tmp_path / "out"
    write_trials([make_trial(n) for n in range(3)], path)
    reader = Reader()
    reader.down = True
    with pytest.raises(NotAnswered, match="1 of 3 requests to m failed, the first with: connection refused"):
        answer_trials(path, MODEL, "m", work, out, backend=reader)
    assert not out.exists()
    reader.down = False
    assert answer_trials(path, MODEL, "m", work, out, backend=reader) == (1, 2)
    assert reader.asked == ["q0", "q1", "q2", "q2"]
