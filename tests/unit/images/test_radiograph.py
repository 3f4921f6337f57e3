"""A radiograph's file as grey values: what was done to them is right, said, and does not depend on how it is stored."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from data.dicom_files import write_frames, write_radiograph
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


# -- colour, transparency, depth -------------------------------------------------------------------------------------


def save(path: Path, image: Image.Image, **more: Any) -> Path:
    image.save(path, **more)
    return path


def test_colour_becomes_the_luma_of_bt_601(tmp_path: Path) -> None:
    """0.299 R + 0.587 G + 0.114 B: 200, 100, 50 is 124.2; grey stays as it is."""
    pixels = np.zeros((20, 30, 3), dtype=np.uint8)
    pixels[:10], pixels[10:] = (200, 100, 50), (77, 77, 77)
    path = save(tmp_path / "a.png", Image.fromarray(pixels))
    assert set(np.unique(shown(path))) == {77, 124}
    assert said(path) == "PNG, RGB to grey by ITU-R BT.601, 8 bits"


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_what_is_transparent_lies_on_black(tmp_path: Path, mode: str) -> None:
    """Opaque 200 stays, half transparent 200 is 100, transparent 200 is 0: what it hides is not shown."""
    image = Image.new(mode, (30, 20), (200,) * (len(mode) - 1) + (255,))
    image.paste((200,) * (len(mode) - 1) + (128,), (10, 0, 20, 20))
    image.paste((200,) * (len(mode) - 1) + (0,), (20, 0, 30, 20))
    pixels = shown(save(tmp_path / "a.png", image))
    assert [int(pixels[5, x]) for x in (5, 15, 25)] == [200, 100, 0]


def test_a_palette_is_resolved_and_its_transparent_entry_is_black(tmp_path: Path) -> None:
    """The palette is turned around: entry 10 is grey 245. Entry 3 is transparent."""
    image = Image.new("P", (30, 20), 10)
    image.putpalette([255 - value for value in range(256) for _ in range(3)])
    assert set(np.unique(shown(save(tmp_path / "a.png", image)))) == {245}
    image.paste(3, (0, 0, 10, 20))
    pixels = shown(save(tmp_path / "b.png", image, transparency=3))
    assert (int(pixels[5, 5]), int(pixels[5, 25])) == (0, 245)


def test_one_bit_and_cmyk_are_grey_too(tmp_path: Path) -> None:
    bits = Image.fromarray(GREY > 128)
    assert set(np.unique(shown(save(tmp_path / "a.png", bits)))) == {0, 255}
    path = save(tmp_path / "a.jpg", Image.fromarray(GREY).convert("RGB").convert("CMYK"), quality=100)
    assert np.abs(shown(path).astype(int) - GREY).max() <= 3
    assert "CMYK to grey" in said(path)


def test_sixteen_bits_are_kept_until_the_picture_is_made(tmp_path: Path) -> None:
    """Columns of 1000 and 1002 in turn, in a range of 1000 to 5000: rounded to 8 bits first they would all be 0.

    Averaged they are 1001, a quarter of a thousandth of the range: 0.06 of a grey level. Columns of 1000 and 1032
    round to 0 and 2, and average to 1.02, which rounds to 1.
    """
    values = np.full((400, 600), 1000, dtype=np.uint16)
    values[:, 1::2] = 1032
    values[:, 500:] = 5000
    path = save(tmp_path / "a.png", Image.fromarray(values))
    radiograph = read_radiograph(path)
    assert radiograph.grey.dtype == np.float32
    assert len(np.unique(radiograph.grey)) == 3
    small = np.asarray(radiograph.picture(60))
    assert set(np.unique(small[:, 5:40])) == {1}
    assert said(path) == "PNG, 1000 black to 5000 white (its extremes)"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(arrays.arrays(np.uint16, (17, 19), elements=st.integers(0, 65535)))
def test_a_sixteen_bit_png_and_a_dicom_of_the_same_values_show_the_same(tmp_path: Path, values: np.ndarray) -> None:
    if values.min() == values.max():
        return
    png, dicom = save(tmp_path / "a.png", Image.fromarray(values)), write_radiograph(tmp_path / "a.dcm", values)
    one, two = shown(png), shown(dicom)
    assert np.array_equal(one, two)
    assert one.min() == 0 and one.max() == 255
    order = np.argsort(values, axis=None, kind="stable")
    assert (np.diff(one.ravel()[order].astype(int)) >= 0).all()  # brighter stays brighter


# -- turned, sized ---------------------------------------------------------------------------------------------------

TURNS = {1: "", 2: "x", 3: "xy", 4: "y", 5: "t", 6: "tx", 7: "txy", 8: "ty"}
"""What undoes each EXIF orientation: t transposes, x turns left and right around, y above and below."""


@pytest.mark.parametrize("kind", ["jpg", "png"])
@pytest.mark.parametrize("orientation", sorted(TURNS))
def test_every_exif_orientation_is_undone_and_said(tmp_path: Path, orientation: int, kind: str) -> None:
    upright = np.asarray(Image.fromarray(GREY).resize((60, 40)))
    stored = upright
    for turn in reversed(TURNS[orientation]):
        stored = {"t": stored.T, "x": stored[:, ::-1], "y": stored[::-1]}[turn]
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = save(tmp_path / f"a.{kind}", Image.fromarray(np.ascontiguousarray(stored)), exif=exif, quality=100)
    assert np.abs(shown(path).astype(int) - upright).max() <= 3
    assert (f"turned by EXIF orientation {orientation}" in said(path)) == (orientation != 1)


def test_pixels_that_are_not_square_are_made_square(tmp_path: Path) -> None:
    """0.2 mm high, 0.1 mm wide: a picture of 40 rows and 60 columns is 8 mm by 6 mm."""
    path = write_radiograph(tmp_path / "a.dcm", DEEP, ImagerPixelSpacing=[0.2, 0.1])
    assert shown(path).shape == (80, 60)
    assert shown(path, 40).shape == (40, 30)


@pytest.mark.parametrize("spacing", [[0.0, 0.0], [0.1, 0.1], [0.1, -0.1], [0.001, 5.0], None])
def test_a_spacing_that_is_equal_or_none_leaves_the_picture(tmp_path: Path, spacing: list[float] | None) -> None:
    more = {"PixelSpacing": spacing} if spacing is not None else {}
    assert shown(write_radiograph(tmp_path / "a.dcm", DEEP, **more)).shape == (40, 60)


@pytest.mark.parametrize("kind", ["jpg", "png", "dcm"])
def test_a_file_with_any_byte_changed_is_shown_or_refused_but_nothing_else(tmp_path: Path, kind: str) -> None:
    """200 files with a few random bytes: whatever the decoders raise becomes a BadFile with the path."""
    path = tmp_path / f"a.{kind}"
    if kind == "dcm":
        write_radiograph(path, DEEP, WindowCenter="3000", WindowWidth="2000")
    else:
        Image.fromarray(GREY).save(path)
    whole = path.read_bytes()
    chance = np.random.default_rng(5)
    seen = {"shown": 0, "refused": 0}
    for _ in range(200):
        content = bytearray(whole)
        for place in chance.integers(0, min(len(content), 1200), size=3):
            content[place] = chance.integers(0, 256)
        path.write_bytes(bytes(content))
        try:
            picture, why = read_radiograph(path).picture(32), None
        except BadFile as error:
            picture, why = None, str(error)
        if picture is not None:
            assert picture.mode == "L" and max(picture.size) == 32
        else:
            assert why is not None and str(path) in why and "\n" not in why
        seen["shown" if why is None else "refused"] += 1
    assert seen["refused"] > 0 and sum(seen.values()) == 200


# -- files that are none ---------------------------------------------------------------------------------------------


def test_a_nifti_file_is_no_radiograph(tmp_path: Path) -> None:
    import nibabel as nib

    for name in ("a.nii", "a.nii.gz"):
        nib.save(nib.Nifti1Image(DEEP.astype(np.int16)[:, :, None], np.eye(4)), tmp_path / name)
        refused(tmp_path / name, "a NIfTI file does not say how a radiograph is shown")


def test_other_picture_formats_are_refused(tmp_path: Path) -> None:
    for name in ("a.tif", "a.gif", "a.bmp", "a.webp"):
        Image.fromarray(GREY).save(tmp_path / name)
        refused(tmp_path / name, r"not an image that can be read \(JPEG, PNG or DICOM\)")


def test_a_moving_picture_is_refused(tmp_path: Path) -> None:
    frames = [Image.fromarray(GREY), Image.fromarray(GREY[::-1].copy())]
    frames[0].save(tmp_path / "a.png", save_all=True, append_images=frames[1:])
    refused(tmp_path / "a.png", "2 frames; a radiograph has one")


def test_a_pipe_a_folder_and_a_file_that_may_not_be_read_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    refused(tmp_path / "pipe.png", "not a regular file")
    (tmp_path / "folder").mkdir()
    refused(tmp_path / "folder", "0 DICOM files; a radiograph's folder holds one")
    for name in ("1.dcm", "2.dcm"):
        write_radiograph(tmp_path / "two" / name, DEEP)
    refused(tmp_path / "two", "2 DICOM files")
    path = save(tmp_path / "a.png", Image.fromarray(GREY))
    true_open = Path.open

    def closed(self: Path, *arguments: Any, **more: Any) -> Any:
        if self == path:
            raise PermissionError(13, "Permission denied")
        return true_open(self, *arguments, **more)

    monkeypatch.setattr(Path, "open", closed)
    refused(path, "not readable: Permission denied")


def test_a_folder_with_one_dicom_file_is_that_file(tmp_path: Path) -> None:
    path = write_radiograph(tmp_path / "folder" / "IM0001", DEEP)
    (tmp_path / "folder" / "notes.txt").write_text("x" * 200)
    assert np.array_equal(shown(tmp_path / "folder"), shown(path))


def test_frames_are_no_radiograph(tmp_path: Path) -> None:
    path = write_frames(tmp_path / "a.dcm", np.stack([DEEP, DEEP]), [(0, 0, 0), (0, 0, 1)])
    refused(path, "2 frames; a radiograph has one")


def test_headers_of_gigantic_images_ask_for_no_memory(tmp_path: Path) -> None:
    """A few hundred bytes each that say 60,000 x 60,000. Were they believed, each would ask for gigabytes."""
    import tracemalloc

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 16, 0, 0, 0, 0)
    png = tmp_path / "a.png"
    png.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(10**6)))
        + chunk(b"IEND", b"")
    )
    jpeg = tmp_path / "a.jpg"
    Image.fromarray(GREY).save(jpeg)
    content = bytearray(jpeg.read_bytes())
    place = content.index(b"\xff\xc0") + 5  # the frame header: height and width
    content[place : place + 4] = struct.pack(">HH", 60_000, 60_000)
    jpeg.write_bytes(bytes(content))
    dicom = write_radiograph(tmp_path / "a.dcm", DEEP, Rows=60_000, Columns=60_000)
    tracemalloc.start()
    refused(png, "too many")
    refused(jpeg, "too many")
    refused(dicom, "can't be an image")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000
