"""One study from its files to mask and JSON: what they say, what is a reason against it, and what is kept."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from data.small_brain import LPS, SHAPE, save, series, study, tumour, without
from data.stand_in_network import Section, StandIn, mask_of, put_in
from overread.config import Provided
from overread.core.errors import BadInput
from overread.core.outputs import OutputFolder
from overread.core.records import Study
from overread.images import labels
from overread.images.segmentation import inference
from overread.images.segmentation import study as module
from overread.images.segmentation.study import segment


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Section]:
    return partial(put_in, monkeypatch, tmp_path)


# -- the JSON ----------------------------------------------------------------------------------------------------------


def test_the_json_says_how_the_mask_came_about(tmp_path: Path, stand_in: Callable[..., Section]) -> None:
    one, section = study(tmp_path), stand_in(overlap=0.25, feature_size=24)
    segment(one, section, tmp_path / "out" / "mask.nii.gz")
    about = json.loads((tmp_path / "out" / "mask.json").read_text())
    mask = mask_of(tmp_path / "out" / "mask.nii.gz")
    assert about["volumes_ml"] == {str(label): (mask == label).sum() / 1000 for label in (1, 2, 4)}
    assert about["checkpoint_sha256"] == hashlib.sha256(Path(section.checkpoint).read_bytes()).hexdigest()
    told = ("study", "method", "overlap", "flips", "feature_size", "device", "precision", "brain", "problem")
    assert {name: about[name] for name in told} == {
        "study": "A", "method": "swin-unetr", "overlap": 0.25, "flips": False, "feature_size": 24, "device": "cpu",
        "precision": "float32", "brain": "provided", "problem": None,
    }  # fmt: skip
    assert 0 < about["network_seconds"] < about["seconds"]


def test_the_same_study_gives_the_same_bytes(tmp_path: Path, stand_in: Callable[..., Section]) -> None:
    one, section = study(tmp_path), stand_in()
    for name in ("one", "two"):
        segment(one, section, tmp_path / name / "mask.nii.gz")
    assert (tmp_path / "one" / "mask.nii.gz").read_bytes() == (tmp_path / "two" / "mask.nii.gz").read_bytes()


def test_a_voxel_counts_with_its_size() -> None:
    affine = np.array([[0, -2.0, 0, 5], [1.5, 0, 0, 1], [0, 0, 3.0, 2], [0, 0, 0, 1]])
    found = labels.volumes_ml(np.array([[[1, 1, 2, 4, 4, 4, 0]]], dtype=np.uint8), affine)
    assert found == {"1": 0.018, "2": 0.009, "4": 0.027}


# -- provided masks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stored", "slope"), [(np.int16(3), 1 / 3), (np.float64(0.9999999998), 1.0)])
def test_a_provided_mask_keeps_its_volumes(tmp_path: Path, stored: Any, slope: float) -> None:
    """As released: 1 reads 1.00000003 or 0.9999999998. What was written is read again and written the same."""
    one = study(tmp_path, volumes={"tumor_segmentation": stored * tumour().astype(np.asarray(stored).dtype)})
    path = Path(one.images["tumor_segmentation"])
    content = bytearray(gzip.decompress(path.read_bytes()))
    content[112:120] = np.array([slope, 0], dtype="<f4").tobytes()
    path.write_bytes(gzip.compress(bytes(content)))
    result = segment(one, Provided(), tmp_path / "mask.nii.gz")
    volume = {str(label): (tumour() == label).sum() / 1000 for label in (1, 2, 4)}
    assert result.volumes_ml == pytest.approx(volume, rel=1e-3)
    again = one.model_copy(update={"images": {**one.images, "tumor_segmentation": str(tmp_path / "mask.nii.gz")}})
    assert segment(again, Provided(), tmp_path / "again.nii.gz").volumes_ml == result.volumes_ml
    assert np.array_equal(mask_of(tmp_path / "again.nii.gz"), tumour())


def test_a_brain_without_tumour_has_an_empty_mask(tmp_path: Path) -> None:
    one = study(tmp_path, volumes={"tumor_segmentation": np.zeros(SHAPE, np.int16)})
    result = segment(one, Provided(), tmp_path / "mask.nii.gz")
    assert (result.problem, result.volumes_ml) == (None, {"1": 0, "2": 0, "4": 0})


def test_label_3_without_4_is_enhancing_tumour_and_said(tmp_path: Path) -> None:
    one = study(tmp_path, volumes={"tumor_segmentation": np.where(tumour() == 4, 3, tumour())})
    result = segment(one, Provided(), tmp_path / "mask.nii.gz")
    assert result.relabelled == {"3": 4}
    assert np.array_equal(mask_of(tmp_path / "mask.nii.gz"), tumour())


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda mask: np.where(mask == 1, 3, mask), "labels 3 and 4 in one mask"),
        (lambda mask: np.where(mask == 1, 7, mask), r"values that are no labels \(7\)"),
        (lambda mask: mask * 0.4, r"values that are no labels \(0.4, 0.8, 1.6\)"),
        (lambda mask: -mask, r"values that are no labels \(-4, -2, -1\)"),
    ],
)
def test_a_mask_of_other_numbers_is_a_named_reason(
    tmp_path: Path, change: Callable[[np.ndarray], np.ndarray], why: str
) -> None:
    one = study(tmp_path, volumes={"tumor_segmentation": change(tumour())})
    result = segment(one, Provided(), tmp_path / "mask.nii.gz")
    assert result.problem is not None
    assert re.match(rf"A_tumor_segmentation\.nii\.gz: {why}", result.problem), result.problem
    assert not (tmp_path / "mask.nii.gz").exists()


# -- bad studies -------------------------------------------------------------------------------------------------------


def spoilt(root: Path) -> dict[str, tuple[Study, str]]:
    """A study for each way in which one can be bad, and the reason that must be given."""
    made: dict[str, tuple[Study, str]] = {"missing": (without(study(root, "missing"), "T1c"), "T1c: missing")}
    one = study(root, "gone")
    Path(one.images["FLAIR"]).unlink()
    made["gone"] = (one, "gone_FLAIR.nii.gz: missing")
    one = study(root, "truncated")
    path = Path(one.images["T2"])
    path.write_bytes(path.read_bytes()[:2000])
    made["truncated"] = (one, "truncated_T2.nii.gz: truncated")
    made["zero"] = (study(root, "zero", {"T1": np.zeros(SHAPE, np.int16)}), "zero_T1.nii.gz: all voxels are zero")
    values = series()["T1"].astype(np.float32)
    values[20, 18, 14] = np.nan
    made["nan"] = (study(root, "nan", {"T1": values}), "nan_T1.nii.gz: 1 of 40320 voxels are NaN")
    one = study(root, "coarse")
    for name in ("FLAIR", "T1", "T1c", "T2"):
        save(Path(one.images[name]), series()[name], LPS @ np.diag([1, 1, 5.0, 1]))
    made["coarse"] = (one, "coarse_FLAIR.nii.gz: voxels of 1 x 1 x 5 mm; the network takes 1 mm")
    one = study(root, "elsewhere")
    away = LPS.copy()
    away[0, 3] += 20
    save(Path(one.images["T1c"]), series()["T1c"], away)
    made["elsewhere"] = (
        one,
        "elsewhere_T1c.nii.gz: lies elsewhere than FLAIR: by their affines it covers 50 % of what FLAIR shows",
    )
    made["told"] = (study(root, "told", problem="FLAIR: wrong shape"), "FLAIR: wrong shape")
    return made


def test_every_kind_of_bad_study_is_a_named_reason_and_leaves_no_mask(
    tmp_path: Path, stand_in: Callable[..., Section]
) -> None:
    section = stand_in()
    for name, (one, why) in spoilt(tmp_path / "data").items():
        mask = tmp_path / name / "mask.nii.gz"
        with OutputFolder(mask.parent, "images segment").writing(mask) as temporary:
            temporary.write_bytes(b"of an earlier run")
        result = segment(one, section, mask)
        assert result.problem is not None and result.problem.startswith(why), (name, result.problem)
        assert not mask.exists()
        assert json.loads((tmp_path / name / "mask.json").read_text())["problem"] == result.problem


def test_what_is_not_a_number_in_the_networks_output_is_a_named_reason(
    tmp_path: Path, stand_in: Callable[..., Section], monkeypatch: pytest.MonkeyPatch
) -> None:
    section = stand_in()
    real = inference.probabilities

    def overflowing(*arguments: Any, **more: Any) -> np.ndarray:
        found = real(*arguments, **more)
        found[0, 0, 0, 0] = np.nan
        return found

    monkeypatch.setattr(inference, "probabilities", overflowing)
    result = segment(study(tmp_path), section, tmp_path / "mask.nii.gz")
    assert result.problem == "the network's output holds NaN (float32 on cpu)"


def test_a_gpu_that_is_not_there_is_an_error_of_the_job(tmp_path: Path, stand_in: Callable[..., Section]) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(BadInput, match=r"segmentation\.device: cuda, but PyTorch sees no GPU"):
        segment(study(tmp_path), stand_in(device="cuda"), tmp_path / "mask.nii.gz")


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_a_finished_mask_is_taken_from_where_it_was_kept(
    tmp_path: Path, stand_in: Callable[..., Section], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch system took the declared files away; the second job makes nothing again."""
    one, section, work = study(tmp_path), stand_in(), tmp_path / "work"
    first = segment(one, section, tmp_path / "one" / "mask.nii.gz", work=work)
    monkeypatch.setattr(module, "_by_network", None)
    again = segment(one, section, tmp_path / "two" / "mask.nii.gz", work=work)
    assert again == first
    assert (tmp_path / "one" / "mask.nii.gz").read_bytes() == (tmp_path / "two" / "mask.nii.gz").read_bytes()


def test_weights_that_moved_or_came_to_be_pinned_are_the_same_weights(
    tmp_path: Path, stand_in: Callable[..., Section], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, section, work = study(tmp_path), stand_in(), tmp_path / "work"
    first = segment(one, section, tmp_path / "one" / "mask.nii.gz", work=work)
    monkeypatch.setattr(module, "_by_network", None)
    there = {"checkpoint": str(tmp_path / "moved.pt"), "checkpoint_sha256": first.checkpoint_sha256}
    Path(section.checkpoint).rename(tmp_path / "moved.pt")
    assert segment(one, section.model_copy(update=there), tmp_path / "two" / "mask.nii.gz", work=work) == first


@pytest.mark.parametrize("what", ["overlap", "flips", "series", "weights", "kept mask", "kept JSON"])
def test_what_a_mask_depends_on_makes_it_anew(
    tmp_path: Path, stand_in: Callable[..., Section], monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    one, section, work = study(tmp_path), stand_in(), tmp_path / "work"
    segment(one, section, tmp_path / "mask.nii.gz", work=work)
    if what in ("overlap", "flips"):
        section = section.model_copy(update={what: 0.75 if what == "overlap" else True})
    elif what == "kept mask":
        (work / "mask.nii.gz").unlink()
    elif what == "kept JSON":
        (work / "mask.json").write_text('{"of": "another version"}')
    elif what == "series":
        save(Path(one.images["T2"]), series(seed=9)["T2"])
    else:
        torch.save({"state_dict": StandIn().state_dict(), "epoch": 301}, section.checkpoint)
    made = []
    real = module._by_network
    monkeypatch.setattr(module, "_by_network", lambda *all_of_it: (made.append(1), real(*all_of_it)))
    segment(one, section, tmp_path / "mask.nii.gz", work=work)
    assert made == [1]


def test_a_bad_study_is_looked_at_again(tmp_path: Path, stand_in: Callable[..., Section]) -> None:
    one, section, work = study(tmp_path), stand_in(), tmp_path / "work"
    path = Path(one.images["T2"])
    content = path.read_bytes()
    path.write_bytes(content[:1000])
    assert segment(one, section, tmp_path / "mask.nii.gz", work=work).problem is not None
    path.write_bytes(content)
    assert segment(one, section, tmp_path / "mask.nii.gz", work=work).problem is None
