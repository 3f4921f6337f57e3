"""Cohorts: what a design says of them holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from overread.gallery.cohorts import FINDINGS, Cohort, Design

LARGE = Design(patients=4000)


def drawn(design: Design, seed: int = 0) -> Cohort:
    return design.draw(np.random.default_rng(seed))


def test_prevalences_are_those_of_the_design():
    cohort = drawn(LARGE)
    assert (cohort.yes_no == 0).mean(axis=0) == pytest.approx(FINDINGS, abs=0.03)
    assert (cohort.gold == 0).mean() == pytest.approx(np.mean(FINDINGS), abs=0.01)


@pytest.mark.parametrize("correlation", [0.0, 0.2, 0.4])
def test_the_truths_of_a_patient_are_as_alike_as_the_design_says(correlation: float):
    """Two studies per patient: the correlation of their truths, pooled within findings, is the design's."""
    truths = drawn(replace(LARGE, correlation=correlation)).yes_no.reshape(4000, 2, 13).astype(float)
    first, second = (truths[:, which] - truths.mean(axis=(0, 1)) for which in (0, 1))
    found = (first * second).sum() / np.sqrt((first**2).sum() * (second**2).sum())
    assert found == pytest.approx(correlation, abs=0.02)


def test_sizes_are_equal_or_not():
    equal, unequal = drawn(LARGE), drawn(replace(LARGE, unequal=True))
    assert set(np.bincount(equal.patient_of_study)) == {2}
    sizes = np.bincount(unequal.patient_of_study)
    assert sizes.mean() == pytest.approx(2, abs=0.1) and sizes.std() > 1.2 and sizes.min() == 1


def test_a_substitute_is_of_whom_the_design_says():
    another, same, shared = (
        drawn(replace(LARGE, patients=50, substitutes=which)) for which in ("another", "same-if-possible", "shared")
    )
    for cohort in (another, shared):
        assert (cohort.patient_of_study[cohort.substitute] != cohort.patient_of_study).all()
    assert (same.patient_of_study[same.substitute] == same.patient_of_study).all()
    assert (same.substitute != np.arange(100)).all()
    assert len(np.unique(shared.substitute)) <= 11 < len(np.unique(another.substitute))


def test_a_lone_study_of_a_patient_gets_another_patients_picture():
    cohort = drawn(Design(patients=30, studies=1, substitutes="same-if-possible"))
    assert (cohort.patient_of_study[cohort.substitute] != cohort.patient_of_study).all()


def test_the_truth_of_a_four_option_question_is_among_its_options():
    cohort = drawn(Design(patients=500, prevalences=(), four_option=5))
    assert (np.bincount(cohort.gold, minlength=4) / len(cohort.gold)) == pytest.approx([0.25] * 4, abs=0.03)
    shown = cohort.substitute_truth
    assert (cohort.options[np.arange(len(shown)), cohort.gold] == cohort.classes.ravel()).all()
    # Of six classes the substitute's own is the true one in a sixth, another of the options in half.
    assert (shown == -1).mean() == pytest.approx(2 / 6, abs=0.03)
