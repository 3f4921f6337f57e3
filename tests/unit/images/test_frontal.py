"""The frontal picture: right side up, air dark, and a reason where there is nothing to see."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from data.dicom_files import write_radiograph
from overread.core.errors import BadInput
from overread.core.records import Study
from overread.images.files import StudyFiles
from overread.views.frontal import FrontalView

FULL = FrontalView(kind="frontal")


def study(path: Path | None) -> Study:
    return Study(
        study="s1",
        patient="p1",
        dataset="cxr",
        modality="xray",
        images={} if path is None else {"frontal": str(path)},
        report={},
        labels={},
        restricted=True,
    )


def rendered(path: Path, view: FrontalView = FULL) -> np.ndarray:
    ((picture, _),) = view.render(study(path), StudyFiles(study(path)))
    assert picture.mode == "L"
    return np.asarray(picture)


def scaling(path: Path) -> object:
    """What `views.json` says about the grey levels."""
    ((_, about),) = FULL.render(study(path), StudyFiles(study(path)))
    return about["scaling"]


def quarters(height: int = 40, width: int = 60) -> np.ndarray:
    """Grey levels 10 and 60 above, 120 and 240 below: every turn and inversion shows."""
    picture = np.zeros((height, width), dtype=np.uint8)
    picture[: height // 2, : width // 2], picture[: height // 2, width // 2 :] = 10, 60
    picture[height // 2 :, : width // 2], picture[height // 2 :, width // 2 :] = 120, 240
    return picture


def corners(pixels: np.ndarray) -> list[int]:
    """The middle of the quarters: above left, above right, below left, below right."""
    height, width = pixels.shape
    return [int(pixels[y, x]) for y in (height // 4, 3 * height // 4) for x in (width // 4, 3 * width // 4)]


# -- pictures --------------------------------------------------------------------------------------------------------


def test_a_grey_png_comes_back_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.fromarray(quarters()).save(path)
    assert np.array_equal(rendered(path), quarters())


def test_a_grey_picture_stored_in_colour_is_the_same_grey(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.fromarray(quarters()).convert("RGB").save(path)
    assert np.array_equal(rendered(path), quarters())


def test_the_exif_orientation_is_respected(tmp_path: Path) -> None:
    """Orientation 6: the stored picture must be turned by 90 degrees clockwise, so below left comes to above left."""
    path = tmp_path / "a.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(quarters()).save(path, quality=100, exif=exif)
    pixels = rendered(path)
    assert pixels.shape == (60, 40)
    assert corners(pixels) == pytest.approx([120, 10, 240, 60], abs=2)


def test_sixteen_bits_are_scaled_to_eight(tmp_path: Path) -> None:
    """1000 and 5000 are the extremes: 2000 is (2000 - 1000) / 4000 * 255 = 63.75, 3000 is 127.5 (to the even 128)."""
    values = np.zeros((40, 60), dtype=np.uint16)
    values[:20, :30], values[:20, 30:], values[20:, :30], values[20:, 30:] = 1000, 2000, 3000, 5000
    path = tmp_path / "a.png"
    Image.fromarray(values).save(path)
    assert corners(rendered(path)) == [0, 64, 128, 255]


def test_the_size_is_the_longer_edge_and_keeps_the_shape(tmp_path: Path) -> None:
    wide, tall = tmp_path / "wide.png", tmp_path / "tall.png"
    Image.fromarray(quarters(400, 600)).save(wide)
    Image.fromarray(quarters(600, 400)).save(tall)
    view = FrontalView(kind="frontal", size=90)
    assert rendered(wide, view).shape == (60, 90)
    assert rendered(tall, view).shape == (90, 60)
    assert corners(rendered(wide, view)) == pytest.approx([10, 60, 120, 240], abs=1)
    assert np.array_equal(rendered(wide, view), rendered(wide, view))


def test_making_it_smaller_averages_instead_of_skipping(tmp_path: Path) -> None:
    """Columns of 0 and 200 in turn: a filter that averages gives 100 everywhere, one that skips gives stripes."""
    path = tmp_path / "a.png"
    stripes = np.tile(np.array([0, 200], dtype=np.uint8), (400, 200))
    Image.fromarray(stripes).save(path)
    pixels = rendered(path, FrontalView(kind="frontal", size=40))
    assert np.abs(pixels[:, 3:-3].astype(int) - 100).max() <= 3


# -- DICOM -----------------------------------------------------------------------------------------------------------


def write_dicom(path: Path, values: np.ndarray, photometric: str = "MONOCHROME2", **more: Any) -> Path:
    return write_radiograph(path, values, PhotometricInterpretation=photometric, **more)


VALUES = np.repeat(np.repeat(np.array([[0, 1000], [2000, 4000]]), 20, axis=0), 30, axis=1)


def test_a_dicom_without_a_window_shows_its_whole_range(tmp_path: Path) -> None:
    """1000 of 0..4000 is 63.75, 2000 is 127.5."""
    assert corners(rendered(write_dicom(tmp_path / "a.dcm", VALUES))) == [0, 64, 128, 255]


def test_monochrome1_is_inverted(tmp_path: Path) -> None:
    """Inverted before it is rounded: 2000 of 4000 is 127.5 either way, and goes to the even 128."""
    assert corners(rendered(write_dicom(tmp_path / "a.dcm", VALUES, "MONOCHROME1"))) == [255, 191, 128, 0]


def test_the_window_is_applied_after_the_rescale(tmp_path: Path) -> None:
    """Rescaled: -1000, 1000, 3000, 7000. By PS3.3 C.11.2.1.2 (v - (1000.5 - 0.5)) / 4000 + 0.5: 0, 0.5, 1, 2."""
    path = write_dicom(
        tmp_path / "a.dcm", VALUES, RescaleSlope=2, RescaleIntercept=-1000, WindowCenter=1000.5, WindowWidth=4001
    )
    assert corners(rendered(path)) == [0, 128, 255, 255]


def test_a_window_that_does_not_reach_the_extremes_leaves_room(tmp_path: Path) -> None:
    """Exact window 2000 +- 4000: 0 is 0.25, 1000 is 0.375, 2000 is 0.5, 4000 is 0.75."""
    path = write_dicom(tmp_path / "a.dcm", VALUES, WindowCenter=2000, WindowWidth=8000, VOILUTFunction="LINEAR_EXACT")
    assert corners(rendered(path)) == [64, 96, 128, 191]


def test_the_first_of_several_windows_is_taken(tmp_path: Path) -> None:
    path = write_dicom(
        tmp_path / "a.dcm", VALUES, WindowCenter=[2000, 1], WindowWidth=[8000, 2], VOILUTFunction="LINEAR_EXACT"
    )
    assert corners(rendered(path)) == [64, 96, 128, 191]


def test_a_sigmoid_window(tmp_path: Path) -> None:
    """1 / (1 + exp(-4 (v - 2000) / 4000)): 0 is 0.1192, 1000 is 0.2689, 2000 is 0.5, 4000 is 0.8808."""
    path = write_dicom(tmp_path / "a.dcm", VALUES, WindowCenter=2000, WindowWidth=4000, VOILUTFunction="SIGMOID")
    assert corners(rendered(path)) == [30, 69, 128, 225]


def test_a_lookup_table_is_applied(tmp_path: Path) -> None:
    """A table of 5 entries from value 0 on, 8 bits: values 0..4 become 0, 10, 20, 200, 255."""
    from pydicom.dataset import Dataset
    from pydicom.sequence import Sequence

    table = Dataset()
    table.add_new("LUTDescriptor", "US", [5, 0, 8])
    table.add_new("LUTData", "US", [0, 10, 20, 200, 255])
    path = write_dicom(tmp_path / "a.dcm", VALUES // 1000, VOILUTSequence=Sequence([table]))
    assert corners(rendered(path)) == [0, 10, 20, 255]


def test_the_real_radiograph_has_dark_lungs() -> None:
    """The package's file is MONOCHROME1. In the picture the lung apex is darker than the spine beside it."""
    from overread_phantom.xray_base import base_file

    pixels = rendered(base_file(), FrontalView(kind="frontal", size=1024))
    assert pixels.shape == (1024, 964)
    assert pixels[230:260, 640:700].mean() < pixels[230:260, 450:490].mean() - 30


# -- what can't be shown ---------------------------------------------------------------------------------------------


def refused(path: Path, reason: str) -> None:
    with pytest.raises(BadInput, match=reason) as caught:
        list(FULL.render(study(path), StudyFiles(study(path))))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", ["jpg", "png"])
def test_a_truncated_picture_is_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    noise = np.random.default_rng(0).integers(0, 255, (200, 200), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    refused(path, "truncated")


def test_a_truncated_dicom_is_refused(tmp_path: Path) -> None:
    path = write_dicom(tmp_path / "a.dcm", VALUES)
    path.write_bytes(path.read_bytes()[:-500])
    refused(path, "damaged")


def test_a_missing_an_empty_and_a_text_file_are_refused(tmp_path: Path) -> None:
    refused(tmp_path / "none.jpg", "no such file")
    (tmp_path / "empty.jpg").write_bytes(b"")
    refused(tmp_path / "empty.jpg", "an empty file")
    (tmp_path / "text.jpg").write_bytes(b"this is no image, whatever its name says" * 20)
    refused(tmp_path / "text.jpg", "not an image")


@pytest.mark.parametrize("value", [0, 77, 255])
def test_a_picture_with_one_grey_level_is_refused(tmp_path: Path, value: int) -> None:
    path = tmp_path / "a.png"
    Image.fromarray(np.full((40, 40), value, dtype=np.uint8)).save(path)
    refused(path, "nothing to see")
    refused(write_dicom(tmp_path / "a.dcm", np.full((40, 40), value)), "nothing to see")


def test_a_window_that_shows_nothing_is_refused(tmp_path: Path) -> None:
    refused(write_dicom(tmp_path / "a.dcm", VALUES, WindowCenter=50000, WindowWidth=10), "nothing to see")


def test_a_picture_of_one_pixel_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.fromarray(np.array([[9]], dtype=np.uint8)).save(path)
    refused(path, "1 x 1 pixels are too few")


def test_a_decompression_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    """A PNG whose header says 60,000 x 60,000 pixels, in 100 bytes."""
    path = tmp_path / "a.png"

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    for edge in (11_000, 60_000):
        header = struct.pack(">IIBBBBB", edge, edge, 8, 0, 0, 0, 0)
        path.write_bytes(
            b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
        )
        refused(path, "too many")


def test_a_colour_dicom_and_a_film_strip_are_refused(tmp_path: Path) -> None:
    refused(write_dicom(tmp_path / "a.dcm", VALUES, "PALETTE COLOR"), "not grey")
    refused(write_dicom(tmp_path / "b.dcm", VALUES, NumberOfFrames=2), "2 frames")


def test_a_study_without_a_frontal_image_is_refused() -> None:
    with pytest.raises(BadInput, match="study s1: no frontal image"):
        list(FULL.render(study(None), StudyFiles(study(None))))
