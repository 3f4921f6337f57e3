"""The decision: by rule, and for readers whose class is known."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from overread.estimates.inference.decide import Decoding, Rules, Verdict, decide, holm, verdict_of
from overread.estimates.inference.decide import tested as found_in
from overread.estimates.inference.gain import gain_of
from overread.estimates.inference.swap import Swap

from .made import YES, study, swap


def verdict(one: Swap, decoding: Decoding = "greedy") -> Verdict:
    return verdict_of({"swap": one}, decoding=decoding)


def verdicts(reader: str, patients: int, studies: int = 60, **more: object) -> Counter[str]:
    return Counter(verdict(study(reader, patients, seed, **more)).verdict for seed in range(studies))  # type: ignore[arg-type]


def test_holm_adjusts_in_the_order_given_and_never_falls():
    assert holm([0.01, 0.04, 0.03, 0.9]) == pytest.approx([0.04, 0.09, 0.09, 0.9])
    assert holm([]) == []


def test_a_reader_that_follows_uses_the_image():
    found = verdict(study("follows", 60, 1))
    assert (found.verdict, found.subclass, found.comparison) == ("uses", "reads", "swap")
    assert "superior" in found.reasons and "equivalent" not in found.reasons
    assert verdicts("follows", 60) == {"uses": 60}


@pytest.mark.parametrize(
    ("reader", "decoding", "subclass"),
    [
        ("blind", "greedy", "blind"), ("sampled", "sampled", "blind"), ("rounding", "greedy", "blind"),
        ("drift", "sampled", "reacts without reading"),
    ],
)  # fmt: skip
def test_a_reader_that_does_not_read_is_said_not_to_use_it(reader: str, decoding: Decoding, subclass: str):
    found = verdict(study(reader, 150, 1), decoding)
    assert (found.verdict, found.subclass) == ("does not use", subclass)


@pytest.mark.parametrize("reader", ["blind", "sampled", "pixels", "drift", "rounding"])
def test_a_reader_that_does_not_read_is_rarely_said_to_and_rarely_left_open(reader: str):
    found = verdicts(reader, 150, 100)
    assert found["uses"] <= 6
    assert found["cannot tell"] <= 20


def test_pixels_that_the_placebo_changes_as_well_are_reacted_to():
    """A greedy reader of pixels: a picture moved by a pixel is another one to it, so no floor is left to be beyond."""
    one = study("pixels", 150, 2)
    one = replace(one, placebo=study("sampled", 150, 3).own)
    assert verdict(one).subclass == "reacts without reading"
    assert verdict(one, "unknown").subclass == "blind", "it may as well draw its answers"


def test_without_a_floor_a_reader_that_moves_is_not_called_blind():
    one = replace(study("pixels", 150, 1), placebo=None)
    assert verdict(one).subclass == "floor not measured"
    assert verdict(replace(study("pixels", 30, 1), placebo=None)).subclass == "reacts; floor not measured"
    still = replace(study("blind", 150, 1), placebo=None)
    assert verdict(still).subclass == "blind", "nothing moves, so there is nothing that a floor could explain"


def test_no_use_is_never_said_from_an_interval_that_includes_the_smallest_effect():
    for seed in range(40):
        for reader in ("sampled", "pixels"):
            one = found_in(study(reader, 60, seed), Rules())
            found = decide({"swap": one}, Rules())
            if found.verdict == "does not use":
                assert one.following is not None
                low, high = one.following.interval
                assert low is not None and high is not None and low > -0.1 and high < 0.1


def lost(one: Swap, share: float, *, where_it_flips: bool = False) -> Swap:
    draw = np.random.default_rng(5)
    rows = (one.own != one.shown)[:, 0] if where_it_flips else draw.random(len(one.own)) < share
    return replace(one, shown=np.where(rows[:, None], -1, one.shown))


def test_a_reader_that_refuses_gets_no_verdict_of_no_use():
    assert verdict(lost(study("blind", 150, 1), 0.41)).subclass == "lost"
    reads = lost(study("follows", 150, 1, reliance=0.9), 0, where_it_flips=True)
    found = verdict(reads)
    assert found.lost > 0.1
    assert (found.verdict, found.subclass) == ("cannot tell", "lost")


def test_what_few_lost_answers_may_hide_counts_against_no_use():
    """A blind reader of 150 patients has an upper limit of 2.4 points; 8 % refused may hide 4 more."""
    rules = Rules(following=0.05)
    one = study("blind", 150, 1)
    assert verdict_of({"swap": one}, rules=rules).verdict == "does not use"
    assert verdict_of({"swap": lost(one, 0.08)}, rules=rules).verdict == "cannot tell"


def with_margins(one: Swap, change: np.ndarray) -> Swap:
    base = np.zeros(one.own.shape)
    return replace(one, margin_own=base, margin_shown=base + change.reshape(base.shape))


def test_margins_that_move_where_no_answer_does_reach_the_model_below_the_answer():
    one = study("blind", 150, 1)
    draw = np.random.default_rng(1)
    moved = with_margins(one, np.where(draw.random(len(one.own)) < 0.85, draw.choice([-1.0, 1.0], len(one.own)), 0))
    found = verdict(moved)
    assert (found.verdict, found.subclass) == ("cannot tell", "image reaches it, below the answer")
    assert "margins-move" in found.reasons and "margins-follow" not in found.reasons
    assert verdict(with_margins(one, np.zeros(len(one.own)))).subclass == "blind"


def test_margins_that_follow_by_little_reach_it_too():
    one = study("blind", 150, 1)
    towards = np.where(one.truth_shown == YES, 0.1, -0.1)
    found = verdict(with_margins(one, towards * one.changed))
    assert found.subclass == "image reaches it, below the answer"
    assert "margins-follow" in found.reasons and "margins-move" not in found.reasons


def test_fewer_than_ten_patients_give_no_verdict():
    assert verdict(study("follows", 9, 1)).subclass == "too few patients"
    assert verdict(study("follows", 10, 1, reliance=0.9)).verdict == "uses"


def test_without_a_change_of_label_nothing_is_concluded():
    rows = [(patient, "y", "y", "y", "n") for patient in range(20)]
    found = verdict(swap(*rows))
    assert (found.verdict, found.subclass) == ("cannot tell", "open")
    assert "no-label-change" in found.reasons
    assert verdict_of({}).verdict == "not tested"


def test_one_comparison_suffices_for_use_and_all_are_needed_for_none():
    reads, blind = study("follows", 60, 1), study("blind", 60, 1)
    found = verdict_of({"a": blind, "b": reads}, decoding="greedy")
    assert (found.verdict, found.comparison) == ("uses", "b")
    assert found.p["b"] == pytest.approx(2 * verdict(reads).p["swap"])
    unclear = study("pixels", 30, 1)
    assert verdict_of({"a": blind, "b": unclear}, decoding="greedy").verdict == "cannot tell"
    assert verdict_of({"a": blind, "b": blind}, decoding="greedy").verdict == "does not use"


def test_a_family_of_gains_alone_speaks_of_gains():
    patients = np.repeat(np.arange(100), 4)
    truth = np.tile([0, 1, 0, 1], 100)
    draw = np.random.default_rng(1)
    own = (draw.random(400) < 0.9).astype(float)
    blind = (truth == 1).astype(float)
    topic = np.zeros(400, dtype=int)
    gain, none = (gain_of(one, blind, patients, topic, truth) for one in (own, blind))
    assert gain is not None and none is not None
    assert verdict_of({}, {"gain": gain}).subclass == "gains from the image"
    assert verdict_of({}, {"gain": none}).subclass == "no gain"


def test_a_reader_that_follows_by_less_than_the_smallest_effect_is_said_to():
    found = verdict(study("follows", 300, 1, reliance=0.05))
    assert (found.verdict, found.subclass) == ("uses", "reads less than the smallest effect")
