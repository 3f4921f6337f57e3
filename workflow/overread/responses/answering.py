"""Putting a trials file to a model: what is answered is kept, what is missing is asked, and nothing is ever made up.

Answers go one by one into the work file. The response file is written only when every trial has an answer, in the
order of the trials. Text is parsed after it has been kept: a better
parser reads old answers anew, without asking again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from overread.config import Model
from overread.endpoint.guard import clear
from overread.errors import NotAnswered
from overread.progress import progress, say
from overread.records import Response, Status, Trial, read_trials, request_key, write_responses
from overread.responses.backends import Answer, Backend, load
from overread.responses.parsing import parse
from overread.responses.work import WorkFile


class Counts(NamedTuple):
    asked: int
    kept: int


def answer_trials(
    trials_path: Path,
    model: Model,
    model_id: str,
    work_path: Path,
    out_path: Path,
    *,
    attested: Sequence[str] = (),
    backend: Backend | None = None,
) -> Counts:
    """Write the responses of a trials file, asking only what the work file does not hold.

    trials_path   <dataset>/trials/<setting>/run-<k>.parquet; pictures are looked for in <dataset>
    attested      endpoints that may receive restricted data
    backend       instead of the one that the model names
    returns       how many requests were sent, and how many answers were there already
    raises        NotAnswered if requests failed: what was answered is kept, and no response file is written
    """
    trials = read_trials(trials_path)
    backend = load(model, model_id) if backend is None else backend
    guard_restricted(trials, backend.endpoint, attested)
    identity = backend.identity()
    keys = [request_key(identity, trial, backend.also(trial)) for trial in trials]
    asked_for = dict(zip(keys, trials, strict=True))

    with WorkFile(work_path) as work:
        if work.damaged:
            say(f"{work_path}: {work.damaged} damaged lines are left out; their requests are asked again")
        missing = {key: trial for key, trial in asked_for.items() if key not in work.answers}
        counts = Counts(asked=len(missing), kept=len(asked_for) - len(missing))
        errors: list[str] = []
        if missing:
            answers = backend.answer(list(missing.values()), trials_path.parent.parent.parent)
            with progress(f"{model_id}, {trials[0].setting}, run {trials[0].run}", len(missing)) as advance:
                for key, answer in zip(missing, answers, strict=True):
                    if answer.error is None:
                        work.append(key, answer)
                    else:
                        errors.append(answer.error)
                    advance()
        print(f"asked {counts.asked}, kept {counts.kept}", flush=True)
        if errors:
            raise NotAnswered(
                f"{trials_path}: {len(errors)} of {len(asked_for)} requests to {model_id} failed, "
                f"the first with: {errors[0]}. "
                f"The other answers are kept; the same command again sends only these {len(errors)}"
            )
        responses = [response(key, trial, model_id, work.answers[key]) for key, trial in zip(keys, trials, strict=True)]
    write_responses(responses, out_path)
    return counts


def response(request: str, trial: Trial, model_id: str, answer: Answer) -> Response:
    """A trial's response: the answer, judged."""
    status: Status = "answered"
    place = answer.chosen
    if place is None:
        status, place = parse(
            answer.text, trial.options, listed=trial.readout == "choice", finish_reason=answer.finish_reason
        )
    return Response(
        request=request,
        trial=trial.trial,
        question=trial.question,
        dataset=trial.dataset,
        model=model_id,
        setting=trial.setting,
        run=trial.run,
        text=answer.text,
        status=status,
        answer=place,
        choice=None if place is None else trial.permutation[place],
        logprobs=answer.logprobs,
        finish_reason=answer.finish_reason,
        prompt_tokens=answer.prompt_tokens,
        image_tokens=answer.image_tokens,
        completion_tokens=answer.completion_tokens,
        seconds=answer.seconds,
    )


def guard_restricted(trials: Sequence[Trial], endpoint: str | None, attested: Sequence[str] = ()) -> None:
    """BadInput if restricted data would leave this machine for an endpoint that nobody vouches for."""
    restricted = sorted({trial.dataset for trial in trials if trial.restricted})
    if endpoint is not None and restricted:
        clear(endpoint, restricted=True, attested=attested, what=f"dataset {restricted[0]}")
