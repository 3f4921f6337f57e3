"""The values of a radiograph for someone who sets the window: at full depth, with the window that its file asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pydicom.dataset import Dataset

from data.dicom_files import write_radiograph
from overread.images.header import BadFile
from overread.images.radiograph import read_radiograph, read_values

VALUES = np.random.default_rng(0).permutation(4096).reshape(64, 64)


def shown(values: Any, low: float, high: float, inverted: bool) -> np.ndarray:
    """What a linear window shows, 0 to 1."""
    share = np.clip((np.asarray(values, dtype=float) - low) / (high - low), 0, 1)
    return 1 - share if inverted else share


@pytest.mark.parametrize("interpretation", ["MONOCHROME1", "MONOCHROME2"])
@pytest.mark.parametrize(
    "window",
    [
        {},
        {"WindowCenter": "2000", "WindowWidth": "900"},
        {"WindowCenter": "2000.5", "WindowWidth": "901", "VOILUTFunction": "LINEAR_EXACT"},
        {
            "WindowCenter": ["1000", "2000"],
            "WindowWidth": ["300", "4000"],
            "RescaleSlope": "0.5",
            "RescaleIntercept": "7",
        },
    ],
)
def test_under_the_files_own_window_they_are_what_models_are_shown(
    tmp_path: Path, window: dict[str, Any], interpretation: str
) -> None:
    path = write_radiograph(tmp_path / "a.dcm", VALUES, PhotometricInterpretation=interpretation, **window)
    read = read_values(path)
    assert np.abs(shown(read.values, read.low, read.high, read.inverted) - read_radiograph(path).grey).max() < 1e-3


def test_what_lies_outside_of_the_files_window_is_kept(tmp_path: Path) -> None:
    path = write_radiograph(tmp_path / "a.dcm", VALUES, WindowCenter="100", WindowWidth="11")
    read = read_values(path)
    assert np.array_equal(read.values, VALUES)
    assert (read.low, read.high) == (94.5, 104.5)


def test_a_window_of_one_value_is_a_step(tmp_path: Path) -> None:
    path = write_radiograph(tmp_path / "a.dcm", VALUES, WindowCenter="100", WindowWidth="1")
    read = read_values(path)
    assert read.low < 100 <= read.high and read.high - read.low == 1


@pytest.mark.parametrize("interpretation", ["MONOCHROME1", "MONOCHROME2"])
def test_padding_is_dark_and_does_not_widen_the_window(tmp_path: Path, interpretation: str) -> None:
    values = VALUES + 100
    values[:5] = 60000
    path = write_radiograph(
        tmp_path / "a.dcm", values, PixelPaddingValue=60000, PhotometricInterpretation=interpretation
    )
    read = read_values(path)
    assert shown(read.values, read.low, read.high, read.inverted)[:5].max() == 0
    assert read.high == VALUES[5:].max() + 100


def test_behind_a_lookup_table_values_run_from_0_to_1(tmp_path: Path) -> None:
    table = Dataset()
    table.LUTDescriptor, table.LUTData = [4096, 0, 12], np.arange(4095, -1, -1, dtype="<u2").tobytes()
    path = write_radiograph(tmp_path / "a.dcm", VALUES, VOILUTSequence=[table])
    read = read_values(path)
    assert np.allclose(read.values, (4095 - VALUES) / 4095) and (read.low, read.high) == (0, 1)
    assert "lookup table" in read.about


def test_a_png_of_16_bits_keeps_its_values_and_one_of_8_is_as_stored(tmp_path: Path) -> None:
    Image.fromarray((VALUES * 10).astype(np.uint16)).save(tmp_path / "deep.png")
    deep = read_values(tmp_path / "deep.png")
    assert np.array_equal(deep.values, VALUES * 10) and (deep.low, deep.high) == (0, 40950)
    flat = (VALUES % 200).astype(np.uint8)
    Image.fromarray(flat).save(tmp_path / "flat.png")
    read = read_values(tmp_path / "flat.png")
    assert read.values.dtype == np.uint8 and np.array_equal(read.values, flat)
    assert (read.low, read.high, read.inverted) == (0, 255, False)


@pytest.mark.parametrize("content", [b"", b"no image at all, not even nearly", b"\x89PNG\r\n\x1a\nbroken" * 9])
def test_what_is_no_radiograph_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(content)
    with pytest.raises(BadFile, match=r"a\.png"):
        read_values(path)
