"""The work file: nothing that was answered is lost, and nothing else is believed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overread.backends.base import Answer
from overread.core.errors import BadInput
from overread.responses.work import WorkFile

ONE = Answer(text="Yes", logprobs=(-0.1, -2.5), finish_reason="stop", prompt_tokens=7)
TWO = Answer(text="zwei\nLinien \u2028 2", chosen=1)


def write(path: Path, answers: dict[str, Answer]) -> None:
    with WorkFile(path) as work:
        for request, answer in answers.items():
            work.append(request, answer)


def read(path: Path) -> tuple[dict[str, Answer], int]:
    with WorkFile(path) as work:
        return dict(work.answers), work.damaged


def test_what_was_appended_is_read_back_equal(tmp_path: Path) -> None:
    write(tmp_path / "deep" / "run-1.jsonl", {"a": ONE, "b": TWO})
    assert read(tmp_path / "deep" / "run-1.jsonl") == ({"a": ONE, "b": TWO}, 0)


def test_every_answer_is_on_disk_before_the_next_is_given(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    with WorkFile(path) as work:
        work.append("a", ONE)
        assert len(path.read_bytes().splitlines()) == 1


@settings(deadline=None)  # a disk takes its time
@given(cut=st.integers(min_value=1, max_value=60))
def test_a_torn_last_line_is_dropped_and_the_file_can_be_written_on(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    """However much of the last line is missing, the answer before it stays and a new one is not glued to the rest."""
    path = tmp_path_factory.mktemp("torn") / "w.jsonl"
    write(path, {"a": ONE, "b": TWO})
    path.write_bytes(path.read_bytes()[:-cut])
    assert read(path) == ({"a": ONE}, 0)
    write(path, {"c": TWO})
    assert read(path) == ({"a": ONE, "c": TWO}, 0)


@settings(deadline=None)  # a disk takes its time
@given(data=st.data())
def test_a_line_with_any_byte_changed_is_not_believed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("flip") / "w.jsonl"
    write(path, {"a": ONE, "b": TWO, "c": ONE})
    lines = path.read_bytes().splitlines()
    place = data.draw(st.integers(0, len(lines[1]) - 1))
    byte = data.draw(st.integers(32, 126).filter(lambda value: value != lines[1][place]))
    lines[1] = lines[1][:place] + bytes([byte]) + lines[1][place + 1 :]
    path.write_bytes(b"\n".join(lines) + b"\n")
    answers, damaged = read(path)
    assert {key: answers.get(key) for key in "ac"} == {"a": ONE, "c": ONE}
    # JSON may write one value in two ways; a line that still says the same is the same.
    assert (set(answers), damaged) == ({"a", "c"}, 1) or (answers.get("b"), damaged) == (TWO, 0)


def test_a_line_without_its_hash_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    write(path, {"a": ONE})
    forged = json.loads(path.read_text())
    forged["answer"]["text"] = "No"
    path.write_text(json.dumps(forged) + "\n" + '{"request": "b", "answer": {"text": "No"}}\n[]\n\n')
    answers, damaged = read(path)
    assert answers == {}
    assert damaged == 4


def test_the_first_answer_to_a_request_stays(tmp_path: Path) -> None:
    write(tmp_path / "w.jsonl", {"a": ONE})
    write(tmp_path / "w.jsonl", {"a": TWO})
    assert read(tmp_path / "w.jsonl")[0] == {"a": ONE}


def test_a_full_disk_is_a_clear_error_and_what_was_kept_stays(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk's: the third answer does not fit."""
    path = tmp_path / "w.jsonl"
    write(path, {"a": ONE})
    code = (
        "import resource, sys; from pathlib import Path; from overread.core.errors import BadInput\n"
        "from overread.backends.base import Answer; from overread.responses.work import WorkFile\n"
        "try:\n"
        "    with WorkFile(Path(sys.argv[1])) as work:\n"
        "        work.append('b', Answer(text='No'))\n"
        "        resource.setrlimit(resource.RLIMIT_FSIZE, (Path(sys.argv[1]).stat().st_size + 20, -1))\n"
        "        work.append('c', Answer(text='No'))\n"
        "except BadInput as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{path}: can't be written (File too large): make room"), done.stderr
    assert read(path) == ({"a": ONE, "b": Answer(text="No")}, 0)


def test_a_folder_in_its_place_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="can't be opened as a work file"), WorkFile(tmp_path):
        pass
