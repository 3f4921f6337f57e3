"""Grey pictures: the window, the size, the bytes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from overread.images.render import grey_picture, label_picture, pixel_hash, sized, window, write_png

RNG = np.random.default_rng(5)


def test_the_window_runs_from_no_signal_to_the_brains_brightest_but_robustly() -> None:
    values = np.concatenate([np.linspace(0, 1000, 1001), [1e9]])
    low, high = window(values)
    assert low == 0.0
    assert 990 < high < 1001
    assert window(np.linspace(500, 1500, 2001)) == (0.0, pytest.approx(1495))
    low, _ = window(np.linspace(-200, 800, 1001))
    assert low == pytest.approx(-195)


def test_of_a_quantity_without_negative_values_black_is_0() -> None:
    """-200 .. 800 in steps of 1: the 99.5th percentile is 795; what is below 0 is noise."""
    assert window(np.linspace(-200, 800, 1001), positive=True) == (0.0, pytest.approx(795))
    assert window(np.linspace(100, 1100, 1001), positive=True) == window(np.linspace(100, 1100, 1001))
    with pytest.raises(ValueError, match="no contrast in the slice"):
        window(np.linspace(-500, -100, 401), positive=True)


def test_a_window_that_is_known_already_is_taken() -> None:
    values = np.array([[100.0, 200.0, 250.0], [300.0, 400.0, np.nan]])
    pixels = np.asarray(grey_picture(values, np.zeros((2, 3), dtype=bool), seen=(200.0, 300.0)))
    assert pixels.tolist() == [[0, 0, 128], [255, 255, 0]]


def test_labels_have_their_greys_and_nothing_in_between() -> None:
    labels = np.array([[0, 0.9999999998, 2], [4, 3, np.nan]])
    greys = {1: 170, 2: 85, 4: 255}
    assert np.asarray(label_picture(labels, greys)).tolist() == [[0, 170, 85], [255, 0, 0]]
    larger = np.asarray(label_picture(labels, greys, (3.0, 1.0), 50))
    assert larger.shape == (50, 25)
    assert set(np.unique(larger)) == {0, 85, 170, 255}


def test_only_the_brain_sets_the_window() -> None:
    values = np.linspace(0, 100, 10_000).reshape(100, 100)
    inside = np.ones((100, 100), dtype=bool)
    inside[:10] = False
    changed = values.copy()
    changed[:10] = 1e6
    ours, theirs = (np.asarray(grey_picture(one, inside)) for one in (values, changed))
    assert np.array_equal(ours[10:], theirs[10:])
    assert (theirs[:10] == 255).all()


def test_grey_levels_keep_the_order_of_the_values() -> None:
    values = RNG.normal(100, 20, (50, 60))
    pixels = np.asarray(grey_picture(values, np.ones((50, 60), dtype=bool))).ravel().astype(int)
    assert pixels.min() >= 0
    assert pixels.max() == 255
    assert (np.diff(pixels[np.argsort(values.ravel())]) >= 0).all()


def test_what_was_not_scanned_is_black() -> None:
    values = np.full((20, 20), 50.0)
    values[:, 10:] = np.nan
    values[0, :10] = 20
    picture = np.asarray(grey_picture(values, np.isfinite(values)))
    assert (picture[:, 10:] == 0).all()
    assert (picture[1:, :10] == 255).all()


def test_nothing_to_see_is_an_error() -> None:
    with pytest.raises(ValueError, match="no brain in the slice"):
        grey_picture(np.ones((4, 4)), np.zeros((4, 4), dtype=bool))
    with pytest.raises(ValueError, match="no contrast in the slice"):
        grey_picture(np.full((4, 4), 7.0), np.ones((4, 4), dtype=bool))


def test_size_is_the_longer_edge_and_pixels_are_square() -> None:
    picture = Image.new("L", (60, 40))
    assert sized(picture) is picture
    assert sized(picture, size=90).size == (90, 60)
    assert sized(picture, spacing_mm=(3.0, 1.0)).size == (60, 120)
    assert sized(picture, spacing_mm=(3.0, 1.0), size=60).size == (30, 60)


def test_the_hash_is_of_mode_size_and_pixels() -> None:
    pixels = RNG.integers(0, 256, (3, 5), dtype=np.uint8)
    assert pixel_hash(Image.fromarray(pixels)) == hashlib.sha256(b"L:5x3:" + pixels.tobytes()).hexdigest()
    hashes = {pixel_hash(Image.fromarray(one)) for one in (pixels, pixels.T, pixels[::-1], pixels + 1)}
    assert len(hashes) == 4


def test_the_png_has_the_same_bytes_every_time_and_gives_the_pixels_back(tmp_path: Path) -> None:
    picture = Image.fromarray(RNG.integers(0, 256, (30, 50), dtype=np.uint8))
    picture.info["comment"] = "not written"
    write_png(picture, tmp_path / "a" / "one.png")
    write_png(Image.fromarray(np.asarray(picture)), tmp_path / "two.png")
    assert (tmp_path / "a" / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    read = Image.open(tmp_path / "two.png")
    assert read.mode == "L"
    assert pixel_hash(read) == pixel_hash(picture)
    chunks = {name for name in (b"tEXt", b"tIME", b"iTXt", b"eXIf") if name in (tmp_path / "two.png").read_bytes()}
    assert not chunks
