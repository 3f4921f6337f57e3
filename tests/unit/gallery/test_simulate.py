"""A simulated study is the frames that the tables are made of: both paths to a verdict say the same."""

from __future__ import annotations

import numpy as np
import pytest

from overread.config import Comparison
from overread.estimates.family import swap_of
from overread.estimates.inference import decide
from overread.estimates.tables.flips import compared, groups
from overread.gallery.cohorts import Design
from overread.gallery.readers import GALLERY
from overread.gallery.simulate import DATASET, Arm, Study

ARMS = [Arm("own", "own", runs=2), Arm("swapped", "substitute"), Arm("placebo", "placebo"), Arm("none", "none")]
DESIGN = Design(patients=25, four_option=3, unequal=True)
COMPARISONS = {
    "swap": Comparison(flips=("own", "swapped")), "placebo": Comparison(flips=("own", "placebo"), kind="placebo"),
}  # fmt: skip


@pytest.mark.parametrize("name", ["prior-sampled", "refuses-flips", "pixels", "reads-30"])
def test_frames_and_arrays_give_the_same_swap_and_the_same_estimates(name: str):
    study = Study(DESIGN.draw(np.random.default_rng(1)), ARMS)
    answers = study.answers(GALLERY[name], 2)
    of_model = {key[2]: frame for key, frame in study.cells(answers, name).items()}
    by_frames, by_arrays = swap_of(of_model, COMPARISONS["swap"], COMPARISONS), study.swap(answers)
    assert by_frames is not None
    for column in ("own", "shown", "truth_own", "truth_shown", "yes", "placebo"):
        np.testing.assert_array_equal(getattr(by_frames, column), getattr(by_arrays, column), column)
    first, second = (decide.tested(each, decide.Rules()) for each in (by_frames, by_arrays))
    assert first.following is not None and second.following is not None and first.below is not None
    assert first.following.estimate == pytest.approx(second.following.estimate)
    assert first.following.interval == pytest.approx(second.following.interval)
    assert [one.p for one in first.reacting] == pytest.approx([one.p for one in second.reacting])
    np.testing.assert_allclose(by_frames.margin_own, by_arrays.margin_own)


def test_a_frame_holds_what_the_columns_say():
    study = Study(DESIGN.draw(np.random.default_rng(1)), ARMS)
    cells = study.cells(study.answers(GALLERY["refuses-some"], 2), "refuses-some")
    own, swapped, none = (cells[DATASET, "refuses-some", name] for name in ("own", "swapped", "none"))
    assert set(own["run"]) == {1, 2} and len(own) == 2 * len(swapped)
    refused = own["status"] == "refused"
    assert refused.any() and (own.loc[refused, ["answer", "choice"]] == -1).all(axis=None)
    assert not own.loc[refused, ["right", "right_for_image", "said_yes"]].any(axis=None)
    assert (own.loc[~refused, "right"] == (own["answer"] == own["gold"])[~refused]).all()
    assert (own["study"] == own["image_study"]).all() and (swapped["study"] != swapped["image_study"]).all()
    assert none["image_study"].isna().all() and not none["image_known"].any()
    changed = groups(compared({"own": own, "swapped": swapped}, COMPARISONS["swap"]))["label-changed"]
    assert (changed["image_label_a"] != changed["image_label_b"]).all() and len(changed) > 50


def test_no_column_of_the_real_frames_is_lacking():
    """What `scored` gives, by its own words."""
    import re

    import overread.estimates.scored as scored

    words = set(re.findall(r"^    (\w+(?:, \w+)*) {2,}", scored.__doc__ or "", flags=re.M))
    named = {name for group in words for name in group.split(", ")}
    study = Study(DESIGN.draw(np.random.default_rng(1)), ARMS[:2])
    frame = study.cells(study.answers(GALLERY["prior"], 2), "prior")[DATASET, "prior", "own"]
    wanted = named | set(scored.DRESS) | {"dataset", "model", "setting", "run"}
    assert named >= {"trial", "status", "gold", "margin", "image_choice"} and wanted <= set(frame.columns)
