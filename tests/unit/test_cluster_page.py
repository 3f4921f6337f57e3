"""docs/cluster.md quotes what programs say, and names keys and files: they are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "cluster.md").read_text()
SOURCES = "\n".join(file.read_text() for file in sorted((ROOT / "workflow" / "overread").rglob("*.py")))
PROFILE = yaml.safe_load((ROOT / "profiles" / "slurm" / "config.yaml").read_text())


@pytest.mark.parametrize(
    "said",
    [
        "stopped by", "the next attempt goes on", "SLURM does not answer", "SLURM does not say what became of",
        "requests to", "failed, the first with: ", "writing this work file", "waiting for its end", "can't be locked",
        "Overread's code has changed since this run began", "SLURM's warning", "out of memory",
        "not start: ", "its account or QOS uses all that it may have at once", "WARNING: ",
    ],
)  # fmt: skip
def test_what_it_quotes_is_said(said: str) -> None:
    assert said in PAGE and said in SOURCES


def test_the_files_that_it_names_are_there() -> None:
    named = set(re.findall(r"`((?:profiles|containers|config|docs)/[\w./-]+)`", PAGE)) | {
        str(Path("docs", link)) for link in re.findall(r"\]\(([\w./-]+\.md)", PAGE)
    }
    assert len(named) >= 5
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_what_it_says_of_the_profile_is_so() -> None:
    assert "--signal=TERM@120" in str(PROFILE["default-resources"]) and "--signal=TERM@120" in PAGE
    assert PROFILE["slurm-requeue"] is True and "slurm-requeue: true" in PAGE
    assert PROFILE["retries"] == 2 and "a job fails three times" in PAGE
    assert PROFILE["keep-going"] is True and "latency-wait" in PROFILE
    assert PROFILE["slurm-logdir"] == "logs/slurm" and "logs/slurm/" in PAGE
