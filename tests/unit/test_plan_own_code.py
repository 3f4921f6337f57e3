"""Models that run code of their own repository wait until a person has allowed it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from data.configs import OTHERS, SETTINGS, config_of
from overread import plan
from overread.plan.asked import Cell

INSIGHT: dict[str, Any] = {
    "label": "I", "backend": "contrastive", "weights": "some/insight", "dtype": "float32", "loader": {},
    "takes": {"text_only": False},
}  # fmt: skip
TRUSTED = {"revision": "0" * 40, "trust_remote_code": True}


def why(folder: Path, models: dict[str, Any], model: str, setting: str) -> list[tuple[str, str]]:
    config = config_of(folder, {**OTHERS, **models}, settings=SETTINGS)
    return [(each.when, each.why) for each in plan.obstacles(config, Cell("mri", model, setting, 1))]


@pytest.mark.parametrize(("model", "setting"), [("cube", "volume"), ("insight", "similarity")])
def test_code_that_nobody_allowed_keeps_a_model_waiting(tmp_path: Path, model: str, setting: str) -> None:
    models = {"insight": INSIGHT, "cube": {**OTHERS["cube"], "trust_remote_code": False}}
    assert why(tmp_path, models, model, setting) == [
        ("missing", "its repository's own code may not run yet: trust_remote_code is false")
    ]


@pytest.mark.parametrize(("model", "setting"), [("cube", "volume"), ("insight", "similarity")])
def test_code_that_is_allowed_and_pinned_has_nothing_in_its_way(tmp_path: Path, model: str, setting: str) -> None:
    assert why(tmp_path, {"insight": INSIGHT | TRUSTED}, model, setting) == []


def test_a_plain_clip_runs_no_code_of_its_own(tmp_path: Path) -> None:
    assert why(tmp_path, {}, "clip", "similarity") == []
