"""One study from its files to its masks, by the method that a data set's `segmentation` names."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from overread.config import Provided, SegResNet, SwinUnetr
from overread.core.errors import BadInput
from overread.core.progress import say
from overread.core.provenance import code_of
from overread.core.records import Study, content_hash
from overread.images.dicom import files_in
from overread.images.files import BRAIN, TUMOUR, StudyFiles
from overread.images.labels import from_regions, read_labels, volumes_ml
from overread.images.segmentation import result as results
from overread.images.segmentation.grid import Grid
from overread.images.segmentation.networks import METHODS
from overread.images.volume import BadFile, BoolArray

if TYPE_CHECKING:
    import torch

    from overread.images.segmentation.result import Segmentation

PROBABLE = 0.5


def segment(
    study: Study,
    section: Provided | SwinUnetr | SegResNet,
    mask: Path,
    *,
    work: Path | None = None,
) -> Segmentation:
    """Write the tumour mask of a study to `mask` (`<name>.nii.gz`), its JSON, and a brain mask if one is made.

    work    folder where finished masks are kept: what is there under the same key is taken and not made again
    raises  BadInput for what is wrong for every study: the checkpoint, the device. What is wrong with this study is the
            result's `problem`, and there is no mask
    """
    start = time.perf_counter()
    results.json_path(mask)
    about: dict[str, Any] = {"study": study.study, "method": section.method}
    about["key"] = key = _key(study, section)
    if work is not None and (kept := results.take(mask, work, key)) is not None:
        return kept
    results.clear(mask)
    mask.parent.mkdir(parents=True, exist_ok=True)
    network = None if isinstance(section, Provided) else _network(section, about)
    try:
        if study.problem is not None:
            raise BadFile(study.problem)
        if isinstance(section, Provided):
            _provided(study, section, mask, about)
        else:
            assert network is not None
            _by_network(study, section, network, mask, about)
    except BadFile as error:
        result = results.Segmentation(**{**about, "problem": str(error)})
        results.clear(mask)
        results.write_result(result, mask)
        return result
    result = results.Segmentation(**about, seconds=round(time.perf_counter() - start, 3))
    results.write_result(result, mask)
    if work is not None:
        try:
            results.keep(mask, work)
        except BadInput as error:  # the masks are made; they are made again if they are asked for again
            say(f"warning: not kept for another attempt: {error}")
    return result


def _provided(study: Study, section: Provided, mask: Path, about: dict[str, Any]) -> None:
    files = StudyFiles(study)
    volume = files.volume(TUMOUR)
    grid = Grid.of(volume)
    labels, about["relabelled"] = read_labels(volume)
    if files.has(BRAIN):
        about["brain"] = "provided"
    elif section.brain == "deepbet":
        from overread.images.segmentation.brain import extract_brain
        from overread.images.segmentation.inference import device_of
        from overread.images.segmentation.inputs import read_brain

        device = device_of("auto")
        about["device"] = _named(device)
        brain, brain_grid, _ = read_brain(files, partial(extract_brain, gpu=device.type == "cuda"))
        _write_brain(brain, brain_grid, mask, about)
    about["volumes_ml"] = volumes_ml(labels, grid.affine)
    results.write_mask(labels, grid, mask)


def _network(section: SwinUnetr | SegResNet, about: dict[str, Any]) -> torch.nn.Module:
    """The network with its weights. What is wrong with them is wrong for all studies, so it comes first."""
    from overread.images.segmentation.checkpoint import load_weights

    network = METHODS[about["method"]].build(section)
    about["checkpoint_sha256"] = load_weights(network, Path(section.checkpoint), section.checkpoint_sha256)
    return network


def _by_network(
    study: Study, section: SwinUnetr | SegResNet, network: torch.nn.Module, mask: Path, about: dict[str, Any]
) -> None:
    from overread.images.segmentation.brain import extract_brain
    from overread.images.segmentation.inference import device_of, precision_of, probabilities
    from overread.images.segmentation.inputs import read_inputs

    device = device_of(section.device)
    about |= {name: getattr(section, name, None) for name in ("feature_size", "roi", "overlap", "flips")}
    about |= {"device": _named(device), "precision": precision_of(device)}
    make_brain = partial(extract_brain, gpu=device.type == "cuda") if section.brain == "deepbet" else None
    inputs = read_inputs(StudyFiles(study), METHODS[about["method"]].channels, make_brain)
    about |= {"resampled": inputs.resampled, "background_removed": inputs.background_removed}
    start = time.perf_counter()
    found = probabilities(
        network,
        inputs.channels,
        roi=about["roi"],
        overlap=section.overlap,
        flips=section.flips,
        device=device,
    )
    about["network_seconds"] = round(time.perf_counter() - start, 3)
    if not np.isfinite(found).all():
        raise BadFile(f"the network's output holds NaN ({about['precision']} on {about['device']})")
    labels = np.asarray(inputs.grid.turned_back(from_regions(found > PROBABLE)), dtype=np.uint8)
    if inputs.brain is not None and inputs.brain_made:
        _write_brain(inputs.brain, inputs.grid, mask, about)
    elif inputs.brain is not None:
        about["brain"] = "provided"
    about["volumes_ml"] = volumes_ml(labels, inputs.grid.affine)
    results.write_mask(labels, inputs.grid, mask)


def _write_brain(brain: BoolArray, grid: Grid, mask: Path, about: dict[str, Any]) -> None:
    results.write_mask(brain.astype(np.uint8), grid, results.brain_path(mask))
    voxel = abs(float(np.linalg.det(grid.affine[:3, :3]))) / 1000
    about |= {"brain": "deepbet", "brain_ml": round(int(np.count_nonzero(brain)) * voxel, 1)}


def _named(device: torch.device) -> str:
    """`cpu`, or `cuda: NVIDIA H100`."""
    import torch

    return f"cuda: {torch.cuda.get_device_name(device)}" if device.type == "cuda" else device.type


def _key(study: Study, section: Provided | SwinUnetr | SegResNet) -> str:
    """A hash of all that the masks depend on. Files are told apart by name, size and time, as Snakemake does."""
    from overread.images.segmentation.checkpoint import sha256_of

    identity = section.model_dump(mode="json", exclude={"resources", "device", "checkpoint"})
    if not isinstance(section, Provided) and section.checkpoint_sha256 is None:
        identity["checkpoint_sha256"] = sha256_of(Path(section.checkpoint))
    files = []
    for name in sorted(set(section.reads) & set(study.images)):
        path = Path(study.images[name])
        parts = files_in(path) if path.is_dir() else [path] if path.exists() else []  # a DICOM series is a folder
        files.append([name, *([one.name, one.stat().st_size, one.stat().st_mtime_ns] for one in parts)])
    return content_hash(
        [study.dataset, study.study, study.problem, study.reading, identity, files, code_of("images segment")]
    )
