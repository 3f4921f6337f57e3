"""What answering cost: counted by the back end as it goes, kept beside the answers, summed over all jobs.

A job writes what it has spent so far into a file beside its work file: when it starts to ask, every few seconds, and at
its end. A job that was killed has spent what its last line says; the next one adds its own. Times are what they are:
nothing here is the same on two machines, or twice on one.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import Self

from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.outputs import replacing

WRITTEN_EVERY = 5.0
"""Seconds between two lines of a job."""


@dataclass
class Account:
    """What answering cost. A back end counts into it while it answers.

    prompt_tokens     tokens that the prompts hold, each prompt counted whole
    prefilled_tokens  prompt tokens that really went through the model; the rest was shared with other prompts
    images_encoded    pictures that went through the vision part
    peak_bytes        most memory held on the device (on a CPU: of the process)
    dollars           what a server charges, by the prices of the model file
    """

    device: str = ""
    gpus: int = 0
    prompt_tokens: int = 0
    prefilled_tokens: int = 0
    completion_tokens: int = 0
    images_encoded: int = 0
    peak_bytes: int = 0
    dollars: float = 0.0

    def since(self, before: Account) -> Account:
        """What has been spent since `before`; the peak, which is no sum, as it is now."""
        spent = {name: getattr(self, name) - getattr(before, name) for name in SUMMED}
        return Account(device=self.device, gpus=self.gpus, peak_bytes=self.peak_bytes, **spent)


SUMMED = ("prompt_tokens", "prefilled_tokens", "completion_tokens", "images_encoded", "dollars")


@dataclass
class Cost(Account):
    """What all jobs of one response file have cost: a row of the account file, and the cost file itself.

    requests   requests that these jobs were given an answer to
    seconds    from the beginning of the asking, loading the weights included, to its end
    gpu_hours  seconds times GPUs
    jobs       how many jobs asked: more than one where some were killed, or something new came
    """

    requests: int = 0
    seconds: float = 0.0
    gpu_hours: float = 0.0
    jobs: int = 0
    where: list[str] = field(default_factory=list)
    """Host, and the SLURM job where there is one."""


class Meter:
    """One job's lines in the account file. Use as a context around the asking.

    path     <work file>.account.jsonl
    account  the back end's, which may have counted for other files before
    """

    def __init__(self, path: Path, account: Account) -> None:
        self.path, self.account = path, account

    def __enter__(self) -> Self:
        self._before = Account(**asdict(self.account))
        self._began = self._written = time.monotonic()
        self._job = f"{socket.gethostname()}:{os.getpid()}:{time.time_ns()}"
        slurm = os.environ.get("SLURM_JOB_ID")
        self._where = socket.gethostname() + (f", SLURM job {slurm}" if slurm else "")
        self.requests = 0
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._write()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._write()

    def answered(self) -> None:
        """One more answer has come."""
        self.requests += 1
        if time.monotonic() - self._written > WRITTEN_EVERY:
            self._write()

    def _write(self) -> None:
        self._written = time.monotonic()
        spent, seconds = self.account.since(self._before), self._written - self._began
        line = {
            **asdict(spent),
            "requests": self.requests,
            "seconds": round(seconds, 3),
            "gpu_hours": round(seconds * spent.gpus / 3600, 6),
            "jobs": 1,
            "where": [self._where],
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"job": self._job, "spent": line}) + "\n")


def read_costs(path: Path) -> Cost:
    """The sum over all jobs of an account file: of each job its last whole line. Nothing where there is no file."""
    last: dict[str, Cost] = {}
    try:
        lines = regular(path).read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        lines = []
    known = {each.name for each in fields(Cost)}
    for line in lines:
        try:
            entry = json.loads(line)
            last[entry["job"]] = Cost(**{name: value for name, value in entry["spent"].items() if name in known})
        except (ValueError, KeyError, TypeError):
            continue  # the torn line of a killed job: the one before it counts
    return summed(last.values())


def summed(costs: Iterable[Cost]) -> Cost:
    """All costs together; devices and places each once, the largest peak, the most GPUs at once."""
    total = Cost()
    devices: list[str] = []
    for cost in costs:
        for name in (*SUMMED, "requests", "seconds", "gpu_hours", "jobs"):
            setattr(total, name, getattr(total, name) + getattr(cost, name))
        devices += [name for name in cost.device.split(" + ") if name and name not in devices]
        total.where += [place for place in cost.where if place not in total.where]
        total.gpus, total.peak_bytes = max(total.gpus, cost.gpus), max(total.peak_bytes, cost.peak_bytes)
    total.device = " + ".join(devices)
    return total


def write_cost(cost: Cost, path: Path) -> None:
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(asdict(cost), indent=1) + "\n", encoding="utf-8")


def read_cost(path: Path) -> Cost:
    """BadInput for what is no cost file."""
    try:
        return Cost(**json.loads(regular(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise BadInput(f"{path}: not a cost file ({error}); delete it and run its answer job again") from None
