"""What is sent of a run's images, and what is refused: paths that climb, links that lead out, names in no record."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
from PIL import Image

from data.dicom_files import write_radiograph, write_slices
from overread.core.records import read_studies, read_trials, write_studies, write_trials

STUDY = "mri-01-1"
PICTURE = f"images/{STUDY}/pictures/flair-axial-0.png"
RAS = np.diag([1.0, 1.0, 1.0, 1.0])


@pytest.fixture
def run(results: Path, tmp_path: Path) -> Path:
    """A copy to change, with its own name, elsewhere than where it was made."""
    return Path(shutil.copytree(results, tmp_path / "moved" / "results" / results.name))


def with_images(run: Path, dataset: str, study: str, **images: object) -> None:
    path = run / dataset / "studies.parquet"
    studies = read_studies(path, with_problems=True)
    changed = [
        one.model_copy(update={"images": {**one.images, **{n: str(p) for n, p in images.items()}}})
        if one.study == study
        else one
        for one in studies
    ]
    write_studies(changed, path)


def with_section(run: Path, dataset: str, **section: object) -> None:
    spec = json.loads((run / "study.json").read_text())
    spec["datasets"][dataset] = {"questions": {"origin": "file", "path": "q.jsonl"}, "restricted": False, **section}
    (run / "study.json").write_text(json.dumps(spec))


def nifti(path: Path, values: np.ndarray, affine: np.ndarray = RAS, **header: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = nibabel.Nifti1Image(values, affine)
    for name, value in header.items():
        image.header[name] = value
    nibabel.save(image, path)
    return path


def read_back(content: bytes) -> nibabel.Nifti1Image:
    return nibabel.Nifti1Image.from_bytes(gzip.decompress(content))


def voxels(client: Any, path: str) -> np.ndarray:
    """What a browser makes of a series: the facts say where the numbers begin and how they are scaled."""
    facts = client.get(f"/files/facts/series/{path}").json()
    raw = gzip.decompress(client.get(f"/files/series/{path}.nii.gz").content)
    count = int(np.prod(facts["shape"]))
    stored = np.frombuffer(raw, facts["dtype"], count, facts["offset"]).reshape(facts["shape"], order="F")
    return np.asarray(stored * facts["slope"] + facts["intercept"])


# -- pictures --------------------------------------------------------------------------------------------------------


def test_a_picture_is_sent_byte_for_byte_with_its_type_and_a_tag(client: Any, results: Path) -> None:
    answer = client.get(f"/files/picture/mri/{PICTURE}")
    assert answer.status_code == 200
    assert answer.content == (results / "mri" / PICTURE).read_bytes()
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["x-content-type-options"] == "nosniff"
    again = client.get(f"/files/picture/mri/{PICTURE}", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_a_part_of_a_picture_is_sent_if_it_is_asked_for(client: Any, results: Path) -> None:
    answer = client.get(f"/files/picture/mri/{PICTURE}", headers={"range": "bytes=8-15"})
    assert answer.status_code == 206
    assert answer.content == (results / "mri" / PICTURE).read_bytes()[8:16]


def test_a_black_picture_is_sent_since_a_trial_names_it(client: Any) -> None:
    answer = client.get("/files/picture/mri/images/black/64x64.png")
    assert np.asarray(Image.open(BytesIO(answer.content))).max() == 0


@pytest.mark.parametrize(
    "path",
    [
        "studies.parquet",
        "questions.jsonl",
        f"images/{STUDY}/views.json",
        f"images/{STUDY}/pictures/../views.json",
        "../study.json",
        "..%2Fstudy.json",
        "%2e%2e/study.json",
        "/etc/passwd",
        "%2Fetc%2Fpasswd",
        f"images/{STUDY}/pictures/flair-axial-0.png%00",
        "images/black/65x65.png",
    ],
)
def test_no_path_is_sent_that_no_record_names(client: Any, path: str) -> None:
    answer = client.get(f"/files/picture/mri/{path}")
    assert answer.status_code == 404
    assert b"root:" not in answer.content and b"cells" not in answer.content


def test_a_picture_that_is_a_link_out_of_the_dataset_is_refused(run: Path, client_of: Callable[..., Any]) -> None:
    secret = run.parent / "secret.png"
    shutil.copy(run / "mri" / PICTURE, secret)
    (run / "mri" / PICTURE).unlink()
    (run / "mri" / PICTURE).symlink_to(secret)
    assert client_of(run).get(f"/files/picture/mri/{PICTURE}").status_code == 404


def test_a_trial_that_names_a_file_outside_its_dataset_does_not_open_it(
    run: Path, client_of: Callable[..., Any]
) -> None:
    path = run / "mri" / "trials" / "single-slice" / "run-1.parquet"
    trials = read_trials(path)
    blocks = [b.model_copy(update={"image": "../study.json"}) if b.image else b for b in trials[0].blocks]
    write_trials([trials[0].model_copy(update={"blocks": tuple(blocks)}), *trials[1:]], path)
    answer = client_of(run).get("/files/picture/mri/..%2Fstudy.json")
    assert answer.status_code == 404
    assert b"config_hash" not in answer.content


# -- series ----------------------------------------------------------------------------------------------------------


def test_a_packed_series_is_sent_as_it_was_scanned(run: Path, client_of: Callable[..., Any]) -> None:
    values = np.arange(4 * 5 * 6, dtype=np.int16).reshape(4, 5, 6)
    path = nifti(run / "mri" / "source" / "T2.nii.gz", values, np.diag([-1.0, 2.0, 3.0, 1.0]))
    with_images(run, "mri", STUDY, T2=path)
    client = client_of(run)
    answer = client.get(f"/files/series/mri/{STUDY}/T2.nii.gz")
    assert answer.content == path.read_bytes()
    assert answer.headers["content-type"] == "application/gzip"
    assert np.array_equal(voxels(client, f"mri/{STUDY}/T2"), values)
    assert client.get(f"/files/facts/series/mri/{STUDY}/T2").json()["affine"][1] == [0, 2, 0, 0]


@pytest.mark.parametrize("dtype", ["<i2", ">i2", ">f4", "<i8", "<u8", "|u1"])
@pytest.mark.parametrize("name", ["T2.nii", "T2.nii.gz"])
def test_a_browser_gets_the_right_values_of_every_kind_of_file(
    run: Path, client_of: Callable[..., Any], name: str, dtype: str
) -> None:
    values = np.arange(2 * 3 * 4, dtype=dtype).reshape(2, 3, 4)
    header = nibabel.Nifti1Header(endianness=">" if dtype.startswith(">") else "<")
    header.set_data_dtype(dtype)
    path = run / "mri" / "source" / name
    nibabel.save(nibabel.Nifti1Image(values, RAS, header), path)
    with_images(run, "mri", STUDY, T2=path)
    client = client_of(run)
    facts = client.get(f"/files/facts/series/mri/{STUDY}/T2").json()
    assert facts["dtype"] in {"<i2", "<f4", "<f8", "|u1"}
    assert np.array_equal(voxels(client, f"mri/{STUDY}/T2"), values)
    whole = read_back(client.get(f"/files/series/mri/{STUDY}/T2.nii.gz").content)
    assert np.array_equal(np.asarray(whole.dataobj), values)


def test_of_a_series_of_several_volumes_the_first_is_sent_and_that_is_said(
    run: Path, client_of: Callable[..., Any]
) -> None:
    values = np.random.default_rng(1).integers(0, 99, (3, 4, 5, 7)).astype(np.int16)
    with_images(run, "mri", STUDY, DTI=nifti(run / "mri" / "source" / "dti.nii.gz", values))
    client = client_of(run)
    assert "volume 1 of 7" in client.get(f"/files/facts/series/mri/{STUDY}/DTI").json()["note"]
    assert np.array_equal(voxels(client, f"mri/{STUDY}/DTI"), values[..., 0])


def test_a_dicom_series_becomes_nifti_with_its_place_in_the_patient(run: Path, client_of: Callable[..., Any]) -> None:
    values = np.random.default_rng(2).integers(0, 900, (5, 6, 4))
    folder = write_slices(run / "mri" / "source" / "dicom", values, origin=(10, 20, 30), spacing=(1, 2, 3))
    with_images(run, "mri", STUDY, T2=folder)
    client = client_of(run)
    image = read_back(client.get(f"/files/series/mri/{STUDY}/T2.nii.gz").content)
    # DICOM's axes run to the left and to the back, NIfTI's to the right and to the front.
    placed = np.asarray(image.dataobj)
    assert np.array_equal(placed, values[::-1, ::-1])
    assert np.allclose(image.affine @ [4, 5, 0, 1], [-10, -20, 30, 1])
    assert "DICOM" in client.get(f"/files/facts/series/mri/{STUDY}/T2").json()["note"]


def test_several_readers_at_once_get_the_same(run: Path, client_of: Callable[..., Any]) -> None:
    values = np.random.default_rng(3).normal(size=(40, 40, 40)).astype(">f4")
    with_images(run, "mri", STUDY, T2=nifti(run / "mri" / "source" / "T2.nii", values))
    client = client_of(run)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.get(f"/files/series/mri/{STUDY}/T2.nii.gz"), range(16)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1


def test_a_series_that_changed_is_read_again(run: Path, client_of: Callable[..., Any]) -> None:
    path = nifti(run / "mri" / "source" / "T2.nii", np.arange(27, dtype=np.int16).reshape(3, 3, 3))
    with_images(run, "mri", STUDY, T2=path)
    client = client_of(run)
    tag = client.get(f"/files/series/mri/{STUDY}/T2.nii.gz").headers["etag"]
    nifti(path, np.arange(36, dtype=np.int16).reshape(3, 3, 4))
    answer = client.get(f"/files/series/mri/{STUDY}/T2.nii.gz", headers={"if-none-match": tag})
    assert answer.status_code == 200
    assert voxels(client, f"mri/{STUDY}/T2").max() == 35


def test_a_damaged_file_is_named_with_its_reason_and_nothing_is_sent(run: Path, client_of: Callable[..., Any]) -> None:
    path = run / "mri" / "source" / "T2.nii.gz"
    path.write_bytes(b"\x1f\x8bnot gzip at all")
    with_images(run, "mri", STUDY, T2=path)
    answer = client_of(run).get(f"/files/facts/series/mri/{STUDY}/T2")
    assert answer.status_code == 422
    assert answer.json()["problem"].startswith("T2.nii.gz:")


# -- what may be read ------------------------------------------------------------------------------------------------


def test_a_series_is_found_where_the_run_was_moved_to(run: Path, client_of: Callable[..., Any]) -> None:
    """Its records name the place where it was made."""
    answer = client_of(run).get(f"/files/series/mri/{STUDY}/FLAIR.nii.gz")
    assert answer.status_code == 200
    assert read_back(answer.content).shape == (8, 8, 12)


def test_a_path_from_the_folder_where_the_run_was_started_is_found(run: Path, client_of: Callable[..., Any]) -> None:
    values = np.arange(27, dtype=np.int16).reshape(3, 3, 3)
    nifti(run / "mri" / "source" / "T2.nii.gz", values)
    with_images(run, "mri", STUDY, T2=f"results/{run.name}/mri/source/T2.nii.gz")
    assert np.array_equal(voxels(client_of(run), f"mri/{STUDY}/T2"), values)


@pytest.mark.parametrize("study", ["mri-99", "..", "%2e%2e", f"{STUDY}%2F..", "' OR 1=1 --", "mri-broken"])
def test_a_study_that_is_not_there_sends_nothing(client: Any, study: str) -> None:
    assert client.get(f"/files/series/mri/{study}/FLAIR.nii.gz").status_code == 404
    assert client.get(f"/files/facts/series/mri/{study}/FLAIR").status_code == 404


@pytest.mark.parametrize("series", ["T9", "..", "../FLAIR", "..%2F..%2Fstudies", "frontal"])
def test_a_series_that_the_study_does_not_name_is_refused(client: Any, series: str) -> None:
    assert client.get(f"/files/series/mri/{STUDY}/{series}.nii.gz").status_code == 404


def test_a_study_that_names_a_file_elsewhere_does_not_open_it(run: Path, client_of: Callable[..., Any]) -> None:
    outside = nifti(run.parents[2] / "outside.nii.gz", np.arange(27, dtype=np.int16).reshape(3, 3, 3))
    with_images(run, "mri", STUDY, T2=outside, T1c=f"{run}/mri/source/../../../../../outside.nii.gz")
    client = client_of(run)
    for series in ("T2", "T1c"):
        answer = client.get(f"/files/facts/series/mri/{STUDY}/{series}")
        assert answer.status_code == 404
        assert "outside the folders" in answer.json()["problem"]
        assert str(outside) not in answer.text
        assert client.get(f"/files/series/mri/{STUDY}/{series}.nii.gz").status_code == 404


def test_a_link_in_the_run_that_leads_out_of_it_is_not_followed(run: Path, client_of: Callable[..., Any]) -> None:
    outside = nifti(run.parents[2] / "outside.nii.gz", np.arange(27, dtype=np.int16).reshape(3, 3, 3))
    link = run / "mri" / "source" / "T2.nii.gz"
    link.symlink_to(outside)
    folder = run / "mri" / "source" / "linked"
    folder.symlink_to(outside.parent)
    with_images(run, "mri", STUDY, T2=link, T1c=folder / "outside.nii.gz")
    client = client_of(run)
    assert client.get(f"/files/series/mri/{STUDY}/T2.nii.gz").status_code == 404
    assert client.get(f"/files/series/mri/{STUDY}/T1c.nii.gz").status_code == 404


def test_files_in_the_data_sets_own_folder_are_sent_and_links_out_of_it_only_if_the_config_follows_them(
    run: Path, client_of: Callable[..., Any]
) -> None:
    root, elsewhere = run.parents[2] / "data", run.parents[2] / "elsewhere"
    values = np.arange(27, dtype=np.int16).reshape(3, 3, 3)
    inside, outside = nifti(root / "T2.nii.gz", values), nifti(elsewhere / "T1c.nii.gz", values)
    (root / "T1c.nii.gz").symlink_to(outside)
    with_images(run, "mri", STUDY, T2=inside, T1c=root / "T1c.nii.gz", T1=outside)
    for follow, expected in ((False, 404), (True, 200)):
        with_section(run, "mri", source="ucsf-pdgm", root=str(root), follow_links=follow)
        client = client_of(run)
        assert np.array_equal(voxels(client, f"mri/{STUDY}/T2"), values)
        assert client.get(f"/files/series/mri/{STUDY}/T1c.nii.gz").status_code == expected
        assert client.get(f"/files/series/mri/{STUDY}/T1.nii.gz").status_code == 404


def test_a_tables_own_folder_is_where_its_files_may_lie(run: Path, client_of: Callable[..., Any]) -> None:
    root = run.parents[2] / "data"
    nifti(root / "a" / "T2.nii.gz", np.arange(27, dtype=np.int16).reshape(3, 3, 3))
    with_images(run, "mri", STUDY, T2=root / "a" / "T2.nii.gz")
    with_section(run, "mri", source="table", modality="mri", path=str(root / "table.csv"), images={"T2": "column"})
    assert client_of(run).get(f"/files/series/mri/{STUDY}/T2.nii.gz").status_code == 200


def test_a_file_that_is_gone_is_said_to_be_gone(run: Path, client_of: Callable[..., Any]) -> None:
    with_images(run, "mri", STUDY, T2=run / "mri" / "source" / "none.nii.gz")
    answer = client_of(run).get(f"/files/facts/series/mri/{STUDY}/T2")
    assert answer.status_code == 404
    assert "no longer" in answer.json()["problem"]


def test_what_is_restricted_is_never_to_be_kept_by_a_browser(
    restricted_results: Path, client_of: Callable[..., Any]
) -> None:
    client = client_of(restricted_results)
    picture = "/files/picture/xray/images/xray-01-1/pictures/frontal-0.png"
    for path in (picture, "/files/image/xray/xray-01-1/frontal", "/files/facts/image/xray/xray-01-1/frontal"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "no-store"
        assert "etag" not in answer.headers
    assert client.get(picture, headers={"range": "bytes=0-3"}).status_code == 200


# -- radiographs -----------------------------------------------------------------------------------------------------


def pixels(client: Any, path: str) -> tuple[dict[str, Any], np.ndarray]:
    facts = client.get(f"/files/facts/image/{path}").json()
    raw = client.get(f"/files/image/{path}").content
    stored = np.frombuffer(raw, "u1" if facts["bits"] == 8 else "<u2").reshape(facts["height"], facts["width"])
    return facts, stored * facts["slope"] + facts["intercept"]


def test_a_radiograph_of_8_bits_is_sent_as_stored(client: Any, results: Path) -> None:
    facts, values = pixels(client, "xray/xray-01-1/frontal")
    expected = np.asarray(Image.open(results / "xray" / "images" / "xray-01-1" / "pictures" / "frontal-0.png"))
    assert facts["bits"] == 8 and np.array_equal(values, expected)


def test_a_radiograph_keeps_its_full_depth_and_the_files_own_window(run: Path, client_of: Callable[..., Any]) -> None:
    """More than any picture of 8 bits could tell apart, also outside the window."""
    values = np.random.default_rng(4).permutation(4096).reshape(64, 64).astype(np.uint16)
    more = {"BitsStored": 12, "HighBit": 11, "WindowCenter": "2000", "WindowWidth": "801", "RescaleSlope": "2",
            "RescaleIntercept": "-1000"}  # fmt: skip
    path = write_radiograph(run / "xray" / "source" / "a.dcm", values, **more)
    with_images(run, "xray", "xray-01-1", frontal=path)
    facts, sent = pixels(client_of(run), "xray/xray-01-1/frontal")
    assert np.array_equal(sent, values * 2.0 - 1000)
    # PS3.3 C.11.2.1.2: black at centre - 0.5 - (width - 1) / 2, white a width - 1 above it.
    assert (facts["low"], facts["high"]) == (1599.5, 2399.5)
    assert (facts["exact"], facts["inverted"]) == (True, False)


def test_a_monochrome1_radiograph_is_said_to_be_inverted(run: Path, client_of: Callable[..., Any]) -> None:
    values = np.arange(64 * 64).reshape(64, 64)
    path = write_radiograph(run / "xray" / "source" / "a.dcm", values, PhotometricInterpretation="MONOCHROME1")
    with_images(run, "xray", "xray-01-1", frontal=path)
    facts, sent = pixels(client_of(run), "xray/xray-01-1/frontal")
    assert facts["inverted"] and np.array_equal(sent, values)
    assert (facts["low"], facts["high"]) == (0, 4095)


def test_values_that_need_more_than_16_bits_are_rounded_to_65536_steps_and_that_is_said(
    run: Path, client_of: Callable[..., Any]
) -> None:
    values = np.arange(64 * 64).reshape(64, 64)
    path = write_radiograph(run / "xray" / "source" / "a.dcm", values, RescaleSlope="0.3", RescaleIntercept="5")
    with_images(run, "xray", "xray-01-1", frontal=path)
    facts, sent = pixels(client_of(run), "xray/xray-01-1/frontal")
    assert not facts["exact"]
    assert np.abs(sent - (values * 0.3 + 5)).max() <= 4095 * 0.3 / 65535


# -- masks of a network ----------------------------------------------------------------------------------------------


def test_a_networks_mask_is_sent_where_the_run_made_one(run: Path, client_of: Callable[..., Any]) -> None:
    from overread.images.segmentation.result import Segmentation

    labels = np.zeros((4, 4, 4), np.uint8)
    labels[1, 2, 3] = 4
    folder = run / "mri" / "images" / STUDY / "segmentation"
    nifti(folder / "mask.nii.gz", labels)
    result = Segmentation(study=STUDY, method="segresnet", brain="provided")
    (folder / "mask.json").write_text(result.model_dump_json())
    client = client_of(run)
    assert client.get(f"/files/mask/mri/{STUDY}/tumour.nii.gz").status_code == 404, "the config asks for no network"
    with_section(run, "mri", source="phantom", segmentation={"method": "segresnet"})
    client = client_of(run)
    answer = client.get(f"/files/mask/mri/{STUDY}/tumour.nii.gz")
    assert answer.status_code == 200
    assert np.array_equal(np.asarray(read_back(answer.content).dataobj), labels)
    assert client.get(f"/files/mask/mri/{STUDY}/brain.nii.gz").status_code == 404
    assert client.get("/files/mask/mri/mri-02-1/tumour.nii.gz").status_code == 404
