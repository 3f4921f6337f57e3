"""Folders in the layout of UCSF-PDGM, with files that are a header and no more: the reader looks no further."""

from __future__ import annotations

import gzip
from pathlib import Path

import nibabel as nib
import numpy as np

from overread.config import FileQuestions
from overread.core.records import Study
from overread.sources.ucsf_pdgm import reader as ucsf_pdgm
from overread.sources.ucsf_pdgm.section import UcsfPdgm

CORE = ("T1", "T1c", "T2", "FLAIR", "tumor_segmentation")
GRID = (240, 240, 155)


def header_file(path: Path, shape: tuple[int, ...] = GRID) -> None:
    """A NIfTI file's beginning: the reader looks no further."""
    header = nib.Nifti1Header()
    header.set_data_dtype(np.int16)
    header.set_data_shape(shape)
    header.set_sform(np.diag([-1, -1, 1, 1]), code=1)
    header["vox_offset"], header["magic"] = 352, b"n+1"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(header.binaryblock + bytes(4 + 1000), mtime=0))


def scans(root: Path, study: str, series: tuple[str, ...] = CORE) -> Path:
    folder = root / "UCSF-PDGM-v5" / f"{study}_nifti"
    for name in series:
        header_file(folder / f"{study}_{name}.nii.gz")
    return folder


def section(root: Path, **more: object) -> UcsfPdgm:
    questions = FileQuestions(origin="file", path="questions.jsonl")
    return UcsfPdgm(source="ucsf-pdgm", root=str(root), questions=questions, **more)


def read(root: Path, **more: object) -> dict[str, Study]:
    studies = ucsf_pdgm.read("pdgm", section(root, **more), root)
    assert [study.study for study in studies] == sorted(study.study for study in studies)
    return {study.study: study for study in studies}
