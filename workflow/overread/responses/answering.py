"""Putting a trials file to a model: what is answered is kept, what is missing is asked, and nothing is ever made up.

Answers go one by one into the work file. The response file is written only when every trial has an answer, in the
order of the trials. Text is parsed after it has been kept: a better
parser reads old answers anew, without asking again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from overread.backends.base import Answer, Backend, Job, guard_restricted, load
from overread.config import Model
from overread.core.account import Meter, read_costs, write_cost
from overread.core.errors import NotAnswered
from overread.core.progress import progress, say
from overread.core.records import Response, Status, Trial, read_trials, request_key, write_responses
from overread.core.stopping import quiet_when_warned, stopped, warned
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
    ledger: Path | None = None,
    backend: Backend | None = None,
) -> Counts:
    """Write the responses of a trials file, asking only what the work file does not hold; beside it what that cost.

    trials_path   <dataset>/trials/<setting>/run-<k>.parquet; pictures are looked for in <dataset>
    attested      endpoints that may receive restricted data
    ledger        where the jobs of one model, which share its budget, write down what they spend; none: this job has
                  its own, beside the work file
    backend       instead of the one that the model names
    returns       how many requests were sent, and how many answers were there already
    raises        NotAnswered if requests failed: what was answered is kept, and no response file is written;
                  Stopped after a warning (`stopping`), if an answer is missing
    """
    trials = read_trials(trials_path)
    backend = load(model, model_id) if backend is None else backend
    guard_restricted(trials, backend, attested)
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
            asked, left = list(missing), set(range(len(missing)))
            spent = ledger or work_path.with_suffix(".spent.jsonl")
            job = Job(work_path, spent, tuple(work.answers.values()), tuple(attested))
            answers = backend.as_they_come(list(missing.values()), trials_path.parent.parent.parent, job)
            with (
                Meter(account_path(work_path), backend.account) as meter,
                progress(f"{model_id}, {trials[0].setting}, run {trials[0].run}", len(missing)) as advance,
                quiet_when_warned(),
            ):
                for place, answer in answers:
                    left.remove(place)
                    if answer.error is None or answer.final:
                        work.append(asked[place], answer)
                        meter.answered()
                    else:
                        errors.append(answer.error)
                    advance()
            if left and not warned():
                raise RuntimeError(f"{model_id}: {len(left)} of {len(asked)} trials came back without an answer")
            counts = counts._replace(asked=counts.asked - len(left))
        print(f"asked {counts.asked}, kept {counts.kept}", flush=True)
        unanswered = sum(key not in work.answers for key in asked_for)
        if warned() and unanswered:
            raise stopped(str(trials_path), len(asked_for) - unanswered, len(asked_for))
        if errors:
            raise NotAnswered(
                f"{trials_path}: {len(errors)} of {len(asked_for)} requests to {model_id} failed, "
                f"the first with: {errors[0]}. "
                f"The other answers are kept; the same command again sends only these {len(errors)}"
            )
        responses = [response(key, trial, model_id, work.answers[key]) for key, trial in zip(keys, trials, strict=True)]
    write_cost(read_costs(account_path(work_path)), cost_path(out_path))
    write_responses(responses, out_path)
    failed = [each.error for each in responses if each.status == "failed"]
    if failed:
        say(f"{out_path}: {len(failed)} of {len(responses)} trials can't be put to {model_id}, the first: {failed[0]}")
    return counts


def answer_all(
    folder: Path,
    model: Model,
    model_id: str,
    runs: Mapping[str, int],
    work: Path,
    *,
    attested: Sequence[str] = (),
    ledger: Path | None = None,
    backend: Backend | None = None,
) -> list[Counts]:
    """Write the responses of several settings and runs with a model that is loaded once.

    folder   the dataset's folder; trials and responses lie in it where they always do
    runs     how many runs each setting has
    work     folder of the work files of this model and dataset, `<setting>/run-<k>.jsonl`
    raises   NotAnswered at the end, if requests failed: every file that could be written is written; Stopped at once
    """
    backend = load(model, model_id) if backend is None else backend
    counts, lacking = [], []
    for setting, run in [(name, run) for name in sorted(runs) for run in range(1, runs[name] + 1)]:
        try:
            counts.append(
                answer_trials(
                    folder / "trials" / setting / f"run-{run}.parquet",
                    model,
                    model_id,
                    work / setting / f"run-{run}.jsonl",
                    folder / "responses" / model_id / setting / f"run-{run}.parquet",
                    attested=attested,
                    ledger=ledger,
                    backend=backend,
                )
            )
        except NotAnswered as error:
            say(str(error))
            lacking.append(str(error))
    if lacking:
        raise NotAnswered(f"{len(lacking)} of {sum(runs.values())} files lack answers, the first: {lacking[0]}")
    return counts


def account_path(work: Path) -> Path:
    """Where the jobs of a work file write down what they spend."""
    return work.with_suffix(".account.jsonl")


def cost_path(responses: Path) -> Path:
    """The cost file beside a response file."""
    return responses.with_suffix(".cost.json")


def response(request: str, trial: Trial, model_id: str, answer: Answer) -> Response:
    """A trial's response: the answer, judged."""
    status: Status = "answered"
    place = answer.chosen
    if answer.error is not None:
        status, place = "failed", None
    elif place is None and answer.finish_reason == "constrained":
        status = "unparsed"  # only the first position was to be read: its token is no text
    elif place is None:
        listed = trial.readout == "choice" or any(block.role == "options" for block in trial.blocks)
        status, place = parse(answer.text, trial.options, listed=listed, finish_reason=answer.finish_reason)
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
        error=answer.error,
    )
