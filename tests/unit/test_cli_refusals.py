"""What a file system refuses is one line that names the path."""

from __future__ import annotations

import errno
import os

import pytest

import overread.cli


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_what_the_file_system_refuses_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    def refused() -> None:
        raise OSError(number, os.strerror(number), "results/x/tables")

    monkeypatch.setattr(overread.cli, "app", refused)
    with pytest.raises(SystemExit) as caught:
        overread.cli.main()
    assert caught.value.code == 1
    assert capsys.readouterr().err == f"overread: results/x/tables: {os.strerror(number)}\n"
