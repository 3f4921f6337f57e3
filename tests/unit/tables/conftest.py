"""Lets these tests import `made` from tests/data; and a small run with its report, made once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "data"))

if TYPE_CHECKING:
    from report_run import Run


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One dataset of more than the fewest patients for a verdict, and one of fewer. Copy it before changing it."""
    import made
    from report_run import make_run

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made, "PATIENTS", {"mri": (1, 1, 1, 2), "xray": (1, 2, 3, 1, 1, 1, 2, 1, 1, 1, 2, 1)})
        return make_run(tmp_path_factory.mktemp("report") / "small")


@pytest.fixture(scope="session")
def restricted(small: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same shape of run, with its X-rays restricted."""
    from report_run import make_run

    folder = tmp_path_factory.mktemp("restricted") / "small"
    return make_run(folder, restricted={"xray"}, figures=small.folder / "figures")
