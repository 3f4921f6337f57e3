"""The file of reviewers' decisions: what was acknowledged is there, and damage is told."""

from __future__ import annotations

import subprocess
import sys

import pytest

from overread.core.errors import BadInput
from overread.curation.review import Decision
from overread_viewer.decided import Decided


def decision(number: int, reviewer: str = "Ada") -> Decision:
    return Decision(question=f"q{number}", reviewer=reviewer, decision="accept")


def test_a_line_that_a_crash_cut_short_is_gone_and_the_rest_is_there(tmp_path):
    kept = Decided(tmp_path / "mri.jsonl")
    kept.add(decision(1))
    kept.add(decision(2))
    whole = kept.path.read_bytes()
    for cut in range(1, len(whole.splitlines(keepends=True)[1])):
        kept.path.write_bytes(whole[:-cut])
        again = Decided(kept.path)
        assert list(again.by_reviewer()["Ada"]) == ["q1"]
        assert again.add(decision(3)).number == 2
        assert list(Decided(kept.path).by_reviewer()["Ada"]) == ["q1", "q3"]


def test_two_servers_on_one_file_see_each_other(tmp_path):
    one, two = Decided(tmp_path / "mri.jsonl"), Decided(tmp_path / "mri.jsonl")
    one.add(decision(1))
    assert two.add(decision(2, "Bo")).number == 2
    assert one.add(decision(3)).number == 3
    assert two.by_reviewer() == one.by_reviewer()
    assert {name: list(own) for name, own in one.by_reviewer().items()} == {"Ada": ["q1", "q3"], "Bo": ["q2"]}


@pytest.mark.parametrize(
    "line",
    ["{", '{"number":2,"at":"x","reviewer":"Ada"}', '{"number":7,"at":"x","reviewer":"Ada","undoes":1}',
     '{"number":2,"at":"x","reviewer":"Bo","undoes":1}'],
)  # fmt: skip
def test_a_damaged_file_is_told_with_its_line_and_not_written_on(tmp_path, line):
    kept = Decided(tmp_path / "mri.jsonl")
    kept.add(decision(1))
    with kept.path.open("a") as file:
        file.write(line + "\n")
    before = kept.path.read_bytes()
    for use in (lambda each: each.by_reviewer(), lambda each: each.add(decision(2))):
        with pytest.raises(BadInput, match=r"mri\.jsonl:2: no entry of a review"):
            use(Decided(kept.path))
    assert kept.path.read_bytes() == before


def test_what_was_acknowledged_is_there_after_a_kill(tmp_path):
    """A process that adds decisions and says so is killed in the middle; every one it spoke of is in the file."""
    program = (
        "import sys; from pathlib import Path; from overread_viewer.decided import Decided;"
        "from overread.curation.review import Decision\n"
        "kept = Decided(Path(sys.argv[1]))\n"
        "for n in range(100000):\n"
        "    kept.add(Decision(question=f'q{n}', reviewer='Ada', decision='accept')); print(n, flush=True)\n"
    )
    path = tmp_path / "mri.jsonl"
    process = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = [int(process.stdout.readline()) for _ in range(200)]
    process.kill()
    said += [int(line) for line in process.stdout.read().split()]
    process.wait()
    found = list(Decided(path).by_reviewer()["Ada"])
    assert found[: len(said)] == [f"q{number}" for number in said]
    assert len(found) - len(said) in (0, 1), "at most one was kept and not spoken of"
    assert len(set(found)) == len(found)
