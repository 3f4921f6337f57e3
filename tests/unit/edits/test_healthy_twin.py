"""The edit `erase` against the truth: a study of the phantom and its twin without the tumour."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from overread.core.records import Study
from overread.edits.base import NotEdited, Scene
from overread.edits.erase import Erase
from overread.edits.erase_control import EraseControl
from overread.edits.shared.midplane import midplane
from overread.edits.shared.region import from_other_side, region
from overread.images.edited import chain, labels_found, volume_scene
from overread.images.files import BRAIN, TUMOUR, StudyFiles
from overread.images.slices import layout
from overread.images.volume import FloatArray, Volume
from overread_phantom.folder import nifti, volumes
from overread_phantom.tumour import PlantedTumour, draw_study

SEED = 11
MOST = 1.2
"""How much further from the truth than the healthy brain is from its own mirror image."""


def study(planted: PlantedTumour, folder: Path) -> Study:
    stored, scales = volumes(planted, ("FLAIR", "T1c"))
    folder.mkdir(parents=True)
    for name, values in stored.items():
        (folder / f"{name}.nii.gz").write_bytes(nifti(values, scales[name].slope, scales[name].intercept))
    return Study(
        study=planted.study, patient=planted.study, dataset="d", modality="mri", report={}, labels={},
        images={name: str(folder / f"{name}.nii.gz") for name in stored}, restricted=False,
    )  # fmt: skip


def scene(files: StudyFiles, series: str) -> tuple[Volume, Scene]:
    volume, tumour = files.volume(series), files.volume(TUMOUR)
    low, high = np.percentile(volume.part((slice(None),) * 3)[files.volume(BRAIN).labelled], (1, 99))
    return volume, volume_scene(
        volume, layout(volume.affine, "axial"), (float(low), float(high)),
        lambda label: labels_found(tumour, volume, label), files.volume(BRAIN).labelled, ("s", series), {},
    )  # fmt: skip


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[StudyFiles, FloatArray, FloatArray]]:
    """The files of studies, and FLAIR and T1c of their healthy twins; those whose tumour can be mirrored."""
    folder, found = tmp_path_factory.mktemp("twins"), []
    for index in range(8):
        planted = draw_study(SEED, index)
        healthy = replace(planted, labels=np.zeros_like(planted.labels), solid=np.zeros_like(planted.solid))
        twin = StudyFiles(study(healthy, folder / f"{index}-healthy"))
        ill = StudyFiles(study(planted, folder / f"{index}"))
        found.append((ill, *(twin.volume(name).part((slice(None),) * 3) for name in ("FLAIR", "T1c"))))
    return found


@pytest.mark.parametrize("series", ["FLAIR", "T1c"])
def test_what_is_erased_is_as_near_to_the_healthy_twin_as_that_is_to_its_mirror_image(pairs, series: str) -> None:
    shares, done = [], 0
    for files, *twins in pairs:
        volume, told = scene(files, series)
        truth = twins[("FLAIR", "T1c").index(series)]
        lesion = told.find(None)
        try:
            erased = chain(told.plain, [Erase(kind="erase")], told)(told.everything)
        except NotEdited:  # one that reaches over the midline, as is tested by itself
            continue
        done += 1
        before = volume.part((slice(None),) * 3)
        weight = np.zeros(volume.shape)
        edge = region(lesion, told, 2.0)
        weight[edge.place] = edge.weight
        assert (erased[weight == 0] == before[weight == 0]).all(), "outside the feather not one value changes"

        span = np.ptp(np.percentile(truth[files.volume(BRAIN).labelled], (1, 99)))
        healthy = replace(told, plain=lambda place, truth=truth: truth[place], shared={}, kept={})
        mirrored = from_other_side(healthy.plain, region(lesion, healthy, 2.0), healthy, np.zeros_like(lesion))
        inside = edge.core
        own = np.abs(mirrored[inside] - truth[edge.place][inside]).mean() / span
        off = np.abs(erased[lesion] - truth[lesion]).mean() / span
        shares.append(off / own)
        was = np.abs(before[lesion] - truth[lesion]).mean() / span
        assert off < was / 2
    assert done >= 5
    assert max(shares) <= MOST, shares


def test_the_fitted_plane_is_the_middle_of_the_head(pairs) -> None:
    """With a tumour on one side it lies where it lies in the healthy twin, to a millimetre and a degree."""
    for files, healthy, _ in pairs:
        _, told = scene(files, "FLAIR")
        found = midplane(told)
        truth = midplane(replace(told, plain=lambda place, healthy=healthy: healthy[place], shared={}))
        middle = np.argwhere(files.volume(BRAIN).labelled).mean(axis=0)
        assert abs(found.normal @ middle - found.offset - (truth.normal @ middle - truth.offset)) < 1.0
        assert np.degrees(np.arccos(np.clip(abs(found.normal @ truth.normal), 0, 1))) < 1.0


def test_the_control_has_the_lesion_s_size_and_touches_none_of_it(pairs) -> None:
    made = 0
    for files, *_ in pairs:
        volume, told = scene(files, "FLAIR")
        lesion, before = told.find(None), volume.part((slice(None),) * 3)
        control = EraseControl(kind="erase-control", feather=0)
        try:
            after = chain(told.plain, [control], told)(told.everything)
        except NotEdited:
            continue
        made += 1
        ((one, _),) = (value for key, value in told.kept.items() if key[0] == control)
        assert np.count_nonzero(one.core) == np.count_nonzero(lesion)
        changed = after != before
        assert not (changed & lesion).any()
        assert np.count_nonzero(changed) > 0.5 * np.count_nonzero(lesion)
        assert np.count_nonzero(one.core & ~told.organ[one.place]) <= 0.03 * np.count_nonzero(lesion)
    assert made >= 4
