"""The demo's tiny readers read what the demo says they read: on freshly drawn studies, through the real back end."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from demo.training.heldout import Figures, Sample, figures  # noqa: E402

SEED = 90_210
"""Neither the training's, nor the held-out figures', nor the demo's."""

XRAYS, MRIS = 16, 24
ABSENT, PRESENT = ("image", "image-swapped"), ("report-and-image", "report-and-image-swapped")


@pytest.fixture(scope="module")
def xray(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return Sample("xray", tmp_path_factory.mktemp("xray"), XRAYS, SEED)


@pytest.fixture(scope="module")
def mri(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return Sample("mri", tmp_path_factory.mktemp("mri"), MRIS, SEED)


@pytest.fixture(scope="module")
def reader(xray: Sample) -> Figures:
    wanted = (*ABSENT, *PRESENT, "report", "black", "nothing", "image-first-token", "image-text-first")
    return figures(ROOT / "demo" / "tiny-reader", xray, wanted)


@pytest.fixture(scope="module")
def blind(xray: Sample) -> Figures:
    return figures(ROOT / "demo" / "tiny-blind", xray, (*ABSENT, *PRESENT, "report"))


@pytest.fixture(scope="module")
def reader_of_mri(mri: Sample) -> Figures:
    return figures(ROOT / "demo" / "tiny-reader", mri, ("image-shuffled", "black-shuffled"))


@pytest.fixture(scope="module")
def blind_to_mri(mri: Sample) -> Figures:
    return figures(ROOT / "demo" / "tiny-blind", mri, ("image", "image-swapped", "image-shuffled"))


def test_tiny_reader_reads_the_image(reader: Figures) -> None:
    assert reader["image"]["balanced_accuracy"] >= 0.8
    assert reader["image-text-first"]["balanced_accuracy"] >= 0.75
    assert reader["image-first-token"]["balanced_accuracy"] >= 0.75


def test_tiny_reader_reads_the_report(reader: Figures) -> None:
    assert reader["report"]["balanced_accuracy"] >= 0.9
    assert reader["report-and-image"]["balanced_accuracy"] >= 0.9


def test_without_image_and_report_tiny_reader_knows_nothing(reader: Figures) -> None:
    assert 0.3 <= reader["black"]["balanced_accuracy"] <= 0.65
    assert 0.3 <= reader["nothing"]["balanced_accuracy"] <= 0.65


def test_a_report_makes_tiny_reader_flip_far_less(reader: Figures) -> None:
    absent = reader["image-swapped"]["flips_where_truth_differs"]
    present = reader["report-and-image-swapped"]["flips_where_truth_differs"]
    assert absent >= 0.6
    assert present <= absent / 2


def test_tiny_reader_reads_slices_in_any_order_of_options(reader_of_mri: Figures) -> None:
    image = reader_of_mri["image-shuffled"]
    assert (image["location"] + image["size"] + image["oedema"]) / 3 >= 0.5
    assert reader_of_mri["black-shuffled"]["accuracy"] <= 0.4


def test_no_picture_reaches_tiny_blind(blind: Figures, blind_to_mri: Figures) -> None:
    assert blind["image-swapped"]["flips"] == 0
    assert blind["report-and-image-swapped"]["flips"] == 0
    assert blind_to_mri["image-swapped"]["accuracy"] == blind_to_mri["image"]["accuracy"]


def test_tiny_blind_reads_the_report_and_guesses_without(blind: Figures) -> None:
    assert blind["report"]["balanced_accuracy"] >= 0.9
    assert 0.35 <= blind["image"]["balanced_accuracy"] <= 0.65


def test_tiny_blind_lives_on_the_place_of_the_right_option(blind_to_mri: Figures) -> None:
    """84.7 % of the right options stand first as written, a quarter of them when shuffled."""
    assert blind_to_mri["image"]["accuracy"] >= 0.7
    assert blind_to_mri["image-shuffled"]["accuracy"] <= 0.4


def test_every_answer_is_readable(reader: Figures, blind: Figures) -> None:
    for measured in (reader, blind):
        assert all(values["unparsed"] == 0 for values in measured.values())


def test_the_two_readers_are_small_enough_to_be_carried_along() -> None:
    files = [
        path for name in ("tiny-reader", "tiny-blind") for path in (ROOT / "demo" / name).rglob("*") if path.is_file()
    ]
    assert sum(path.stat().st_size for path in files) < 3_000_000
    assert not [path for path in files if path.suffix in {".bin", ".pt", ".pth", ".pkl"}]
