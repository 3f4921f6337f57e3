"""Rendering is done once a study: for its views, whatever asks for them."""

from __future__ import annotations

import pytest

from workflow.runner import Workflow

pytestmark = pytest.mark.workflow

IMAGES = {"render_views", "index_images", "read_studies", "make_phantom"}


def test_a_second_setting_and_a_second_model_render_nothing_again(study: Workflow):
    config = study.config
    config["settings"]["text-first"] = {"extends": "own", "order": "text-first"}
    config["settings"]["black"] = {"extends": "own", "source": "black"}
    config["evaluations"][0]["settings"] += ["text-first", "black"]
    config["evaluations"][0]["models"].append("calibrated-first-option")
    study.config = config
    planned = study.planned()
    assert planned["build_trials"] == 2 * 2  # two settings, two runs
    assert planned["ask_model"] == 2 * 2 + 5 * 2  # those, and all five settings by the second model
    assert not IMAGES & set(planned)


def test_a_view_that_no_setting_shows_renders_nothing(study: Workflow):
    config = study.config
    config["views"]["unused"] = {"series": "T1", "slice": "middle"}
    study.config = config
    assert not (IMAGES | {"build_trials", "ask_model"}) & set(study.planned())


def test_another_view_renders_the_studies_of_its_dataset_and_no_others(study: Workflow):
    config = study.config
    config["views"]["flair-axial"]["windows"] = {"FLAIR": [0, 900]}
    study.config = config
    planned = study.planned()
    assert planned["render_views"] == 4  # of the MRI; the radiographs stay
    assert planned["index_images"] == 1
    assert not {"read_studies", "make_phantom"} & set(planned)
