"""A field of a setting is one new module: two that Overread has never heard of go from config to viewer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from data.configs import config_of

TESTS = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `new_aspect_study` says where the package of `new_aspects` is installed: one module and its entry point."""
    place = tmp_path_factory.mktemp("new-aspect")
    site = place / "site"
    (site / "foreign-1.0.dist-info").mkdir(parents=True)
    shutil.copy(TESTS / "data" / "new_aspects.py", site / "foreign_aspects.py")
    (site / "foreign-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign\nVersion: 1.0\n")
    (site / "foreign-1.0.dist-info" / "entry_points.txt").write_text("[overread.settings]\nforeign = foreign_aspects\n")
    path = [str(site), str(TESTS), str(TESTS / "data"), str(TESTS.parent / "workflow")]
    done = subprocess.run(
        [sys.executable, str(TESTS / "data" / "new_aspect_study.py"), str(place)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_its_key_is_checked_swept_and_in_the_schema(told: dict[str, Any]) -> None:
    assert told["errors"] == []
    assert told["error"] == "settings.bad.shrink: must be less than 1 (it is 2)"
    assert told["schema"] == "by what share the longer edge is shortened"
    assert sorted(told["trials"]) == ["greeted", "shrunk-0.25", "shrunk-0.5"]


def test_it_changes_the_blocks_the_rendering_and_the_identity_of_a_trial(told: dict[str, Any]) -> None:
    trials = told["trials"]
    assert trials["greeted"]["blocks"] == ["frontal.png", "Hello."]
    assert trials["shrunk-0.5"]["blocks"][0] == "frontal.shrunk-0.5.png"
    assert trials["shrunk-0.5"]["rendered"] == 256
    assert len({one["trial"] for one in trials.values()}) == 3


def test_plan_tables_report_and_viewer_have_words_for_it(told: dict[str, Any]) -> None:
    assert told["trials"]["shrunk-0.5"]["words"] == ["frontal", "shrunk by 0.5", "yes-no"]
    assert "shrunk by 0.5" in told["heads"] and "frontal.shrunk-0.5" in told["inputs"]
    assert told["described"].startswith("The study's own image (frontal), shrunk by 50 %; no report; ")
    assert told["in_report"] and told["changed_in_report"]
    assert told["twin"] == [["shrink"], "the image is shrunk by 50 %"]


def test_it_never_lands_in_a_plain_cell_and_no_verdict_rests_on_it(told: dict[str, Any]) -> None:
    assert told["plain"] == "own"
    assert set(told["conditions"].values()) == {None}
    assert told["tested"]["swap-without-report"] and not told["tested"]["swap-0.5"]
    assert told["contrast"] == "other" and told["modality"] == []


def test_its_sweep_is_a_curve_of_accuracy_and_of_flips_from_the_plain_setting_on(told: dict[str, Any]) -> None:
    curves = [tuple(one) for one in told["curves"]]
    accuracy = [
        (amount, about) for curve, measure, _, amount, about in curves if (curve, measure) == ("shrunk", "accuracy")
    ]
    assert accuracy == [(0.0, "xray"), (0.25, "shrunk-0.25"), (0.5, "shrunk-0.5")]
    swaps = [about for curve, *_, about in curves if curve == "swap"]
    assert swaps == ["swap-without-report", "swap-0.25", "swap-0.5"]
    assert [about for curve, *_, about in curves if curve == "shrinking"] == ["shrinking-0.25", "shrinking-0.5"]
    assert told["drawn"]


def test_without_its_package_its_key_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="no key 'shrink'"):
        config_of(tmp_path, settings={"plain": {"images": "flair", "shrink": 0.5}})
