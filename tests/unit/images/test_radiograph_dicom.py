"""Radiographs in DICOM: rescale, lookup tables, windows, padding, inversion, each by hand; and what can't be shown."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from pydicom.data import get_testdata_file
from pydicom.dataset import Dataset

from data.dicom_files import write_radiograph
from overread.images.header import BadFile
from overread.images.radiograph import read_radiograph

GREY = np.linspace(0, 255, 40 * 60).reshape(40, 60).astype(np.uint8)
DEEP = np.linspace(1000, 5000, 40 * 60).reshape(40, 60).astype(np.uint16)


def shown(path: Path, size: int | None = None) -> np.ndarray:
    return np.asarray(read_radiograph(path).picture(size))


def said(path: Path) -> str:
    return read_radiograph(path).scaling


def refused(path: Path, reason: str) -> None:
    with pytest.raises(BadFile, match=reason) as caught:
        read_radiograph(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def lookup_table(first: int, entries: list[int], bits: int, kind: str = "US") -> Dataset:
    table = Dataset()
    table.add_new("LUTDescriptor", "SS" if first < 0 else "US", [len(entries), first, bits])
    data: Any = np.asarray(entries, dtype="<u2").tobytes() if kind == "OW" else entries
    table.add_new("LUTData", kind, data)
    return table


@pytest.mark.parametrize("kind", ["US", "OW"])
def test_values_beyond_a_lookup_table_take_its_ends(tmp_path: Path, kind: str) -> None:
    """8 bits from value 100 on: 0, 50, 255. Values of 0, 101 and 4000 become 0, 50 and 255; 356 = 100 + 256 too."""
    values = np.repeat(np.array([[0, 101, 356, 4000]], dtype=np.uint16), 20, axis=0).repeat(10, axis=1)
    table = lookup_table(100, [0, 50, 255], 8, kind)
    path = write_radiograph(tmp_path / "a.dcm", values, VOILUTSequence=[table])
    assert shown(path)[0, ::10].tolist() == [0, 50, 255, 255]
    assert "VOI lookup table" in said(path)


def test_a_lookup_table_goes_before_a_window_and_after_the_rescale(tmp_path: Path) -> None:
    """Rescaled -10, 0, 10: a table of 21 entries from -10 on, 12 bits, that turns values around."""
    values = np.repeat(np.array([[0, 10, 20]], dtype=np.uint16), 20, axis=0).repeat(10, axis=1)
    path = write_radiograph(
        tmp_path / "a.dcm", values, RescaleSlope="1", RescaleIntercept="-10", WindowCenter="0", WindowWidth="2",
        VOILUTSequence=[lookup_table(-10, [4095 - 4095 * number // 20 for number in range(21)], 12)],
    )  # fmt: skip
    assert shown(path)[0, ::10].tolist() == [255, 128, 0]
    assert said(path) == "DICOM, rescale slope 1, intercept -10, VOI lookup table"


def test_a_modality_lookup_table_is_applied(tmp_path: Path) -> None:
    values = np.repeat(np.array([[0, 1, 2]], dtype=np.uint16), 20, axis=0).repeat(10, axis=1)
    table = lookup_table(0, [1000, 0, 500], 16)
    table.ModalityLUTType = "US"
    path = write_radiograph(tmp_path / "a.dcm", values, ModalityLUTSequence=[table])
    assert shown(path)[0, ::10].tolist() == [255, 0, 128]
    assert "modality lookup table" in said(path)


def test_a_missing_rescale_is_1_and_0_and_said(tmp_path: Path) -> None:
    plain = write_radiograph(tmp_path / "a.dcm", DEEP)
    told = write_radiograph(tmp_path / "b.dcm", DEEP, RescaleSlope="1", RescaleIntercept="0")
    half = write_radiograph(tmp_path / "c.dcm", DEEP, RescaleIntercept="5")
    assert np.array_equal(shown(plain), shown(told))
    assert said(plain).startswith("DICOM, rescale slope 1, intercept 0 (the file has none), no window: 1000 to 5000")
    assert said(told).startswith("DICOM, rescale slope 1, intercept 0, no window")
    assert said(half).startswith("DICOM, rescale slope 1, intercept 5, no window: 1005 to 5005")


def test_padding_is_black_and_does_not_set_the_contrast(tmp_path: Path) -> None:
    """A frame of 65535 around values of 1000 to 5000; shown as MONOCHROME1 it would be the darkest anyway."""
    values = DEEP.copy()
    values[:5] = 65535
    for interpretation in ("MONOCHROME1", "MONOCHROME2"):
        path = write_radiograph(
            tmp_path / "a.dcm", values, PhotometricInterpretation=interpretation, PixelPaddingValue=65535
        )
        pixels = shown(path)
        assert (pixels[:5] == 0).all()
        assert {int(pixels[5:].min()), int(pixels[5:].max())} == {0, 255} or pixels[5:].max() > 220
    near = write_radiograph(
        tmp_path / "b.dcm",
        np.where(values == 65535, 60000, values),
        PixelPaddingValue=65535,
        PixelPaddingRangeLimit=60000,
    )
    assert (shown(near)[:5] == 0).all() and shown(near)[5:].max() == 255
    refused(write_radiograph(tmp_path / "c.dcm", np.full((40, 60), 7), PixelPaddingValue=7), "only padding")


@pytest.mark.parametrize(
    ("elements", "reason"),
    [
        ({"WindowCenter": "100", "WindowWidth": "0"}, "a window of width 0"),
        ({"WindowCenter": "100", "WindowWidth": "-5", "VOILUTFunction": "SIGMOID"}, "a window of width -5"),
        ({"WindowCenter": "100", "WindowWidth": "5", "VOILUTFunction": "CUBIC"}, "unknown function CUBIC"),
        ({"PhotometricInterpretation": "RGB"}, "photometric interpretation RGB is not grey"),
        ({"SamplesPerPixel": 3}, "is not grey"),
        ({"NumberOfFrames": "2"}, "2 frames; a radiograph has one"),
        ({"Rows": 60000, "Columns": 60000}, "60000 x 60000 pixels in 1 frames can't be an image"),
        ({"Rows": 10000, "Columns": 10000}, "10000 x 10000 pixels are too many for a radiograph"),
        ({"Rows": 0}, "can't be an image"),
        ({"Rows": 41}, "damaged or unreadable DICOM"),
        ({"BitsAllocated": 7}, "damaged or unreadable DICOM"),
        ({"PixelData": None}, "damaged or unreadable DICOM"),
        ({"RescaleSlope": "0", "RescaleIntercept": "3"}, "every pixel has the same value"),
    ],
)
def test_a_dicom_file_that_can_not_be_shown_says_why(tmp_path: Path, elements: dict[str, Any], reason: str) -> None:
    refused(write_radiograph(tmp_path / "a.dcm", DEEP, **elements), reason)


def test_the_real_radiograph_is_monochrome1_with_a_window() -> None:
    """1955 x 1841, stored 874 to 26479 in 15 bits, window 15000 +- 15000: by hand white is 874 - 0.5, black 26478.5.

    The picture of stored value v is 255 * (1 - ((v - 14999.5) / 29999 + 0.5)).
    """
    path = Path(str(get_testdata_file("RG1_UNCR.dcm")))
    stored = pydicom.dcmread(path).pixel_array.astype(float)
    assert stored.shape == (1955, 1841)
    expected = 255 * (1 - np.clip((stored - 14999.5) / 29999 + 0.5, 0, 1))
    assert np.abs(shown(path) - expected).max() <= 0.501
    assert said(path) == (
        "DICOM, rescale slope 1, intercept 0 (the file has none), window 15000 ± 15000 (LINEAR), inverted (MONOCHROME1)"
    )


def test_the_real_radiograph_in_lossless_jpeg_2000_shows_the_same() -> None:
    plain, packed = (Path(str(get_testdata_file(name))) for name in ("RG1_UNCR.dcm", "RG1_J2KR.dcm"))
    assert np.array_equal(shown(plain, 500), shown(packed, 500))


@pytest.mark.parametrize("interpretation", ["MONOCHROME1", "MONOCHROME2"])
def test_a_compression_that_only_gdcm_knows_shows_the_same(tmp_path: Path, interpretation: str) -> None:
    """Lossless JPEG (process 14), which pydicom does not decode here. GDCM turns MONOCHROME1 around by itself."""
    import SimpleITK

    plain = write_radiograph(tmp_path / "a.dcm", DEEP, PhotometricInterpretation=interpretation)
    writer = SimpleITK.ImageFileWriter()
    writer.SetUseCompression(True)
    writer.SetCompressor("JPEG")
    writer.SetFileName(str(tmp_path / "b.dcm"))
    writer.Execute(SimpleITK.GetImageFromArray(DEEP[None]))
    packed = pydicom.dcmread(tmp_path / "b.dcm")
    assert packed.file_meta.TransferSyntaxUID == "1.2.840.10008.1.2.4.70"
    packed.PhotometricInterpretation = interpretation
    for name in ("WindowCenter", "WindowWidth"):
        if name in packed:
            del packed[name]
    packed.save_as(tmp_path / "b.dcm")
    assert np.array_equal(shown(plain), shown(tmp_path / "b.dcm"))
    content = (tmp_path / "b.dcm").read_bytes()
    (tmp_path / "b.dcm").write_bytes(content[: len(content) - 900])
    refused(tmp_path / "b.dcm", "truncated|damaged")


def test_a_deflated_file_is_refused_before_it_is_unpacked() -> None:
    refused(Path(str(get_testdata_file("image_dfl.dcm"))), "a deflated DICOM file")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("MR_truncated.dcm", "damaged or unreadable DICOM"),
        ("meta_missing_tsyntax.dcm", "it names no transfer syntax"),
        ("rtplan.dcm", "no image in the DICOM file"),
        ("no_meta.dcm", "not an image that can be read"),
        ("examples_rgb_color.dcm", "photometric interpretation RGB is not grey"),
    ],
)
def test_real_files_that_are_none(name: str, reason: str) -> None:
    refused(Path(str(get_testdata_file(name))), reason)


@pytest.mark.parametrize("keep", [131, 132, 140, 300, 400, 600, 1000, 4000])
def test_a_dicom_file_cut_anywhere_is_refused(tmp_path: Path, keep: int) -> None:
    path = write_radiograph(tmp_path / "a.dcm", DEEP)
    path.write_bytes(path.read_bytes()[:keep])
    refused(path, "damaged|no image|not an image|truncated")


def test_more_packed_pixels_than_the_header_declares_are_not_unpacked(tmp_path: Path) -> None:
    """Run lengths of 2 bytes stand for 128: 4 MB that declare 64 x 64 would become a quarter of a gigabyte."""
    from pydicom.encaps import encapsulate
    from pydicom.uid import RLELossless

    path = write_radiograph(tmp_path / "bomb.dcm", np.arange(64 * 64, dtype=np.uint8).reshape(64, 64))
    dataset = pydicom.dcmread(path)
    head = np.array([1, 64, *[0] * 14], dtype="<u4").tobytes()
    dataset.PixelData = encapsulate([head + b"\x81\x00" * 2_000_000])
    dataset["PixelData"].is_undefined_length = True
    dataset.file_meta.TransferSyntaxUID = RLELossless
    dataset.save_as(path)
    tracemalloc.start()
    refused(path, "bytes of pixels, more than 64 x 64 in 1 frames need")
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


def test_a_file_far_larger_than_its_picture_is_refused_by_its_header(tmp_path: Path) -> None:
    path = write_radiograph(tmp_path / "fat.dcm", np.arange(64 * 64, dtype=np.uint8).reshape(64, 64))
    with path.open("ab") as file:
        file.truncate(40_000_000)
    refused(path, "40000000 bytes, more than 64 x 64 pixels in 1 frames need")
