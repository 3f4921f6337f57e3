"""What a file says of its values against what is true of them: files that were shown wrongly without a word."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pydantic import TypeAdapter
from pydicom import DataElement, Dataset, dcmread
from pydicom.data import get_testdata_file

from data.dicom_files import write_radiograph
from overread.config import View
from overread.core.records import Study
from overread.images import render_study
from overread.images.dicom import read_dicom, stored_values
from overread.images.radiograph import read_radiograph, read_values
from overread.images.render import suspicions

RAMP = np.arange(4096, dtype=np.uint16).reshape(64, 64)


def shown(path: Path) -> tuple[np.ndarray, str]:
    radiograph = read_radiograph(path)
    return np.asarray(radiograph.picture()).astype(int), radiograph.scaling


def table(entries: np.ndarray, bits: int) -> Dataset:
    item = Dataset()
    item.add_new("LUTDescriptor", "US", [len(entries) % 65536, 0, bits])
    item.add_new("LUTData", "OW", entries.astype("<u2").tobytes())
    return item


@pytest.mark.parametrize(
    ("most", "bits", "white", "said"),
    [
        (4095, 16, 255, "the greatest, 4095, is white"),  # 12 bits of entries that are said to be 16
        (255, 16, 255, "the greatest, 255, is white"),
        (4095, 12, 255, ""),
        (65535, 16, 255, ""),
        (40000, 16, 156, ""),  # a table that darkens on purpose uses the bits that it names
    ],
)
def test_a_lookup_table_whose_entries_have_fewer_bits_than_it_says(
    tmp_path: Path, most: int, bits: int, white: int, said: str
) -> None:
    entries = np.rint(np.linspace(0, most, 4096))
    path = write_radiograph(tmp_path / "a.dcm", RAMP, VOILUTSequence=[table(entries, bits)])
    picture, scaling = shown(path)
    assert (picture.min(), picture.max()) == (0, white)
    assert abs(picture.mean() - white / 2) < 1
    assert "VOI lookup table" in scaling and (said in scaling if said else "(no entry" not in scaling)
    values = read_values(path)
    assert values.values.max() == pytest.approx(white / 255, abs=0.01) and said in values.about


@pytest.mark.parametrize(
    ("values", "signed", "padding"),
    [
        (np.where(np.arange(64)[:, None] < 8, -2000, RAMP.astype(int) - 1000), 1, 63536),  # -2000 without its sign
        (np.where(np.arange(64)[:, None] < 8, -2000, RAMP.astype(int) - 1000), 1, -2000),
        (np.where(np.arange(64)[:, None] < 8, 65535, RAMP.astype(int)), 0, -1),  # 65535 with a sign
        (np.where(np.arange(64)[:, None] < 8, 65535, RAMP.astype(int)), 0, 65535),
    ],
)
def test_padding_is_known_by_its_bits_whatever_sign_it_is_written_with(
    tmp_path: Path, values: np.ndarray, signed: int, padding: int
) -> None:
    kind = np.int16 if signed else np.uint16
    path = write_radiograph(tmp_path / "a.dcm", values.astype(kind))
    dataset = dcmread(path)
    dataset[0x00280120] = DataElement(0x00280120, "SS" if padding < 0 else "US", padding)
    dataset.save_as(path)
    picture, scaling = shown(path)
    assert (picture[:8] == 0).all()
    inner = values[8:]
    assert f"{inner.min()} to {inner.max()} (its extremes)" in scaling
    assert picture[8:].max() == 255 and abs(picture[8:].mean() - 127.5) < 1


@pytest.mark.parametrize("pixels", [3, 12])
@pytest.mark.parametrize("as_png", [True, False])
def test_a_few_pixels_far_beyond_all_others_do_not_darken_the_rest(tmp_path: Path, pixels: int, as_png: bool) -> None:
    values = RAMP.copy()
    values[0, :pixels] = 65535
    path = tmp_path / ("a.png" if as_png else "a.dcm")
    if as_png:
        Image.fromarray(values).save(path)
    else:
        write_radiograph(path, values)
    picture, scaling = shown(path)
    assert abs(picture.mean() - 127.5) < 2 and len(np.unique(picture)) > 250
    assert "percentiles 0.5 and 99.5: 42 pixels" in scaling and "65535 lie beyond" in scaling
    window = read_values(path)
    assert window.low < 50 and 4000 < window.high < 4096


def test_without_such_pixels_the_extremes_are_the_ends(tmp_path: Path) -> None:
    picture, scaling = shown(write_radiograph(tmp_path / "a.dcm", RAMP))
    assert (picture.min(), picture.max()) == (0, 255) and "0 to 4095 (its extremes)" in scaling
    bright = RAMP.copy()
    bright[0, :20] = 9000  # a marker of twice the rest is left as it is: so are bones and tubes
    assert "(its extremes)" in shown(write_radiograph(tmp_path / "b.dcm", bright))[1]


@pytest.mark.parametrize("name", ["JPGExtended.dcm", "JPEG-lossy.dcm"])
def test_jpeg_extended_of_twelve_bits_is_decoded_by_what_is_installed(tmp_path: Path, name: str) -> None:
    path = Path(str(get_testdata_file(name, download=False)))
    stored = stored_values(path, read_dicom(path))
    assert stored.shape == (1024, 256)
    assert (stored.min(), stored.max()) == (0, 264) and stored.mean() == pytest.approx(14.4, abs=0.1)


def brain(folder: Path, **more: object) -> Study:
    path = folder / "a.png"
    return Study(
        study="s", patient="p", dataset="d", modality="xray", images={"frontal": str(path)}, report={}, labels={},
        restricted=False, **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (np.where(RAMP < 4090, 0, 200), "nearly all of it is black; it has 2 grey levels only"),
        (np.where(RAMP < 4090, 255, RAMP % 200), "nearly all of it is white"),
        (np.where(RAMP < 2000, 0, 255), "it has 2 grey levels only"),
        (np.tile(RAMP // 16, (1, 4)), "256 x 64 pixels: one edge is more than 3 times the other"),
        (RAMP // 16, None),
    ],
)
def test_a_picture_that_nobody_would_believe_is_told_of(tmp_path: Path, values: np.ndarray, why: str | None) -> None:
    Image.fromarray(values.astype(np.uint8)).save(tmp_path / "a.png")
    views = TypeAdapter(dict[str, View]).validate_python({"v": {"kind": "frontal"}})
    (picture,) = render_study(brain(tmp_path), views, tmp_path / "images" / "s")
    assert picture.doubt == why


def test_a_picture_of_one_grey_is_called_so() -> None:
    assert suspicions(Image.new("L", (10, 10), 90)) == ["it has 1 grey level only"]
