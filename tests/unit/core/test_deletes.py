"""The list of what deletes and overwrites, in docs/develop.md, is that of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from overread.core.errors import BadInput
from overread.core.work import KeptAnswers

ROOT = Path(__file__).resolve().parents[3]
CALLS = re.compile(
    r"(?:shutil\.(rmtree|move)\(|\.(unlink|rmdir|f?truncate)\(|os\.(rename|replace|remove|rmdir|f?truncate)\("
    r"|(?<!\])\.(rename)\((?!\"|columns|'))"
)


def in_code() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "workflow").rglob("*.py")):
        for match in CALLS.finditer(path.read_text(encoding="utf-8")):
            kind = next(each for each in match.groups() if each).removeprefix("f")
            found.setdefault(path.relative_to(ROOT / "workflow").as_posix(), set()).add(kind)
    return found


def test_every_place_that_deletes_or_overwrites_is_listed_with_its_guard() -> None:
    text = (ROOT / "docs" / "develop.md").read_text(encoding="utf-8").split("## What writes and deletes")[1]
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
    assert {file: set(calls.split(", ")) for file, calls, _ in rows} == in_code()


@pytest.mark.parametrize("mode", [r'open\("w', r"write_text\(", r"write_bytes\("])
def test_whoever_writes_a_file_writes_it_whole(mode: str) -> None:
    """Into a temporary file that takes its place, or into a new folder that does."""
    apart = {
        "overread/curation/exports.py", "overread/curation/release.py", "overread/curation/card.py",
        "overread/curation/croissant.py",  # beneath `replacing_folder`
    }  # fmt: skip
    bare = [
        f"{path.relative_to(ROOT / 'workflow')}:{number}"
        for path in sorted((ROOT / "workflow").rglob("*.py"))
        if path.relative_to(ROOT / "workflow").as_posix() not in apart
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1)
        if re.search(mode, line) and not re.search(r"temporary|new\.write_text|_file\.write", line)
    ]
    assert not bare


@pytest.mark.parametrize("mine", [b"my notes", b"my notes\n", b'{"my": "json"}', b"a,b\n1,2"])
def test_a_file_of_ones_own_named_as_a_work_file_stays_as_it_is(tmp_path: Path, mine: bytes) -> None:
    path = tmp_path / "notes"
    path.write_bytes(mine)
    with pytest.raises(BadInput, match="notes: exists and is no work file"), KeptAnswers(path, dict):
        pass
    assert path.read_bytes() == mine
