from __future__ import annotations

import pytest

from overread.core import progress


def test_a_log_gets_a_line_at_the_start_and_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PLAIN_LINE_SECONDS", 1000.0)
    with progress.progress("author, 3 studies", 3) as advance:
        for _ in range(3):
            advance()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "author, 3 studies: 3 requests"
    assert len(lines) == 2
    assert lines[1].startswith("author, 3 studies: 3 of 3 in ")


def test_a_log_gets_lines_in_between_when_it_takes_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PLAIN_LINE_SECONDS", 0.0)
    with progress.progress("author", 3) as advance:
        advance()
        advance()
    assert [line.split(" in ")[0] for line in capsys.readouterr().err.splitlines()[1:]] == [
        "author: 1 of 3", "author: 2 of 3",
    ]  # fmt: skip
