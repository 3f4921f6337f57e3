"""The page of a study in a browser: what a reader does to look at a volume and a radiograph is seen in the pixels."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from overread.core.records import read_pictures, read_questions, read_studies

pytestmark = pytest.mark.browser

SLOW = 60_000
"""Milliseconds, for a busy machine without graphics; how long a view takes otherwise is what bench_viewer measures."""


@pytest.fixture(scope="module")
def study(run: Path) -> Any:
    return read_studies(run / "mri" / "studies.parquet")[0]


@pytest.fixture(scope="module")
def radiograph(run: Path) -> Any:
    return read_studies(run / "xray" / "studies.parquet")[0]


def opened(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator("[data-viewer], [data-radiograph]")).to_have_attribute("data-state", "ready", timeout=SLOW)
    if page.locator("[data-viewer]").count():
        expect(page.locator("[data-viewer]")).to_have_attribute("data-masks", "ready", timeout=SLOW)


def seen(page: Page, number: int = 0) -> np.ndarray:
    """What a view shows, as RGB, after what was asked for is drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    canvas = page.locator(".stage canvas").nth(number)
    picture = np.asarray(Image.open(io.BytesIO(canvas.screenshot())).convert("RGB"), dtype=np.int16)
    return picture[4:-4, 4:-4]  # its edge may fall between two pixels of the page


def changed(one: np.ndarray, two: np.ndarray) -> float:
    """The share of pixels that differ by more than a grey level or two."""
    return float((np.abs(one - two).max(axis=2) > 8).mean())


def slice_of(page: Page, number: int = 0) -> int:
    return int(page.locator(".panel").nth(number).get_attribute("data-slice") or -1)


def wheel(page: Page, steps: int, number: int = 0) -> None:
    box = page.locator(".stage canvas").nth(number).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.45, box["y"] + box["height"] * 0.45)
    for _ in range(abs(steps)):
        page.mouse.wheel(0, 60 if steps > 0 else -60)


def drag(page: Page, across: int, down: int, button: Any = "left") -> None:
    box = page.locator(".stage canvas").first.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down(button=button)
    page.mouse.move(x + across / 2, y + down / 2)
    page.mouse.move(x + across, y + down)
    page.mouse.up(button=button)


def grey(picture: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """A square in the middle of a view, scaled to rows and columns of a volume's slice."""
    picture = np.pad(picture, ((4, 4), (4, 4), (0, 0)), mode="edge")  # what `seen` cut off
    height, width, _ = picture.shape
    rows, columns = shape
    scale = min(height / rows, width / columns)
    tall, wide = round(rows * scale), round(columns * scale)
    top, left = (height - tall) // 2, (width - wide) // 2
    middle = Image.fromarray(picture[top : top + tall, left : left + wide].astype(np.uint8)).convert("L")
    return np.asarray(middle.resize((columns, rows), Image.Resampling.BOX), dtype=float)


def alike(one: np.ndarray, two: np.ndarray) -> float:
    return float(np.corrcoef(one.ravel(), two.ravel())[0, 1])


def test_slices_are_scrolled_by_wheel_keys_and_slider_and_the_picture_follows(
    page: Page, site: str, study: Any
) -> None:
    opened(page, f"{site}/study/mri/{study.study}")
    first, before = seen(page), slice_of(page)
    wheel(page, 3)
    expect(page.locator(".panel")).to_have_attribute("data-slice", str(before - 3))
    second = seen(page)
    assert changed(first, second) > 0.01
    wheel(page, -3)
    expect(page.locator(".panel")).to_have_attribute("data-slice", str(before))
    assert changed(first, seen(page)) < 0.001, "back where it was, the picture is the same"
    page.locator(".stage canvas").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("PageUp")
    expect(page.locator(".panel")).to_have_attribute("data-slice", str(before + 11))
    third = seen(page)
    assert changed(first, third) > 0.01
    page.locator(".slider").focus()
    page.keyboard.press("Home")
    expect(page.locator(".panel")).to_have_attribute("data-slice", "1")
    assert "Slice 1 of 155" in page.locator(".where").inner_text()
    assert changed(third, seen(page)) > 0.05


def test_the_view_opens_at_the_models_slice_and_shows_what_the_model_saw_the_same_way_round(
    page: Page, site: str, run: Path, study: Any
) -> None:
    picture = next(one for one in read_pictures(run / "mri" / "images.parquet") if one.study == study.study)
    opened(page, f"{site}/study/mri/{study.study}")
    assert slice_of(page) == int(picture.position_mm) + 1, "voxels of 1 mm, the first at 0 mm"
    for name in (".crosshair", ".tumour-on"):
        page.locator(name).uncheck()
    page.locator(".preset").select_option(label="As the models saw it (flair-axial)")
    shown = grey(seen(page), (240, 240))
    model = np.asarray(Image.open(run / "mri" / picture.path), dtype=float)
    assert alike(shown, model) > 0.98
    assert max(alike(shown, model[:, ::-1]), alike(shown, model[::-1])) < 0.95


@pytest.mark.parametrize("plane", ["coronal", "sagittal"])
def test_other_planes_have_the_head_up_and_the_right_or_the_face_on_the_left(
    page: Page, site: str, study: Any, plane: str
) -> None:
    volume = nibabel.load(study.images["FLAIR"])
    data = np.asarray(nibabel.as_closest_canonical(volume).dataobj, dtype=float)  # to the right, front and top
    opened(page, f"{site}/study/mri/{study.study}")
    for name in (".crosshair", ".tumour-on"):
        page.locator(name).uncheck()
    page.locator(f"[name=plane][value={plane}]").check()
    number = slice_of(page) - 1
    cut = data[:, number, :] if plane == "coronal" else data[number]
    expected = cut.T[::-1, ::-1]  # head on top; the patient's right or face on the left
    shown = grey(seen(page), expected.shape)
    assert alike(shown, expected) > 0.97
    assert alike(shown, expected[::-1]) < 0.9
    if plane == "sagittal":
        assert alike(shown, expected[:, ::-1]) < 0.9


def test_the_box_of_a_scan_is_turned_upright_as_nibabel_turns_it(page: Page, site: str) -> None:
    """Also of oblique scans, and of arrays in any order: else left would be right on somebody's file."""
    draw = np.random.default_rng(5)
    cases = []
    for _ in range(40):
        angles = draw.uniform(-0.6, 0.6, 3)
        axes = nibabel.eulerangles.euler2mat(*angles)[:, draw.permutation(3)] * draw.choice([-1, 1], 3)
        affine = np.eye(4)
        affine[:3, :3], affine[:3, 3] = axes * draw.uniform(0.4, 6, 3), draw.uniform(-90, 90, 3)
        cases.append((affine, [int(size) for size in draw.integers(3, 40, 3)]))
    page.goto(f"{site}/studies")
    found = page.evaluate(
        """async (cases) => {
          const { upright, invert, multiply } = await import("/static/geometry.js");
          return cases.map(([affine, shape]) => {
            const box = upright(affine, shape);
            return { ...box, unit: multiply(invert(box.toWorld), box.toWorld) };
          });
        }""",
        [[affine.tolist(), shape] for affine, shape in cases],
    )
    for (affine, shape), box in zip(cases, found, strict=True):
        upright = nibabel.as_closest_canonical(nibabel.Nifti1Image(np.zeros(shape, np.uint8), affine))
        assert box["shape"] == list(upright.shape)
        corner, size = np.eye(4), np.diag([*upright.shape, 1.0])
        corner[:3, 3] = -0.5
        assert np.allclose(box["toWorld"], upright.affine @ corner @ size)
        assert np.allclose(box["unit"], np.eye(4), atol=1e-9)


def test_linked_views_move_together_and_others_do_not(
    page: Page, site: str, study: Any, shot: Callable[..., Path]
) -> None:
    opened(page, f"{site}/study/mri/{study.study}")
    page.locator("[name=layout][value='2']").check()
    second = page.locator(".panel").nth(1)
    expect(second).to_have_attribute("data-state", "ready", timeout=SLOW)
    names = [page.locator(".series").nth(number).input_value() for number in (0, 1)]
    assert names == ["FLAIR", "T1c"]
    before, picture = slice_of(page), seen(page, 1)
    assert slice_of(page, 1) == before
    wheel(page, -5)
    expect(second).to_have_attribute("data-slice", str(before + 5))
    assert changed(picture, seen(page, 1)) > 0.01
    shot(page, "study-linked")
    page.locator(".linked").uncheck()
    picture = seen(page, 1)
    wheel(page, -5)
    expect(page.locator(".panel").first).to_have_attribute("data-slice", str(before + 10))
    assert slice_of(page, 1) == before + 5 and changed(picture, seen(page, 1)) == 0
    page.locator(".linked").check()
    expect(second).to_have_attribute("data-slice", str(before + 10))
    context = page.evaluate_handle("document.querySelectorAll('.stage canvas')[1].getContext('webgl2')")
    page.locator("[name=layout][value='1']").check()
    expect(page.locator(".panel")).to_have_count(1)
    assert context.evaluate("(gl) => new Promise((done) => setTimeout(() => done(gl.isContextLost()), 200))")
    assert seen(page).max() > 100, "the view that stays is still there"


def test_the_window_is_set_by_dragging_by_numbers_and_by_presets(page: Page, site: str, study: Any) -> None:
    opened(page, f"{site}/study/mri/{study.study}")
    page.locator(".tumour-on").uncheck()
    low, high = page.locator(".low"), page.locator(".high")
    first, start = seen(page), float(high.input_value())
    drag(page, -150, 0, "right")
    narrow = float(high.input_value()) - float(low.input_value())
    assert narrow < start * 0.6, "dragged to the left, the window is narrower"
    expect(page.locator(".preset")).to_have_value("own")
    assert changed(first, seen(page)) > 0.05
    page.locator(".preset").select_option("auto")
    assert float(high.input_value()) == start and changed(first, seen(page)) < 0.001
    high.fill(str(start * 3))
    high.press("Enter")
    darker = seen(page)
    assert darker.mean() < first.mean() * 0.6
    page.locator(".inverted").check()
    middle = (slice(200, -200), slice(250, -250))  # beyond the volume nothing is inverted
    assert np.abs((255 - seen(page)[middle]) - darker[middle]).mean() < 6, "inverted: white for black"


def test_overlays_are_switched_and_their_labels_named(page: Page, site: str, study: Any) -> None:
    opened(page, f"{site}/study/mri/{study.study}")
    page.locator(".to-tumour").click()
    shown = seen(page)
    legend = page.locator(".legend label").all_inner_texts()
    mask = np.unique(np.asarray(nibabel.load(study.images["tumor_segmentation"]).dataobj).round())
    names = {1: "necrotic core (1)", 2: "oedema (2)", 4: "enhancing (4)"}
    assert [one.strip() for one in legend] == [names[int(label)] for label in mask if label]
    page.locator(".tumour-on").uncheck()
    plain = seen(page)
    assert changed(shown, plain) > 0.002
    coloured = np.abs(plain[..., 0] - plain[..., 2]) > 30
    page.locator(".tumour-on").check()
    page.locator(".filling").fill("100")
    full = seen(page)
    assert (np.abs(full[..., 0] - full[..., 2]) > 30).sum() > coloured.sum()
    for box in page.locator(".legend input").all():
        box.uncheck()
    assert changed(seen(page), plain) < 0.0005, "without its labels the mask is not seen"
    page.locator(".brain-on").check()
    expect(page.locator("[data-viewer]")).to_have_attribute("data-masks", "ready")
    page.wait_for_timeout(50)
    outlined = changed(seen(page), plain)
    assert 0.0005 < outlined < 0.05, "a line around the brain"


def test_zoom_and_moving_change_the_picture_and_a_double_click_brings_it_back(
    page: Page, site: str, study: Any
) -> None:
    opened(page, f"{site}/study/mri/{study.study}")
    page.locator(".crosshair").uncheck()
    first = seen(page)
    page.locator(".stage canvas").focus()
    for _ in range(3):
        page.keyboard.press("+")
    large = seen(page)
    assert (large > 60).all(axis=2).mean() > 1.3 * (first > 60).all(axis=2).mean()
    page.locator("[name=drag][value=pan]").check()
    drag(page, 60, 40)
    moved = seen(page)
    assert changed(large[:-80, :-80], moved[:-80, :-80]) > 0.05
    assert changed(large[40:-160, 60:-160], moved[80:-120, 120:-100]) < 0.2, "the picture went with the pointer"
    page.locator(".stage canvas").dblclick()
    assert changed(first, seen(page)) < 0.001


def test_a_series_that_cannot_be_read_says_why_in_its_place(
    page: Page, site: str, study: Any, console: list[str]
) -> None:
    page.route(
        "**/files/facts/series/**/T1", lambda route: route.fulfill(status=422, json={"problem": "T1.nii.gz: truncated"})
    )
    opened(page, f"{site}/study/mri/{study.study}")
    page.locator(".series").select_option("T1")
    expect(page.locator(".panel")).to_have_attribute("data-state", "failed", timeout=SLOW)
    expect(page.locator(".panel .status")).to_have_text("T1 can't be shown. T1.nii.gz: truncated")
    page.locator(".series").select_option("FLAIR")
    expect(page.locator(".panel")).to_have_attribute("data-state", "ready", timeout=SLOW)
    console[:] = [line for line in console if "422" not in line]


def test_a_radiograph_is_windowed_inverted_and_enlarged(
    page: Page, site: str, radiograph: Any, shot: Callable[..., Path]
) -> None:
    opened(page, f"{site}/study/xray/{radiograph.study}")
    first = seen(page)
    file = np.asarray(Image.open(radiograph.images["frontal"]).convert("L"))
    assert alike(grey(first, file.shape), file.astype(float)) > 0.99
    page.locator(".inverted").check()
    inverted = seen(page)
    inside = (slice(None), slice(first.shape[1] // 3, first.shape[1] * 2 // 3))
    assert np.abs(255 - first[inside] - inverted[inside]).max() <= 2
    shot(page, "radiograph-inverted")
    page.locator(".inverted").uncheck()
    page.locator(".low").fill("100")
    page.locator(".low").press("Enter")
    page.locator(".high").fill("150")
    page.locator(".high").press("Enter")
    hard = seen(page)
    assert ((hard[inside] < 3) | (hard[inside] > 252)).mean() > (
        (first[inside] < 3) | (first[inside] > 252)
    ).mean() + 0.3
    page.get_by_role("button", name="Reset").click()
    assert changed(first, seen(page)) == 0
    drag(page, 100, 0)
    assert float(page.locator(".high").input_value()) > 255 and changed(first, seen(page)) > 0.05
    page.get_by_role("button", name="Reset").click()
    page.get_by_role("button", name="Larger").click()
    assert changed(first, seen(page)) > 0.2
    page.locator(".stage canvas").focus()
    page.keyboard.press("0")
    assert changed(first, seen(page)) == 0
    assert "8 bits" in page.locator(".about").inner_text()


def test_evidence_is_marked_when_a_question_asks_for_it(page: Page, site: str, run: Path, study: Any) -> None:
    question = next(q for q in read_questions(run / "mri" / "questions.jsonl") if q.study == study.study and q.evidence)
    page.goto(f"{site}/study/mri/{study.study}")
    assert page.locator("mark").count() == 0
    page.locator(f"#q-{question.question}").get_by_role("link", name="Show its evidence").click()
    expect(page.locator("mark").first).to_be_visible()
    shown = " ".join(" ".join(page.locator("mark").all_inner_texts()).split())
    assert shown == " ".join(question.evidence.split())


def test_a_cell_of_the_matrix_leads_by_keyboard_to_its_trial(page: Page, site: str, study: Any) -> None:
    page.goto(f"{site}/study/mri/{study.study}")
    cell = page.locator("table.matrix td a").first
    cell.focus()
    assert page.locator(".matrix-tell").inner_text().startswith("Never looks, reshuffled: ")
    address = cell.get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site}{address}")
    assert page.locator("#all-models").count() == 1


def test_every_part_of_the_viewer_is_reached_by_keyboard(page: Page, site: str, study: Any) -> None:
    opened(page, f"{site}/study/mri/{study.study}")
    page.locator("h1").click()
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "document.activeElement.className || document.activeElement.name || document.activeElement.tagName"
            )
        )
    wanted = {"plane", "layout", "linked", "drag", "crosshair", "inverted", "tumour-on", "filling", "brain-on"}
    wanted |= {"series", "preset", "low", "high", "CANVAS", "slider"}
    assert not wanted - {name.split(" ")[0] for name in reached}


@pytest.mark.parametrize("dataset", ["mri", "xray"])
def test_the_page_is_accessible_and_fits_wide_and_narrow(
    page: Page,
    site: str,
    study: Any,
    radiograph: Any,
    dataset: str,
    axe: Callable[..., None],
    shots: Callable[..., None],
) -> None:
    opened(page, f"{site}/study/{dataset}/{(study if dataset == 'mri' else radiograph).study}")
    axe(page)
    shots(page, f"study-{dataset}")
