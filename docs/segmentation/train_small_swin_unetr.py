"""Train a small Swin-UNETR on semi-synthetic brains, and segment held-out ones through Overread's own code.

    MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=100000000000 \
        .venv/bin/python docs/segmentation/train_small_swin_unetr.py --out /tmp/small-swin-unetr

It shows that the way from a study's files to its mask works: channel order, normalisation, window, labels. A network
that was trained on planted tumours says nothing about real ones. The two variables keep glibc from giving memory back
to the system after every window, which costs half of the time otherwise. It takes up to 14 GB of memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import nibabel as nib
import numpy as np
import numpy.typing as npt
import torch
from monai.losses import DiceLoss
from overread.images.segmentation.labels import ET, TC, WT, dice, read_labels, to_regions
from torch.nn.functional import binary_cross_entropy_with_logits

from overread.config import SwinUnetr
from overread.core.records import Study, write_studies
from overread.images.files import BRAIN, TUMOUR, StudyFiles
from overread.images.segmentation.checkpoint import sha256_of
from overread.images.segmentation.inputs import read_inputs
from overread.images.segmentation.networks import METHODS
from overread.images.volume import read_volume
from overread.sources.ucsf_pdgm.reader import read
from overread.sources.ucsf_pdgm.section import UcsfPdgm
from overread_phantom.folder import begin, finish, write_study
from overread_phantom.tumour import draw_study

METHOD = "swin-unetr"
BOX = (slice(40, 200), slice(24, 216), slice(None))
"""Of the grid of UCSF-PDGM; it holds every brain. All studies are cut to it, which halves the work."""

WINDOW = (160, 192, 64)
"""Thick axial slabs: the network normalises over its window, and after so short a training windows with little brain
are too strange for it."""

STAGES = (((64, 64, 32), 0.45), ((160, 192, 32), 0.55))
"""Size of the crops and share of the steps: small crops first, since they cost an eighth; then whole axial slices."""

RARE = -3.0
"""Bias of the last layer to begin with: that most voxels are no tumour need not be learned first (Lin et al. 2017)."""

TRAIN_SEED, HELD_OUT_SEED = 1, 3
FEATURE_SIZE = 12
LEARNING_RATE = 4e-3
ENOUGH = 0.8
REGIONS = {"whole_tumour": WT, "tumour_core": TC, "enhancing_tumour": ET}


@dataclass(frozen=True)
class Example:
    """A study as the network sees it."""

    channels: npt.NDArray[np.float16]  # (4, x, y, z)
    regions: npt.NDArray[np.bool_]  # (3, x, y, z)
    tumour: npt.NDArray[np.int64]  # (n, 3) its voxels


def make_studies(folder: Path, seed: int, count: int) -> list[Study]:
    """Phantoms 0 .. count-1 of `seed` in the layout of UCSF-PDGM, and the studies that its reader finds there."""
    begin(folder)
    planted = [draw_study(seed, index) for index in range(count)]
    questions = [question for one in planted for question in write_study(one, folder)]
    finish(folder, planted, questions)
    section = UcsfPdgm.model_validate(
        {"source": "ucsf-pdgm", "root": str(folder), "questions": {"origin": "file", "path": "none"}}
    )
    return read("phantoms", section, folder)


def cut(study: Study) -> Study:
    """The study with its files cut to `BOX`, beside the whole ones; their affines say where they lie."""
    images = {}
    for name in (*METHODS[METHOD].channels, BRAIN, TUMOUR):
        path = Path(study.images[name])
        whole = nib.load(path)
        part = whole.slicer[BOX]
        part.set_data_dtype(np.float32)
        images[name] = str(path.with_name(f"cut_{path.name}"))
        nib.save(part, images[name])
    return study.model_copy(update={"images": images})


def example(study: Study) -> Example:
    """Read by the code that segments, so that training and use can't drift apart."""
    inputs = read_inputs(StudyFiles(study), METHODS[METHOD].channels, None)
    labels, _ = read_labels(StudyFiles(study).volume(TUMOUR))
    regions = np.stack([inputs.grid.turned(region) for region in to_regions(labels)]).astype(np.bool_)
    return Example(inputs.channels.astype(np.float16), regions, np.argwhere(regions[WT]))


def crop(one: Example, size: tuple[int, int, int], rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """A box of `size` voxels, two times in three with tumour in it, mirrored at random: (1, 4, ...), (1, 3, ...)."""
    shape, edges = np.array(one.channels.shape[1:]), np.array(size)
    if rng.random() < 2 / 3:
        low = one.tumour[rng.integers(len(one.tumour))] - rng.integers(edges // 8, edges - edges // 8)
    else:
        low = rng.integers(0, shape - edges + 1)
    low = np.clip(low, 0, shape - edges)
    box = (slice(None), *(slice(int(a), int(a + n)) for a, n in zip(low, edges, strict=True)))
    axes = [axis for axis in (1, 2, 3) if rng.random() < 0.5]
    image, target = (np.flip(array[box], axes).astype(np.float32) for array in (one.channels, one.regions))
    return torch.from_numpy(image.copy())[None], torch.from_numpy(target.copy())[None]


def train(folder: Path, studies: int, steps: int, seed: int) -> None:
    """Make `studies` phantoms in `folder`/train, train on them, and write `folder`/model.pt."""
    start = time.perf_counter()
    examples = [example(cut(study)) for study in make_studies(folder / "train", TRAIN_SEED, studies)]
    print(f"{len(examples)} studies made and read in {time.perf_counter() - start:.0f} s", flush=True)
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    section = SwinUnetr(method=METHOD, checkpoint="none", feature_size=FEATURE_SIZE)
    network = METHODS[METHOD].build(section).train()
    torch.nn.init.constant_(network.out.conv.conv.bias, RARE)
    overlap_loss = DiceLoss(sigmoid=True, batch=True)
    optimiser = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LEARNING_RATE, total_steps=steps, pct_start=0.1)
    sizes = [size for size, share in STAGES for _ in range(round(share * steps))]
    recent: list[float] = []
    for step, size in enumerate(sizes[:steps], start=1):
        image, target = crop(examples[int(rng.integers(len(examples)))], size, rng)
        logits = network(image)
        loss = overlap_loss(logits, target) + binary_cross_entropy_with_logits(logits, target)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        recent.append(float(loss.detach()))
        if step % 10 == 0 or step == steps:
            print(f"step {step} of {steps}: loss {np.mean(recent[-10:]):.3f}", flush=True)
    torch.save({"state_dict": network.state_dict()}, folder / "model.pt")


def in_a_process_of_its_own(work: Callable[..., None], *arguments: object) -> None:
    """What it takes of memory is given back. SystemExit if it fails."""
    process = get_context("spawn").Process(target=work, args=arguments)
    process.start()
    process.join()
    if process.exitcode != 0:
        raise SystemExit(f"{work.__name__} ended with {process.exitcode}")


def segmented(folder: Path, studies: list[Study]) -> dict[str, Path]:
    """The masks of studies by the command that the workflow calls for each."""
    section = SwinUnetr(
        method=METHOD,
        checkpoint=str(folder / "model.pt"),
        checkpoint_sha256=sha256_of(folder / "model.pt"),
        feature_size=FEATURE_SIZE,
        roi=WINDOW,
    )
    table = folder / "studies.parquet"
    write_studies(studies, table)
    masks = {study.study: folder / "masks" / f"{study.study}.nii.gz" for study in studies}
    for study, mask in masks.items():
        command = [sys.executable, "-m", "overread", "images", "segment", str(table), "--study", study]
        subprocess.run([*command, "--section", section.model_dump_json(), "--out", str(mask)], check=True)
    return masks


def scores(study: Study, mask: Path) -> dict[str, float | None]:
    """Dice by region; none for a region that the study does not have."""
    found, _ = read_labels(read_volume(mask, may_be_empty=True))
    true, _ = read_labels(StudyFiles(study).volume(TUMOUR))
    pairs = {name: (to_regions(found)[place], to_regions(true)[place]) for name, place in REGIONS.items()}
    return {name: round(dice(ours, theirs), 4) if theirs.any() else None for name, (ours, theirs) in pairs.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder to write, new or made by this script")
    parser.add_argument("--studies", type=int, default=12, help="phantoms to train on")
    parser.add_argument("--held-out", type=int, default=6, help="phantoms to segment")
    parser.add_argument("--steps", type=int, default=70)
    parser.add_argument("--seed", type=int, default=0, help="of weights and crops")
    wanted = parser.parse_args()
    start = time.perf_counter()
    in_a_process_of_its_own(train, wanted.out, wanted.studies, wanted.steps, wanted.seed)
    trained = time.perf_counter() - start
    studies = [cut(study) for study in make_studies(wanted.out / "held-out", HELD_OUT_SEED, wanted.held_out)]
    masks = segmented(wanted.out, studies)
    rows = {study.study: scores(study, masks[study.study]) for study in studies}
    for study, row in rows.items():
        print(study, row)
    means = {name: [row[name] for row in rows.values() if row[name] is not None] for name in REGIONS}
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    summary = {
        "mean_dice": {name: round(float(np.mean(values)), 3) for name, values in means.items()},
        "least_dice": {name: min(values) for name, values in means.items()},
        "held_out": {name: len(values) for name, values in means.items()},
        "trained_on": wanted.studies,
        "steps": wanted.steps,
        "minutes_until_trained": round(trained / 60, 1),
        "minutes": round((time.perf_counter() - start) / 60, 1),
        "cpu_minutes": round(sum(one.ru_utime + one.ru_stime for one in used) / 60, 1),
        "peak_memory_gb": round(max(one.ru_maxrss for one in used) / 1e6, 1),
    }
    print(json.dumps(summary))
    (wanted.out / "dice.json").write_text(json.dumps({"summary": summary, "studies": rows}, indent=1) + "\n")
    return 0 if summary["mean_dice"]["whole_tumour"] >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
