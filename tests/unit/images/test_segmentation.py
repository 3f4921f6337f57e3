"""What a network is given and how it is read, pinned by what it would give else.

The masks that the stand-in networks must give are worked out with NumPy from the files. Each pin is then shown to hold:
the same check fails when two channels, two outputs, two labels or one mirror axis are changed.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import torch

from data.small_brain import LPS, SHAPE, save, study
from data.stand_in_network import ORDERS, SLOPES, Section, StandIn, expected, logits, mask_of, put_in
from overread.images import labels
from overread.images.segmentation import inference, inputs, networks
from overread.images.segmentation.study import segment


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Section]:
    return partial(put_in, monkeypatch, tmp_path)


# -- pins, and what would break them -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ORDERS)
def test_the_mask_is_what_the_network_says_of_the_series_in_its_order(
    tmp_path: Path, stand_in: Callable[..., Section], method: str
) -> None:
    one = study(tmp_path)
    result = segment(one, stand_in(method), tmp_path / "mask.nii.gz")
    assert result.problem is None
    found, wanted = mask_of(tmp_path / "mask.nii.gz"), expected(one, ORDERS[method])
    assert np.array_equal(found, wanted)
    assert min(np.count_nonzero(wanted == label) for label in (0, 1, 2, 4)) > 500


@pytest.mark.parametrize("method", ORDERS)
@pytest.mark.parametrize("pair", list(itertools.combinations(range(4), 2)))
def test_two_channels_swapped_would_be_noticed(
    tmp_path: Path,
    stand_in: Callable[..., Section],
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    pair: tuple[int, int],
) -> None:
    one, section = study(tmp_path), stand_in(method)
    order = list(networks.METHODS[method].channels)
    order[pair[0]], order[pair[1]] = order[pair[1]], order[pair[0]]
    monkeypatch.setitem(networks.METHODS, method, dataclasses.replace(networks.METHODS[method], channels=tuple(order)))
    segment(one, section, tmp_path / "mask.nii.gz")
    assert not np.array_equal(mask_of(tmp_path / "mask.nii.gz"), expected(one, ORDERS[method]))


def _over_everything(channels: np.ndarray) -> np.ndarray:
    return np.stack([(one - one.mean()) / one.std() for one in channels])


def _over_all_channels(channels: np.ndarray) -> np.ndarray:
    inside = channels != 0
    return np.where(inside, (channels - channels[inside].mean()) / channels[inside].std(), 0)


def _to_one(channels: np.ndarray) -> np.ndarray:
    return np.stack([one / one.max() for one in channels])


@pytest.mark.parametrize("other", [_over_everything, _over_all_channels, _to_one])
def test_another_normalisation_would_be_noticed(
    tmp_path: Path,
    stand_in: Callable[..., Section],
    monkeypatch: pytest.MonkeyPatch,
    other: Callable[[np.ndarray], np.ndarray],
) -> None:
    one, section = study(tmp_path), stand_in()
    monkeypatch.setattr(inputs, "normalised", lambda channels: other(channels).astype(np.float32))
    segment(one, section, tmp_path / "mask.nii.gz")
    assert not np.array_equal(mask_of(tmp_path / "mask.nii.gz"), expected(one, ORDERS["swin-unetr"]))


def _mutants_of_labels() -> Iterator[dict[str, int]]:
    """Two outputs swapped, and two labels swapped."""
    for names in (("TC", "WT", "ET"), ("CORE", "OEDEMA", "ENHANCING")):
        for one, two in itertools.combinations(names, 2):
            yield {one: getattr(labels, two), two: getattr(labels, one)}


@pytest.mark.parametrize("mutant", list(_mutants_of_labels()), ids=lambda mutant: "-".join(mutant))
def test_two_outputs_or_two_labels_swapped_would_be_noticed(
    tmp_path: Path, stand_in: Callable[..., Section], monkeypatch: pytest.MonkeyPatch, mutant: dict[str, int]
) -> None:
    one, section = study(tmp_path), stand_in()
    for name, value in mutant.items():
        monkeypatch.setattr(labels, name, value)
    segment(one, section, tmp_path / "mask.nii.gz")
    assert not np.array_equal(mask_of(tmp_path / "mask.nii.gz"), expected(one, ORDERS["swin-unetr"]))


def test_where_regions_overlap_enhancing_tumour_covers_the_core_and_the_core_covers_oedema() -> None:
    """Each of the eight ways in which the three outputs can agree, in the order TC, WT, ET."""
    regions = np.array(list(itertools.product([False, True], repeat=3))).T[:, :, None, None]
    assert labels.from_regions(regions).ravel().tolist() == [0, 4, 2, 4, 1, 4, 1, 4]


def test_any_other_order_of_writing_would_be_noticed() -> None:
    regions = np.array(list(itertools.product([False, True], repeat=3))).T
    ours = labels.from_regions(regions[:, :, None, None]).ravel()
    for order in itertools.permutations([(1, 2), (0, 1), (2, 4)]):
        written = np.zeros(8, dtype=int)
        for place, label in order:
            written[regions[place]] = label
        assert np.array_equal(written, ours) == (order == ((1, 2), (0, 1), (2, 4)))


# -- flips -------------------------------------------------------------------------------------------------------------


def probabilities(channels: np.ndarray, flips: bool) -> np.ndarray:
    return inference.probabilities(
        StandIn(SLOPES), channels, roi=channels.shape[1:], overlap=0.5, flips=flips, device=torch.device("cpu")
    )


def averaged(channels: np.ndarray, mirrors: Iterator[tuple[int, ...]]) -> np.ndarray:
    """Mean of the probabilities over mirror images, each mirrored back."""
    found = []
    for steps in mirrors:
        turn = (slice(None), *(slice(None, None, step) for step in steps))
        found.append((1 / (1 + np.exp(-logits(channels[turn], SLOPES))))[turn])
    return np.mean(found, axis=0)


@pytest.fixture
def channels() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(4, 16, 12, 10)).astype(np.float32)


def test_flips_are_the_mean_of_the_probabilities_of_all_8_mirror_images(channels: np.ndarray) -> None:
    wanted = averaged(channels, itertools.product([1, -1], repeat=3))
    assert np.abs(probabilities(channels, flips=True) - wanted).max() < 1e-5


def test_without_flips_it_is_the_brain_as_it_lies(channels: np.ndarray) -> None:
    wanted = averaged(channels, iter([(1, 1, 1)]))
    assert np.abs(probabilities(channels, flips=False) - wanted).max() < 1e-5


@pytest.mark.parametrize("axes", [(3, 4), (2, 4), (2, 3), (1, 3, 4), (2, 2, 3)])
def test_flips_of_other_axes_would_be_noticed(
    channels: np.ndarray, monkeypatch: pytest.MonkeyPatch, axes: tuple[int, ...]
) -> None:
    monkeypatch.setattr(inference, "AXES", axes)
    wanted = averaged(channels, itertools.product([1, -1], repeat=3))
    try:
        found = probabilities(channels, flips=True)
    except RuntimeError:  # PyTorch refuses an axis that is named twice
        return
    assert np.abs(found - wanted).max() > 1e-3


def test_a_flip_that_is_not_undone_would_be_noticed(channels: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    flip, calls = torch.flip, itertools.count()
    monkeypatch.setattr(torch, "flip", lambda one, axes: flip(one, axes) if next(calls) % 2 == 0 else one)
    wanted = averaged(channels, itertools.product([1, -1], repeat=3))
    assert np.abs(probabilities(channels, flips=True) - wanted).max() > 1e-3


def test_flips_are_asked_for_in_the_config(tmp_path: Path, stand_in: Callable[..., Section]) -> None:
    one = study(tmp_path)
    roi = (64, 64, 32)  # larger than the brain: one window
    plain = segment(one, stand_in(slopes=SLOPES, roi=roi), tmp_path / "plain.nii.gz")
    mean = segment(one, stand_in(slopes=SLOPES, roi=roi, flips=True), tmp_path / "mean.nii.gz")
    assert (plain.flips, mean.flips) == (False, True)
    assert not np.array_equal(mask_of(tmp_path / "plain.nii.gz"), mask_of(tmp_path / "mean.nii.gz"))


# -- the window --------------------------------------------------------------------------------------------------------


class Counting(torch.nn.Module):
    """Gives each window a number of its own, in all voxels."""

    def __init__(self) -> None:
        super().__init__()
        self.windows = 0

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        self.windows += 1
        return torch.full((1, 3, *batch.shape[2:]), float(self.windows - 1))


@pytest.mark.parametrize(("overlap", "windows"), [(0.0, 2), (0.25, 3), (0.5, 3), (0.75, 5)])
def test_the_overlap_says_how_many_windows_there_are(overlap: float, windows: int) -> None:
    """64 voxels in windows of 32: one begins every 32, 24 (the last one at 32), 16 and 8 voxels."""
    network = Counting()
    inference.probabilities(
        network, np.zeros((4, 64, 32, 32), np.float32), roi=(32, 32, 32), overlap=overlap, flips=False,
        device=torch.device("cpu"),
    )  # fmt: skip
    assert network.windows == windows


def test_windows_are_weighted_by_a_gaussian_around_their_middles() -> None:
    """Two windows of 32 that share 16 voxels, the first giving 0 and the second 1: the share of the second one is that
    of its Gaussian, whose deviation MONAI sets to an eighth of the window."""
    found = inference.probabilities(
        Counting(), np.zeros((4, 48, 32, 32), np.float32), roi=(32, 32, 32), overlap=0.5, flips=False,
        device=torch.device("cpu"),
    )[0, :, 16, 16]  # fmt: skip
    share = np.log(found / (1 - found))
    assert share[:16] == pytest.approx(0, abs=1e-6)
    assert share[32:] == pytest.approx(1, abs=1e-4)
    place = np.arange(20, 28)
    first, second = (np.exp(-((place - middle) ** 2) / (2 * 4.0**2)) for middle in (15.5, 31.5))
    assert share[place] == pytest.approx(second / (first + second), abs=0.02)


def test_half_precision_gives_nearly_the_same_probabilities(
    channels: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mixed precision as on a GPU, here on the CPU."""
    single = probabilities(channels, flips=False)
    monkeypatch.setattr(inference, "precision_of", lambda _: "float16")
    half = probabilities(channels, flips=False)
    assert half.dtype == np.float32
    assert 0 < np.abs(half - single).max() < 0.01


# -- the grid ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codes", ["RAS", "PIR", "LAS", "SPL"])
def test_however_a_study_is_stored_the_network_sees_it_as_it_was_trained_and_the_mask_lies_where_it_should(
    tmp_path: Path, stand_in: Callable[..., Section], codes: str
) -> None:
    """The same brain with its array axes swapped and mirrored gives the same mask in space; the stand-in tells sides
    apart, so a brain that reached it turned would be segmented otherwise."""
    section = stand_in(slopes=SLOPES, roi=(64, 64, 32))
    one = study(tmp_path / "as-trained")
    segment(one, section, tmp_path / "mask.nii.gz")
    turn = nib.orientations.ornt_transform(
        nib.orientations.io_orientation(LPS), nib.orientations.axcodes2ornt(tuple(codes))
    )
    turned = {}
    for name, path in one.images.items():
        image = nib.load(path).as_reoriented(turn)
        assert "".join(nib.aff2axcodes(image.affine)) == codes
        turned[name] = save(tmp_path / codes / f"{name}.nii.gz", np.asarray(image.dataobj), image.affine)
    segment(one.model_copy(update={"images": turned}), section, tmp_path / "turned.nii.gz")
    found = nib.load(tmp_path / "turned.nii.gz")
    assert np.allclose(found.affine, nib.load(turned["FLAIR"]).affine)
    back = nib.as_closest_canonical(found)
    wanted = nib.as_closest_canonical(nib.load(tmp_path / "mask.nii.gz"))
    assert np.array_equal(np.asarray(back.dataobj), np.asarray(wanted.dataobj))
    assert np.allclose(back.affine, wanted.affine)


def test_the_mask_has_the_grid_of_flair(tmp_path: Path, stand_in: Callable[..., Section]) -> None:
    one = study(tmp_path)
    segment(one, stand_in(), tmp_path / "mask.nii.gz")
    mask, flair = nib.load(tmp_path / "mask.nii.gz"), nib.load(one.images["FLAIR"])
    assert mask.shape == flair.shape == SHAPE
    assert np.array_equal(mask.affine, flair.affine)
    assert mask.get_data_dtype() == np.uint8
