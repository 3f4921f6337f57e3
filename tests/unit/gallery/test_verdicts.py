"""Readers of known behaviour get the verdict that is true of them: a small gallery (`make gallery` is the whole one).

Seeds are fixed, and what is counted is held to its bound by the exact binomial. Together the readers that do not read
have enough studies that a rule which is wrong in 6 % of them is caught, and so is each rule that was wrong before.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from overread.gallery.bounds import Bound
from overread.gallery.cohorts import Design
from overread.gallery.errors import errors, recovered
from overread.gallery.readers import GALLERY, Truth
from overread.gallery.simulate import Study
from overread.gallery.verdicts import ARMS, DESIGNS, expected, tallies, try_readers

HARD = ("prior-sampled", "rounding-1", "drifts", "refuses-few", "pixels", "raw-pixels", "worse-with-image")
"""Readers that do not read, whose answers change all the same."""
READING = ("reads-30", "reads-30-sampled", "reads-50")


@pytest.fixture(scope="module")
def small() -> pd.DataFrame:
    """Every reader, in a few studies of 60 patients."""
    return try_readers({"60 patients": DESIGNS["60 patients"]}, list(GALLERY), 12, seed=1, workers=1)


@pytest.fixture(scope="module")
def hard() -> pd.DataFrame:
    """The hard ones, in several cohorts."""
    names = ("30 patients", "60, own other study", "60, four options")
    return try_readers({name: DESIGNS[name] for name in names}, HARD, 40, seed=2, workers=1)


def test_no_bound_is_broken(small: pd.DataFrame, hard: pd.DataFrame):
    broken = [(one.reader, one.design, one.seen) for tried in (small, hard) for one in tallies(tried) if one.broken]
    assert broken == []


def test_readers_that_do_not_read_are_rarely_said_to_use_the_image(hard: pd.DataFrame):
    uses = int((hard["verdict"] == "uses").sum())
    assert len(hard) == 840 and not Bound(most=0.025).broken(uses, len(hard))


def test_readers_that_read_are_said_to_use_the_image(small: pd.DataFrame):
    for name in READING:
        assert (small.loc[small["reader"] == name, "verdict"] == "uses").all(), name


@pytest.mark.parametrize(
    ("reader", "verdict", "subclass"),
    [
        ("majority", "does not use", "blind"),
        ("black-yes", "does not use", "blind"),
        ("refuses-black", "does not use", "blind"),
        ("constant-no", "does not use", "blind"),
        ("refuses-flips", "cannot tell", "lost"),
        ("refuses-most", "cannot tell", "lost"),
        ("margins-move", "cannot tell", "image reaches it, below the answer"),
        ("margins-read", "cannot tell", "image reaches it, below the answer"),
        ("correct-90", "uses", "reads"),
        ("reads-100", "uses", "reads"),
    ],
)
def test_readers_of_the_table_of_wrong_headlines_get_the_true_one(
    small: pd.DataFrame, reader: str, verdict: str, subclass: str
):
    rows = small[small["reader"] == reader]
    assert set(zip(rows["verdict"], rows["subclass"], strict=True)) == {(verdict, subclass)}


def test_with_150_patients_few_readers_that_do_not_read_stay_open():
    names = ("prior-sampled", "pixels", "raw-pixels", "worse-with-image")
    tried = try_readers({"150 patients": DESIGNS["150 patients"]}, names, 25, seed=3, workers=1)
    assert not Bound(most=0.2).broken(int((tried["verdict"] == "cannot tell").sum()), len(tried))
    assert [one for one in tallies(tried) if one.broken] == []


def test_following_is_recovered_and_tests_keep_their_size(small: pd.DataFrame, hard: pd.DataFrame):
    assert [one for one in recovered(small) if one.broken] == []
    found = errors(hard)
    assert {one.test for one in found} >= {"following", "auc", "placebo", "reruns", "no image", "black image"}
    assert [(one.test, one.reader, one.design) for one in found if "size" in one.broken] == []


def naive(study: Study, seed: int) -> str:
    """What was concluded before: a pooled flip rate of changed labels that is clear of that of unchanged ones."""
    swap = study.swap(study.answers(GALLERY["prior-sampled"], seed))
    flipped = swap.own[:, 0] != swap.shown[:, 0]
    rates, spread = [], 0.0
    for rows in (swap.changed, ~swap.changed):
        rates.append(flipped[rows].mean())
        spread += rates[-1] * (1 - rates[-1]) / rows.sum()
    return "uses" if rates[0] - rates[1] > 1.96 * spread**0.5 else "cannot tell"


def test_the_gallery_catches_the_rule_that_was_wrong_before():
    """Pooled over findings, a blind sampled reader flips more where labels differ: both go with the prevalence."""
    verdicts = [
        naive(Study(Design(patients=60).draw(np.random.default_rng([4, number])), ARMS), number) for number in range(40)
    ]
    assert Bound(most=0.025).broken(verdicts.count("uses"), len(verdicts))


def test_every_reader_has_expectations_that_could_be_broken():
    open_ones = {name for name, reader in GALLERY.items() if not expected(reader, 60)}
    assert open_ones == {"reads-5", "one-finding"}
    at_150: Mapping[str, Bound] = expected(GALLERY["pixels"], 150)
    assert at_150["cannot tell"].most == 0.2 and at_150["uses"].most == 0.025
    assert all("uses" in expected(reader, 30) for reader in GALLERY.values() if reader.truth is not Truth.READS)


def test_the_result_does_not_depend_on_the_number_of_workers():
    one, two = (
        try_readers({"30 patients": DESIGNS["30 patients"]}, ["pixels"], 12, seed=5, workers=workers)
        for workers in (1, 2)
    )
    pd.testing.assert_frame_equal(one, two)
