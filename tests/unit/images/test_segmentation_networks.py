"""The networks as their weights expect them, and which files are taken for weights."""

from __future__ import annotations

import hashlib
import pickle
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

from data.small_brain import study
from overread.config import Provided, SegResNet, SwinUnetr
from overread.config.segmentation import NETWORK_SERIES
from overread.core.errors import BadInput
from overread.images.segmentation.checkpoint import load_weights, sha256_of
from overread.images.segmentation.networks import METHODS
from overread.images.segmentation.study import segment


def swin_unetr(feature_size: int = 12, **more: Any) -> SwinUnetr:
    return SwinUnetr(method="swin-unetr", checkpoint="m.pt", feature_size=feature_size, **more)


def segresnet(**more: Any) -> SegResNet:
    return SegResNet(method="segresnet", checkpoint="m.pt", **more)


def test_the_plan_knows_the_networks_there_are() -> None:
    sections = (Provided, SwinUnetr, SegResNet)
    assert {"provided", *METHODS} == {get_args(one.model_fields["method"].annotation)[0] for one in sections}
    assert all(sorted(method.channels) == sorted(NETWORK_SERIES) for method in METHODS.values())


def test_the_published_swin_unetr_has_62191941_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "linspace", partial(torch.linspace, device="cpu"))  # MONAI looks at its values
    with torch.device("meta"):
        network = METHODS["swin-unetr"].build(swin_unetr(48))
    assert sum(one.numel() for one in network.parameters()) == 62_191_941


def test_the_bundles_segresnet_has_83_tensors_of_16_filters_and_up() -> None:
    """So many has its published checkpoint, beginning with 16 filters of 3x3x3 over 4 channels."""
    with torch.device("meta"):
        state = METHODS["segresnet"].build(segresnet()).state_dict()
    assert len(state) == 83
    assert state["convInit.conv.weight"].shape == (16, 4, 3, 3, 3)
    assert state["conv_final.2.conv.weight"].shape == (3, 16, 1, 1, 1)


@pytest.mark.parametrize("section", [swin_unetr(roi=(64, 64, 32)), segresnet(roi=(48, 40, 32))])
def test_the_real_networks_segment_a_study(tmp_path: Path, section: SwinUnetr | SegResNet) -> None:
    torch.manual_seed(0)
    checkpoint = tmp_path / "model.pt"
    torch.save(METHODS[section.method].build(section).state_dict(), checkpoint)
    there = section.model_copy(update={"checkpoint": str(checkpoint), "device": "cpu"})
    result = segment(study(tmp_path), there, tmp_path / "mask.nii.gz")
    assert result.problem is None
    assert result.volumes_ml is not None and sum(result.volumes_ml.values()) > 0


# -- checkpoints -------------------------------------------------------------------------------------------------------


@pytest.fixture
def network() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))


def other() -> torch.nn.Module:
    torch.manual_seed(2)
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))


@pytest.mark.parametrize("kind", ["plain", "state_dict", "several GPUs", "with a score"])
def test_weights_are_loaded_from_every_form_in_which_they_are_published(
    tmp_path: Path, network: torch.nn.Module, kind: str
) -> None:
    state = other().state_dict()
    content = {
        "plain": state,
        "state_dict": {"state_dict": state, "epoch": 300},
        "several GPUs": {"state_dict": {f"module.{name}": value for name, value in state.items()}},
        "with a score": {"state_dict": state, "best_acc": np.float64(0.906), "epoch": 300},
    }[kind]
    torch.save(content, tmp_path / "m.pt")
    sha256 = load_weights(network, tmp_path / "m.pt")
    assert sha256 == sha256_of(tmp_path / "m.pt") == hashlib.sha256((tmp_path / "m.pt").read_bytes()).hexdigest()
    assert all(torch.equal(value, state[name]) for name, value in network.state_dict().items())


def test_another_file_than_the_config_names_is_refused(tmp_path: Path, network: torch.nn.Module) -> None:
    path = tmp_path / "m.pt"
    torch.save(other().state_dict(), path)
    right = sha256_of(path)
    assert load_weights(network, path, right) == right
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(BadInput, match=rf"m\.pt: the checkpoint's SHA-256 is .*, and checkpoint_sha256 says {right}"):
        load_weights(network, path, right)


@pytest.mark.parametrize("legacy", [False, True])
def test_a_file_with_code_in_it_is_refused_and_the_code_never_runs(
    tmp_path: Path, network: torch.nn.Module, legacy: bool
) -> None:
    path, trace = tmp_path / "m.pt", tmp_path / "was-here"

    class Code:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return eval, (f"open({str(trace)!r}, 'w').close()",)

    content = {"state_dict": other().state_dict(), "note": Code()}
    if legacy:
        path.write_bytes(pickle.dumps({"note": Code()}, protocol=2))
    else:
        torch.save(content, path)
    with pytest.raises(BadInput, match=r"m\.pt: the checkpoint holds more than weights .*refused"):
        load_weights(network, path)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda state: state.pop("0.weight"), r"the file lacks 0\.weight"),
        (lambda state: state.update({"2.weight": torch.zeros(1)}), r"has what the network has not: 2\.weight"),
        (lambda state: state.update({"0.bias": torch.zeros(5)}), r"does not fit: 0\.bias is 5, not 2"),
        (lambda state: [state.pop(name) for name in list(state)], "no state_dict in the checkpoint"),
    ],
)
def test_weights_of_another_network_are_refused(
    tmp_path: Path, network: torch.nn.Module, change: Any, why: str
) -> None:
    state = other().state_dict()
    change(state)
    torch.save({"state_dict": state}, tmp_path / "m.pt")
    before = {name: value.clone() for name, value in network.state_dict().items()}
    with pytest.raises(BadInput, match=rf"m\.pt: .*{why}"):
        load_weights(network, tmp_path / "m.pt")
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_another_feature_size_is_named(tmp_path: Path) -> None:
    torch.save(METHODS["swin-unetr"].build(swin_unetr(24)).state_dict(), tmp_path / "m.pt")
    with pytest.raises(BadInput, match=r"weights of another network \(method or feature_size\).*is 24x4x2x2x2, not 12"):
        load_weights(METHODS["swin-unetr"].build(swin_unetr(12)), tmp_path / "m.pt")


@pytest.mark.parametrize("content", [b"", b"no weights", b"PK\x03\x04 broken"])
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, network: torch.nn.Module, content: bytes) -> None:
    (tmp_path / "m.pt").write_bytes(content)
    with pytest.raises(BadInput, match=r"m\.pt: (not a checkpoint of PyTorch|the checkpoint holds more than weights)"):
        load_weights(network, tmp_path / "m.pt")


def test_a_checkpoint_that_is_not_there_is_an_error_and_no_problem_of_the_study(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"absent\.pt: checkpoint not readable \(No such file"):
        segment(
            study(tmp_path),
            swin_unetr().model_copy(update={"checkpoint": str(tmp_path / "absent.pt")}),
            tmp_path / "mask.nii.gz",
        )
    assert not (tmp_path / "mask.json").exists()
