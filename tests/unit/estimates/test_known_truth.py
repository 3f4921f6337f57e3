"""The instrument against readers whose behaviour is known: calibration weights, read through the true back end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from data.handmade import Asked, read, write_cell
from overread.backends.calibrated.backend import CalibratedBackend
from overread.backends.calibrated.section import CalibratedModel
from overread.config import Comparison, Effect, Setting, Statistics
from overread.core.records import Block, Trial
from overread.estimates.bootstrap import Interval, Ratio, ratio_difference, ratio_interval
from overread.estimates.tables.accuracy import accuracy_table
from overread.estimates.tables.effects import effects_table
from overread.estimates.tables.findings import findings_table
from overread.estimates.tables.flips import flips_table
from overread.estimates.tables.modality import ADDED, modality_table
from overread.estimates.tables.own_label import own_label_table
from overread.estimates.tables.significance import significance_table

IMAGE = Block(role="image", image="picture.png", pixels="0" * 64)
REPORT = Block(role="report", text="Report.")
RELIANCES = ((0.2, 0.3), (0.3, 0.6), (0.5, 0.5), (0.8, 0.7))
"""Of image and report; the four take turns."""


class Simulated(NamedTuple):
    """A study: the true flip rate without and with the report, whether each question flipped, and its patient."""

    truth: tuple[float, float]
    flipped: tuple[np.ndarray, np.ndarray]
    patients: np.ndarray

    def sides(self) -> tuple[Ratio, Ratio]:
        ones = np.ones(len(self.patients))
        return Ratio(self.flipped[0], ones, self.patients), Ratio(self.flipped[1], ones, self.patients)


def reader(**reliance: float) -> CalibratedBackend:
    model = CalibratedModel.model_validate(
        {"label": "Reader", "backend": "calibrated", "reliance": reliance, "seed": 3}
    )
    return CalibratedBackend(model, "reader")


def yes_no_trial(question: str, patient: str, own: str, pictured: str | None, *, report: bool) -> Trial:
    """A trial as the back end sees it, without the checks that one in a file goes through: 250,000 are made here."""
    blocks = ((IMAGE,) if pictured is not None else ()) + ((REPORT,) if report else ())
    return Trial.model_construct(
        trial="", dataset="data", setting="", run=1, question=question, study=f"study of {question}", patient=patient,
        image_study=None if pictured is None else "shown", label=own, report_label=own, image_label=pictured,
        blocks=blocks, options=("yes", "no"), permutation=(0, 1), answer=("yes", "no").index(own), readout="yes-no",
    )  # fmt: skip


def answers(backend: CalibratedBackend, trials: Sequence[Trial]) -> np.ndarray:
    """The option given to each trial, which must have been readable."""
    return np.array([answer.text for answer in backend.answer(trials, Path())])


def flips(
    backend: CalibratedBackend, name: str, patients: np.ndarray, labels: list[str], *, report: bool
) -> np.ndarray:
    """Whether each question's answer flips when the picture is swapped for one of the other label."""
    arms = [
        answers(
            backend,
            [
                yes_no_trial(f"{name}-{place}", f"{name}-{patient}", own, pictured[own], report=report)
                for place, (patient, own) in enumerate(zip(patients, labels, strict=True))
            ],
        )
        for pictured in ({"yes": "yes", "no": "no"}, {"yes": "no", "no": "yes"})
    ]
    return (arms[0] != arms[1]).astype(float)


def people(number: int, count: int) -> tuple[np.random.Generator, np.ndarray, list[str]]:
    """Patients with 1 to 6 questions, 2 on average: the patient and the label of each question."""
    draw = np.random.default_rng([11, number])
    patients = np.repeat(np.arange(count), np.minimum(draw.geometric(0.5, count), 6))
    return draw, patients, draw.choice(["yes", "no"], len(patients)).tolist()


def simulated(number: int) -> Simulated:
    """A study of 30 to 300 patients, who differ in how much they rely on the picture: mean i, variance i (1 - i) / 3.

    The arms without the report go through the back end. With it, by the back end's rule, a question still flips if
    the reader does not follow the report; that is drawn here, and checked against the back end in a test of its own.
    """
    image, report = RELIANCES[number % len(RELIANCES)]
    backend = reader(image=image, by_patient=2.0)
    draw, patients, labels = people(number, int(np.random.default_rng([12, number]).integers(30, 301)))
    without = flips(backend, str(number), patients, labels, report=False)
    with_report = without * (draw.random(len(patients)) >= report)
    return Simulated((image, (1 - report) * image), (without, with_report), patients)


@pytest.fixture(scope="module")
def studies() -> list[Simulated]:
    return [simulated(number) for number in range(400)]


def covers(interval: Interval, truth: float) -> bool:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low <= truth <= interval.high


def test_with_the_report_the_back_end_flips_as_simulated():
    """A question flips beside the report only if it flips without it, and then in 1 - r of the cases."""
    for number, (image, report) in enumerate(RELIANCES):
        _, patients, labels = people(number, 300)
        backend = reader(image=image, report=report, by_patient=2.0)
        without, with_report = (flips(backend, "small", patients, labels, report=shown) for shown in (False, True))
        assert (with_report <= without).all()
        kept = with_report[without == 1]
        assert kept.mean() == pytest.approx(1 - report, abs=4 * np.sqrt(report * (1 - report) / len(kept)))


def test_intervals_cover_the_true_flip_rate_in_about_95_per_cent_of_studies(studies: list[Simulated]):
    """400 studies of 30 to 300 patients of unequal size. If 95 % is right, 400 studies stray by 1.1 points."""
    for arm in (0, 1):
        hits = [covers(ratio_interval(one.sides()[arm], draws=1000), one.truth[arm]) for one in studies]
        assert 0.92 <= np.mean(hits) <= 0.98


def test_intervals_cover_the_true_effect_of_the_report_in_about_95_per_cent_of_studies(studies: list[Simulated]):
    hits = [covers(ratio_difference(*one.sides(), draws=1000), one.truth[0] - one.truth[1]) for one in studies]
    assert 0.92 <= np.mean(hits) <= 0.98


def test_intervals_that_take_trials_as_independent_cover_too_rarely(studies: list[Simulated]):
    """The same studies without their patients: what the clustering is for."""
    apart = [one._replace(patients=np.arange(len(one.patients))) for one in studies[:200]]
    hits = [covers(ratio_interval(one.sides()[0], draws=500), one.truth[0]) for one in apart]
    assert np.mean(hits) < 0.92


def answered(backend: CalibratedBackend, asked: list[Asked]) -> list[Asked]:
    """The questions with the back end's answers: the number that its text begins with, or none."""
    given = []
    for one in asked:
        trial = one.trial("data", "setting", 1)
        trial = trial.model_copy(update={"blocks": (IMAGE, *trial.blocks)})
        (answer,) = backend.answer([trial], Path())
        number = answer.text.split(".")[0]
        given.append(replace(one, given=trial.options[int(number) - 1] if number.isdigit() else None))
    return given


OPTIONS = ("in front", "behind", "left", "right")


def four_options(number: int, *, shuffled: bool, swapped: bool = False) -> list[Asked]:
    """Questions to 60 patients whose right option mostly stands first as written, with the own or another's picture."""
    draw = np.random.default_rng(21)
    asked = []
    for place in range(number):
        question, patient = f"q{place:04d}", f"p{place % 60:02d}"
        right = OPTIONS[draw.choice(4, p=[0.85, 0.1, 0.03, 0.02])]
        other = str(draw.choice([option for option in OPTIONS if option != right]))
        shown = tuple(OPTIONS[each] for each in draw.permutation(4)) if shuffled else OPTIONS
        another = (f"another study {place}", f"p{(7 * place + 1) % 60:02d}", other)
        image = another if swapped else (f"study of {question}", patient, right)
        asked.append(Asked(question, patient, right, None, options=OPTIONS, shown=shown, image=image))
    return asked


def test_a_first_option_reader_scores_what_always_first_says_and_drops_to_chance_when_shuffled(tmp_path: Path):
    first = reader(first_option=1.0)
    cells = read(
        tmp_path,
        write_cell(tmp_path, "as-written", answered(first, four_options(1200, shuffled=False))),
        write_cell(tmp_path, "reshuffled", answered(first, four_options(1200, shuffled=True))),
    )
    table = accuracy_table(cells, Statistics(draws=1000)).set_index("setting")
    assert (table["accuracy"] == table["always_first"]).all()
    assert table.loc["as-written", "accuracy"] == pytest.approx(0.85, abs=0.03)
    assert table.loc["as-written", "balanced_accuracy"] == pytest.approx(0.25)
    assert table.loc["reshuffled", "chance"] == 0.25
    assert table.loc["reshuffled", "low"] <= 0.25 <= table.loc["reshuffled", "high"]
    assert table.loc["reshuffled", "accuracy"] == pytest.approx(0.25, abs=0.04)


def swap(tmp_path: Path, backend: CalibratedBackend) -> pd.DataFrame:
    cells = read(
        tmp_path,
        write_cell(tmp_path, "own", answered(backend, four_options(600, shuffled=True))),
        write_cell(tmp_path, "swapped", answered(backend, four_options(600, shuffled=True, swapped=True))),
    )
    table = flips_table(cells, {"swap": Comparison(flips=("own", "swapped"))}, Statistics(draws=1000))
    return table.set_index("group")


def test_a_reader_that_ignores_the_image_has_a_flip_rate_of_exactly_zero(tmp_path: Path):
    table = swap(tmp_path, reader(first_option=0.3, unparsed=0.05))
    assert (table["flip_rate"] == 0).all()
    assert (table["low"] == 0).all()
    # Nothing was seen among 60 patients: up to 1 - 0.025^(1/60) of such pairs may still flip.
    assert table.loc["all", "high"] == pytest.approx(1 - 0.025 ** (1 / table.loc["all", "patients"]))
    assert (table["mean_abs_margin_change"].dropna() == 0).all()
    assert 0 < table.loc["all", "unpaired"] < 60


def test_a_reader_that_only_looks_flips_whenever_the_label_changes(tmp_path: Path):
    table = swap(tmp_path, reader(image=1.0))
    assert (table["flip_rate"] == 1).all()
    assert list(table.index) == ["all", "topic", "label-changed", "across-patients"]


def test_the_whole_table_finds_a_known_reliance(tmp_path: Path):
    table = swap(tmp_path, reader(image=0.6, unparsed=0.05))
    assert table.loc["all", "low"] <= 0.6 <= table.loc["all", "high"]
    assert table.loc["all", "high"] - table.loc["all", "low"] < 0.12


# -- the tables of the audit -------------------------------------------------------------------------------------------

FEW = Statistics(draws=1000)
AUDIT = {
    name: Setting.model_validate(one)
    for name, one in {
        "question": {}, "report": {"report": "full"}, "image": {"images": "frontal"},
        "both": {"images": "frontal", "report": "full"}, "image-swapped": {"images": "frontal", "source": "substitute"},
        "both-swapped": {"images": "frontal", "report": "full", "source": "substitute"},
    }.items()
}  # fmt: skip
SWAPS = {name: Comparison(flips=(name, f"{name}-swapped")) for name in ("image", "both")}
TAKEN = {"taken": Effect(minus=("image", "both"))}


def shown_to(backend: CalibratedBackend, setting: Setting) -> list[Asked]:
    """The answers to 900 questions of four options under a setting; the swapped picture's truth always differs."""
    asked = four_options(900, shuffled=True, swapped=setting.source == "substitute")
    given = []
    for one in asked:
        if setting.images == "none":
            one = replace(one, image=None)
        trial = one.trial("data", "setting", 1)
        blocks = (IMAGE,) * (setting.images != "none") + (REPORT,) * (setting.report == "full")
        told = {"blocks": (*blocks, *trial.blocks), "report_label": one.right}
        (answer,) = backend.answer([trial.model_copy(update=told)], Path())
        given.append(replace(one, given=trial.options[int(answer.text.split(".")[0]) - 1]))
    return given


def test_the_audit_finds_what_a_reader_of_known_reliance_does(tmp_path: Path):
    """Follows the report in 0.5, else the picture in 0.6, else one of four options by chance.

    Right: question 1/4; report 0.5 + 0.5 / 4 = 0.625; image 0.6 + 0.4 / 4 = 0.7; both 0.5 + 0.5 x 0.7 = 0.85. The swap
    flips 0.6 without the report and 0.5 x 0.6 with it. Against the picture shown, the report is no help after a swap:
    an answer that follows it is wrong, the rest is right in 0.7.
    """
    backend = reader(image=0.6, report=0.5)
    cells = read(tmp_path, *(write_cell(tmp_path, name, shown_to(backend, one)) for name, one in AUDIT.items()))
    shown = modality_table(cells, AUDIT, FEW).set_index("shown")
    truths = {"question": 1 / 4, "report": 0.625, "image": 0.7, "both": 0.85}
    truths |= {"image added to the question": 0.45, "image added to the report": 0.225}
    own = own_label_table(cells, SWAPS, FEW).set_index(["comparison", "arm"])
    flips = flips_table(cells, SWAPS, FEW)
    found = findings_table(cells, flips, SWAPS, TAKEN, FEW).set_index("group").loc["label-changed"]
    measured = {name: (row["low"], row["high"], truths[name]) for name, row in shown.iterrows()}
    for arm, truth in (("first", 0.85), ("second", 0.5 * 0.7), ("difference", 0.5)):
        measured[f"own label, {arm}"] = (*own.loc[("both", arm), ["low", "high"]], truth)
    measured["taken by the report"] = (found["low"], found["high"], 0.3)
    for name, (low, high, truth) in measured.items():
        assert low - 0.01 <= truth <= high + 0.01, name
        assert high - low < 0.2, name
    tests = significance_table(cells, SWAPS, AUDIT)
    assert (tests["floor_basis"] == "not measured").all() and tests["p"].isna().all()


def test_a_reader_that_ignores_the_image_passes_no_test_and_moves_no_margin(tmp_path: Path):
    backend = reader(report=0.7, first_option=0.3)
    cells = read(tmp_path, *(write_cell(tmp_path, name, shown_to(backend, one)) for name, one in AUDIT.items()))
    assert (significance_table(cells, SWAPS, AUDIT)["flip_rate"] == 0).all()
    added = modality_table(cells, AUDIT, FEW).set_index("shown").loc[list(ADDED)]
    taken = effects_table(cells, SWAPS, TAKEN, FEW)
    for table, column in ((added, "balanced_accuracy"), (taken, "estimate")):
        assert (table[column] == 0).all()
        assert (table["low"] < 0).all() and (table["high"] > 0).all() and (table["high"] < 0.07).all()
