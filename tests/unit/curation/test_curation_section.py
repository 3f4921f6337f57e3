"""The parts of a config that say how generated questions are filtered, looked through and released."""

import pytest
from pydantic import ValidationError

from data.configs import MODELS, small, written
from overread.config import GeneratedQuestions, Release, load
from overread.core.errors import BadConfig
from overread.curation.rules import OWN_RULES, read_rules


def test_the_published_numbers_are_the_defaults():
    section = GeneratedQuestions(origin="generated", author="a", validator="b")
    assert (section.review.look_through, section.review.readers, section.rules) == (200, 75, None)
    assert section.release is None


def test_a_release_holds_no_report_unless_told_to():
    assert Release(title="T", name="t").with_report is False


def test_overreads_own_rules_are_the_published_distances():
    spacing = read_rules().spacing
    assert OWN_RULES.is_file()
    assert (spacing.cm, spacing.mm, spacing.large, spacing.small) == (10, 5, 5, 3)


@pytest.mark.parametrize(
    ("field", "value"), [("version", "1"), ("published", "31 January"), ("name", "A name"), ("title", "")]
)
def test_a_release_is_checked_before_anything_is_written(field, value):
    with pytest.raises(ValidationError, match=field):
        Release.model_validate({"title": "T", "name": "t", field: value})


def test_a_release_names_a_view_that_is_there(tmp_path):
    questions = {"origin": "generated", "author": "reader", "validator": "reader"}
    content = small()
    content["datasets"]["mri"] = {"source": "ucsf-pdgm", "root": ".", "questions": questions}
    questions["release"] = {"title": "T", "name": "t", "view": "flare"}
    with pytest.raises(
        BadConfig, match=r"datasets\.mri\.questions\.release\.view: no view 'flare'; there are: .*flair"
    ):
        load(written(tmp_path, content, MODELS))
    questions["release"]["view"] = "flair"
    assert load(written(tmp_path, content, MODELS)).datasets["mri"].questions.release.view == "flair"
