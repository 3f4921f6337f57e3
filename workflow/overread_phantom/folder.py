"""Writing planted tumours as a folder in the layout of UCSF-PDGM.

UCSF-PDGM-v5/UCSF-PDGM-0001_nifti/UCSF-PDGM-0001_FLAIR.nii.gz ...
UCSF-PDGM-metadata_v5.csv      3-digit ids, as released
reports/UCSF-PDGM-0001.txt     findings and impression
questions.jsonl                the grammar's questions
truth.csv                      every planted fact; written last
SEMI-SYNTHETIC.txt             marks the folder as made, not scanned; written first
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from overread.core.csv_files import write_csv
from overread.core.outputs import OutputFolder
from overread.core.records import Question, replacing, write_questions
from overread.sources.shared.marker import mark
from overread_phantom import diffusion, grammar
from overread_phantom.anatomy import AFFINE, GRID, load_anatomy, patient_box, tissue_slice
from overread_phantom.contrast import ALL, MAIN, signals, tumour_slice
from overread_phantom.quantise import Scale
from overread_phantom.tumour import Facts, PlantedTumour, generator

COMMAND = "studies make"
"""Whose manifest lies in the folder."""

TRUTH = "truth.csv"
SCANS = "UCSF-PDGM-v5"
METADATA = "UCSF-PDGM-metadata_v5.csv"

METADATA_COLUMNS = (
    "ID", "Sex", "Age at MRI", "WHO CNS Grade", "Final pathologic diagnosis (WHO 2021)", "MGMT status", "MGMT index",
    "1p/19q", "IDH", "1-dead 0-alive", "OS", "EOR", "Biopsy prior to imaging", "BraTS21 ID",
    "BraTS21 Segmentation Cohort", "BraTS21 MGMT Cohort",
)  # fmt: skip

TRUTH_COLUMNS = ("study", "patient", *grammar.TOPICS, *(f"fact_{field.name}" for field in dataclasses.fields(Facts)))
"""The labels by topic, then the facts that they follow from."""

SENTENCE = (
    "Semi-synthetic: the anatomy is the real SRI24 T1 brain atlas (average of 24 healthy heads); the tumours in it, "
    "all series derived from it and all reports are made up. No patient was scanned."
)

MASK_STEP = 3
"""Masks are stored as multiples of 3 with a slope of a third and read 1.0000000298: as released, they need rounding."""

COMPRESSION = 1


def begin(folder: Path) -> None:
    """An empty folder with the marker. What an earlier run made there is removed, and nothing else ever is.

    raises  BadInput for a folder with any other file
    """
    own = OutputFolder(folder, COMMAND)
    own.clear()
    with own.guarding():
        mark(folder, SENTENCE)


def write_study(planted: PlantedTumour, folder: Path, *, everything: bool = False) -> list[Question]:
    """The scans, masks and report of one study under `folder`; returns its questions.

    everything  all 23 files of a study of the release, and the directions of its diffusion series; else the seven main
                series and two masks
    """
    with OutputFolder(folder, COMMAND).guarding():
        return _write_study(planted, folder, everything=everything)


def _write_study(planted: PlantedTumour, folder: Path, *, everything: bool) -> list[Question]:
    scans = folder / SCANS / f"{planted.study}_nifti"
    stored, scales = volumes(planted, ALL if everything else MAIN, parenchyma=everything)
    for name, volume in stored.items():
        scale = scales[name]
        with replacing(scans / f"{planted.study}_{name}.nii.gz") as temporary:
            temporary.write_bytes(nifti(volume, scale.slope, scale.intercept))
    if everything:
        _write_diffusion(planted, stored, scales, scans)
    written = grammar.report(planted)
    with replacing(folder / "reports" / f"{planted.study}.txt") as temporary:
        temporary.write_text(written.text, encoding="utf-8")
    return grammar.questions(planted, written)


def finish(folder: Path, planted: Sequence[PlantedTumour], questions: Iterable[Question]) -> None:
    """The tables of the whole data set."""
    with OutputFolder(folder, COMMAND).guarding():
        write_questions(questions, folder / "questions.jsonl")
        write_csv(folder / METADATA, METADATA_COLUMNS, map(_metadata, planted), decimals=None)
        write_csv(folder / TRUTH, TRUTH_COLUMNS, map(_truth, planted), decimals=None)


def volumes(
    planted: PlantedTumour, names: tuple[str, ...] = MAIN, *, parenchyma: bool = False
) -> tuple[dict[str, npt.NDArray[np.int16]], dict[str, Scale]]:
    """Stored values of each series and mask on the grid, third axis first, and their scales.

    parenchyma  whether there is a mask of the brain without its fluid, too
    """
    scales = {name: Scale.draw(planted.seed, planted.index, name) for name in names}
    third = Scale(1 / MASK_STEP, 0.0, 0)
    scales |= {"brain_segmentation": third, "tumor_segmentation": third}
    scales |= {"brain_parenchyma_segmentation": third} if parenchyma else {}
    stored = {name: np.full(GRID[::-1], scale.zero, dtype=np.int16) for name, scale in scales.items()}
    anatomy = load_anatomy()
    low, high = patient_box(anatomy, planted.stretch)
    box = (slice(low[1], high[1]), slice(low[0], high[0]))
    for k in range(int(low[2]), int(high[2])):
        tissue = tissue_slice(anatomy, planted.stretch, k)
        if tissue is None:
            continue
        tumour = tumour_slice(planted, k, tissue.brain.shape)
        for name, signal in signals(planted, k, names, tissue, tumour).items():
            stored[name][k][box] = scales[name].stored(signal).T
        stored["brain_segmentation"][k][box] = MASK_STEP * tissue.brain.T
        if parenchyma:
            stored["brain_parenchyma_segmentation"][k][box] = MASK_STEP * (tissue.brain & (tissue.csf < 0.5)).T
    place = tuple(slice(o, o + n) for o, n in zip(planted.origin, planted.labels.shape, strict=True))[::-1]
    stored["tumor_segmentation"][place] = MASK_STEP * planted.labels.astype(np.int16).T
    return stored, scales


def _write_diffusion(
    planted: PlantedTumour, stored: dict[str, npt.NDArray[np.int16]], scales: dict[str, Scale], scans: Path
) -> None:
    """The diffusion series as scanned, from T2 and DWI on the brain's grid, and its directions as text."""
    signal = {
        name: (stored[name] * np.float32(scales[name].slope) + np.float32(scales[name].intercept))
        for name in ("T2", "DWI")
    }
    volumes = diffusion.scan(signal["T2"], signal["DWI"], planted.seed, planted.index)
    path = scans / f"{planted.study}_{diffusion.NAME}.nii.gz"
    with replacing(path) as temporary:
        temporary.write_bytes(nifti(volumes, 1.0, 0.0, diffusion.grid()))
    rows = diffusion.directions(planted.seed, planted.index)
    text = "".join(" ".join(f"{value:.6f}" for value in row) + "\n" for row in rows)
    with replacing(scans / f"{planted.study}_DTI_eddy.eddy_rotated_bvecs") as temporary:
        temporary.write_text(text, encoding="utf-8")


def nifti(
    stored: npt.NDArray[np.int16], slope: float, intercept: float, affine: npt.NDArray[np.float64] = AFFINE
) -> bytes:
    """A `.nii.gz` of a volume given last axis first, by default on UCSF-PDGM's grid. The same input, the same bytes."""
    import nibabel as nib
    from isal import isal_zlib

    header: Any = nib.Nifti1Header()  # type: ignore[no-untyped-call]
    header.set_data_dtype(np.int16)
    header.set_data_shape(stored.shape[::-1])
    header.set_zooms([*np.linalg.norm(affine[:3, :3], axis=0), *[1] * (stored.ndim - 3)])
    header.set_xyzt_units("mm")
    header.set_sform(affine, code=1)
    header.set_qform(affine, code=1)
    header.set_slope_inter(slope, intercept)
    header["vox_offset"], header["magic"] = 352, b"n+1"
    pack = isal_zlib.compressobj(COMPRESSION, wbits=31)
    head = pack.compress(header.binaryblock + bytes(4))
    return bytes(head + pack.compress(np.ascontiguousarray(stored).data) + pack.flush())


def _truth(planted: PlantedTumour) -> dict[str, Any]:
    facts = {f"fact_{name}": value for name, value in dataclasses.asdict(planted.facts).items()}
    facts["fact_diameters_mm"] = " x ".join(map(str, planted.facts.diameters_mm))
    return {"study": planted.study, "patient": planted.study, **grammar.labels(planted.facts), **facts}


def _metadata(planted: PlantedTumour) -> dict[str, Any]:
    """A row with the gaps of the released table. No made study is in BraTS21, so those columns stay empty."""
    rng = generator(planted.seed, planted.index, 70)
    high_grade = planted.facts.enhancement != "none" or planted.facts.necrosis != "none"
    mutated = not high_grade
    diagnosis = "Astrocytoma, IDH-mutant" if mutated else "Glioblastoma, IDH-wildtype"
    died, methylated = bool(rng.random() < 0.5), bool(rng.random() < 0.5)
    return {
        "ID": planted.study.replace("-0", "-", 1) if planted.index + 1 < 1000 else planted.study,
        "Sex": "MF"[int(rng.integers(2))],
        "Age at MRI": int(rng.integers(25, 85)),
        "WHO CNS Grade": 4 if high_grade else int(rng.integers(2, 4)),
        "Final pathologic diagnosis (WHO 2021)": diagnosis,
        "MGMT status": ("positive" if methylated else "negative") if rng.random() < 0.8 else "unknown",
        "MGMT index": int(rng.integers(1, 18)) if methylated else "",
        "1p/19q": "unknown" if rng.random() < 0.7 else "intact",
        "IDH": "mutated (NOS)" if mutated else "wildtype",
        "1-dead 0-alive": int(died),
        "OS": int(rng.integers(60, 2000)) if rng.random() < 0.9 else "",
        "EOR": ("GTR", "STR", "biopsy")[int(rng.integers(3))],
        "Biopsy prior to imaging": "Yes" if rng.random() < 0.1 else "No",
    }
