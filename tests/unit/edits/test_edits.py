"""What every edit must hold: the same bytes where nothing is done, the same picture however a volume is stored."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from PIL import Image
from pydantic import TypeAdapter, ValidationError

from data import small_brain
from overread.config import View
from overread.core.errors import BadInput
from overread.core.records import Study
from overread.edits import EDITS, Edit
from overread.edits.base import NotEdited, Scene
from overread.images import render_study
from overread.images.edited import chain
from overread.images.files import StudyFiles

ADAPTER = TypeAdapter(tuple[Edit, ...])

SAMPLES = {
    "erase": {"by": "around"}, "erase-control": {"by": "around", "place": "random"}, "only": {}, "move": {},
    "mirror": {}, "shift": {"pixels": 3, "down": -2}, "rotate": {"degrees": 20}, "crop": {"percent": 20},
    "blur": {"mm": 1.5}, "noise": {"percent": 10}, "downsample": {"factor": 3}, "bias-field": {"strength": 0.5},
    "ghosting": {"intensity": 0.5}, "window": {"wider": 30}, "contrast": {"gamma": 2}, "jpeg": {"quality": 20},
    "mark": {"letter": "F", "at": [0.3, 0.7], "size": 0.3}, "occlude": {"cell": 6, "grey": 0.5},
}  # fmt: skip
NOTHING = {
    "shift": {"pixels": 0}, "rotate": {"degrees": 0}, "crop": {"percent": 0}, "blur": {"mm": 0},
    "noise": {"percent": 0},
    "downsample": {"factor": 1}, "bias-field": {"strength": 0}, "ghosting": {"intensity": 0}, "window": {"wider": 0},
    "contrast": {"gamma": 1}, "mark": {"contrast": 0},
}  # fmt: skip
RANDOM = {"noise", "bias-field", "erase-control"}
"""They draw by the array's own axes: another way to store a volume draws other numbers."""


def edits(*written: dict[str, object]) -> tuple[Edit, ...]:
    return ADAPTER.validate_python(written)


def one(kind: str, **keys: object) -> tuple[Edit, ...]:
    return edits({"kind": kind, **(keys or SAMPLES[kind])})


def lesion() -> np.ndarray:
    """On the patient's right, in the middle of the brain: its mirror place is healthy."""
    labels = np.zeros(small_brain.SHAPE, dtype=np.int16)
    labels[8:16, 12:22, 10:17] = 2
    labels[10:14, 14:19, 12:15] = 4
    return labels


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return small_brain.study(tmp_path, volumes={"tumor_segmentation": lesion()})


def rendered(study: Study, folder: Path, changes: tuple[Edit, ...], **view: object) -> list[np.ndarray]:
    section = {"kind": "slice", "series": "FLAIR", **view}
    views = TypeAdapter(dict[str, View]).validate_python({"v": section})
    pictures = render_study(study, views, folder / "images" / study.study, edits={"v": changes})
    return [np.asarray(Image.open(folder / picture.path)) for picture in pictures]


def test_each_kind_has_a_sample_here() -> None:
    assert set(SAMPLES) == set(EDITS)


@pytest.mark.parametrize("kind", SAMPLES)
def test_an_edit_changes_the_picture_and_leaves_its_size(study: Study, tmp_path: Path, kind: str) -> None:
    (plain,) = rendered(study, tmp_path, ())
    (changed,) = rendered(study, tmp_path, one(kind))
    assert changed.shape == plain.shape
    assert (changed != plain).any()


@pytest.mark.parametrize("kind", NOTHING)
def test_a_strength_of_nothing_leaves_every_byte(study: Study, tmp_path: Path, kind: str) -> None:
    (made,) = one(kind, **NOTHING[kind])
    assert made.nothing
    (plain,) = rendered(study, tmp_path, ())
    (same,) = rendered(study, tmp_path, (made,))
    if kind not in ("rotate", "ghosting", "bias-field", "contrast", "window", "noise"):
        assert (same == plain).all()
    assert np.abs(same.astype(int) - plain).max() <= 1  # a setting leaves it out altogether: see the settings' tests


def test_mirrored_twice_every_byte_is_back(study: Study, tmp_path: Path) -> None:
    for view in ({}, {"plane": "sagittal"}, {"kind": "volume", "slices": 5}):
        plain = rendered(study, tmp_path, (), **view)
        once = rendered(study, tmp_path, one("mirror"), **view)
        twice = rendered(study, tmp_path, (*one("mirror"), *one("mirror")), **view)
        assert all((a == b).all() for a, b in zip(plain, twice, strict=True))
        assert any((a != b).any() for a, b in zip(plain, once, strict=True))
    (plain,), (once,) = (rendered(study, tmp_path, change) for change in ((), one("mirror")))
    assert (once == plain[:, ::-1]).all()


def scene_of(values: np.ndarray, mask: np.ndarray, *, down: int, right: int) -> Scene:
    world = (0, 1, 2) if values.ndim == 3 else (2, 0)
    return Scene(
        shape=values.shape, spacing=(1.0, 1.5, 2.0)[: values.ndim], unit="mm", world=world,
        reversed=(False,) * values.ndim, down=down, right=right, flip_down=True, flip_right=False, low=0.0, high=900.0,
        plain=lambda place: values[place], find=lambda label: mask,
        organ=small_brain.brain() if values.ndim == 3 else None, key=("s", "FLAIR"),
    )  # fmt: skip


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_part_is_what_the_whole_shows_there(kind: str) -> None:
    """Whatever part is asked for, and for any two axes of the picture: no edge of a part is seen."""
    values = small_brain.series()["FLAIR"].astype(np.float64)
    for down, right in ((1, 0), (2, 0), (2, 1)):
        mask = np.zeros(values.shape, dtype=np.bool_)
        mask[9:14, 14:20, 11:16] = True
        scene = scene_of(values, mask, down=down, right=right)
        top = chain(scene.plain, one(kind), scene)
        whole = top(scene.everything)
        rng = np.random.default_rng(down + 3 * right)
        for _ in range(6):
            place = tuple(slice(a, b) for a, b in (sorted(rng.choice(n + 1, 2, replace=False)) for n in values.shape))
            assert np.allclose(top(place), whole[place], atol=1e-9), place


@pytest.mark.parametrize("kind", sorted(set(SAMPLES) - RANDOM))
def test_the_picture_is_the_same_however_the_volume_is_stored(tmp_path: Path, kind: str) -> None:
    """Axes in any order and direction, as other scanners and tools write them."""
    affine = np.array([[-1.0, 0, 0, 0], [0, -1, 0, 35], [0, 0, 1, 0], [0, 0, 0, 1]])
    volumes = {
        "FLAIR": small_brain.series()["FLAIR"],
        "tumor_segmentation": lesion(),
        "brain_segmentation": small_brain.brain().astype(np.int16),
    }
    first = None
    for number, (order, flips) in enumerate(
        itertools.product(itertools.permutations(range(3)), itertools.product((1, -1), repeat=3))
    ):
        if number % 5:
            continue  # ten of the 48 ways, each axis and direction among them
        turn = np.array(list(zip(order, flips, strict=True)))
        paths = {}
        for name, data in volumes.items():
            image = nib.Nifti1Image(data, affine).as_reoriented(turn)
            path = tmp_path / str(number) / f"{name}.nii.gz"
            path.parent.mkdir(exist_ok=True)
            nib.save(image, path)
            paths[name] = str(path)
        study = Study(
            study="s", patient="p", dataset="d", modality="mri", images=paths, report={}, labels={}, restricted=False
        )
        (picture,) = rendered(study, tmp_path / str(number), one(kind))
        first = picture if first is None else first
        assert np.abs(picture.astype(int) - first).max() <= 1, (order, flips)


def test_the_order_of_edits_counts(study: Study, tmp_path: Path) -> None:
    (marked_last,) = rendered(study, tmp_path, (*one("blur"), *one("mark")))
    (blurred_last,) = rendered(study, tmp_path, (*one("mark"), *one("blur")))
    assert (marked_last != blurred_last).any()


@pytest.mark.parametrize("kind", ["noise", "bias-field", "erase-control"])
def test_what_is_random_follows_its_seed_and_the_study(tmp_path: Path, kind: str) -> None:
    def drawn(name: str, seed: int) -> np.ndarray:
        made = small_brain.study(tmp_path, name, {"tumor_segmentation": lesion()})
        (picture,) = rendered(made, tmp_path, one(kind, **SAMPLES[kind], seed=seed))
        return picture

    assert (drawn("A", 1) == drawn("A", 1)).all()
    assert (drawn("A", 1) != drawn("A", 2)).any()
    assert (drawn("A", 1) != drawn("B", 1)).any()


def test_the_picture_s_index_says_which_edits_were_made(study: Study, tmp_path: Path) -> None:
    views = TypeAdapter(dict[str, View]).validate_python({"v": {"kind": "slice", "series": "FLAIR"}})
    (picture,) = render_study(study, views, tmp_path / "images" / "A", edits={"v": one("blur")})
    assert json.loads(picture.edit or "") == [{"kind": "blur", "mm": 1.5, "pixels": 0.0}]
    (plain,) = render_study(study, views, tmp_path / "images" / "A")
    assert plain.edit is None
    assert plain.pixels != picture.pixels
    assert plain.scaling == picture.scaling, "the window is that of the unedited picture"


def test_a_view_that_makes_no_edits_is_refused_and_not_shown_unedited(study: Study, tmp_path: Path) -> None:
    files = StudyFiles(study)
    with pytest.raises(BadInput, match="makes no edits"), files.editing(one("mirror")):
        files.volume("FLAIR")


REASONS = {
    "no mask": ({"tumor_segmentation": None}, {"kind": "erase"}, "names no mask"),
    "an empty mask": ({"tumor_segmentation": "empty"}, {"kind": "erase"}, "holds no lesion"),
    "a label that is not there": ({}, {"kind": "erase", "label": "1"}, "no label 1"),
    "over the midline": ({"tumor_segmentation": "middle"}, {"kind": "erase"}, "reaches its own mirror place"),
    "over the edge": ({}, {"kind": "mark", "at": [0.01, 0.5]}, "over the edge"),
    "no other place": ({"tumor_segmentation": "vast"}, {"kind": "erase-control", "by": "around"}, "no other place"),
}


@pytest.mark.parametrize("reason", REASONS)
def test_an_edit_that_cannot_be_made_is_a_reason_for_its_view_alone(tmp_path: Path, reason: str) -> None:
    changes, written, words = REASONS[reason]
    labels = {"empty": np.zeros(small_brain.SHAPE, np.int16), "middle": lesion(), "vast": lesion()}
    labels["middle"][14:27, 12:22, 10:17] = 2
    labels["vast"] = np.where(small_brain.brain(), 2, 0).astype(np.int16)
    labels["vast"][:, :, :8] = labels["vast"][24:] = 0
    made = small_brain.study(tmp_path, volumes={"tumor_segmentation": lesion()})
    mask = changes.get("tumor_segmentation", "usual")
    if mask is None:
        images = {name: path for name, path in made.images.items() if name != "tumor_segmentation"}
        made = made.model_copy(update={"images": images})
    elif mask != "usual":
        made = small_brain.study(tmp_path, volumes={"tumor_segmentation": labels[mask]})
    section = {"kind": "slice", "series": "FLAIR", "slice": "middle"}
    views = TypeAdapter(dict[str, View]).validate_python({"v": section, "w": section})
    left_out: list[dict[str, str]] = []
    pictures = render_study(made, views, tmp_path / "images" / "A", left_out, {"v": edits(written)})
    assert [picture.view for picture in pictures] == ["w"]
    (found,) = left_out
    assert found["view"] == "v" and found["series"] == ""
    assert found["reason"].startswith(f"{written['kind']}: ") and words in found["reason"]


@pytest.mark.parametrize(
    "written",
    [
        {"kind": "blurr"}, {"kind": "blur", "mm": -1}, {"kind": "blur", "mm": 1, "pixels": 2},
        {"kind": "jpeg", "quality": 0}, {"kind": "occlude"}, {"kind": "occlude", "cell": 16},
        {"kind": "occlude", "box": [0.5, 0, 0.4, 1]},
        {"kind": "mark", "letter": "ab"}, {"kind": "erase-control", "by": "mirror", "place": "mirrored"},
        {"kind": "mirror", "strength": 1},
    ],
)  # fmt: skip
def test_a_wrong_edit_is_an_error(written: dict[str, object]) -> None:
    with pytest.raises((ValidationError, BadInput)):
        edits(written)


def test_a_grid_s_cells_cover_the_picture_once() -> None:
    values = np.zeros((37, 53))
    scene = scene_of(values, values > 0, down=0, right=1)
    covered = sum(
        edits({"kind": "occlude", "grid": 5, "cell": cell})[0].covered(scene.height, scene.width).astype(int)
        for cell in range(25)
    )
    assert (covered == 1).all()


def test_millimetres_of_a_file_that_tells_no_size_are_refused() -> None:
    values = np.random.default_rng(0).random((30, 40))
    scene = scene_of(values, values > 2, down=0, right=1)
    scene = Scene(**{**{name: getattr(scene, name) for name in scene.__dataclass_fields__}, "unit": "pixels"})
    with pytest.raises(NotEdited, match="how large a pixel is"):
        chain(scene.plain, one("blur"), scene)(scene.everything)


def test_a_label_may_be_named(study: Study, tmp_path: Path) -> None:
    (numbered,) = rendered(study, tmp_path, one("erase", label="4", by="around"))
    (named,) = rendered(study, tmp_path, one("erase", label="enhancing", by="around"))
    (plain,) = rendered(study, tmp_path, ())
    assert (named == numbered).all() and (named != plain).any()
    files = StudyFiles(study)
    with pytest.raises(NotEdited, match="no label 'ring': they are numbers, or core, oedema, enhancing"):
        files._lesion(files.volume("FLAIR"), "FLAIR", "ring")


def test_the_cells_of_a_grid_hide_all_of_the_lesion_between_them(study: Study, tmp_path: Path) -> None:
    """In the record of each picture: how much of the lesion that it shows lies under the box."""
    views = TypeAdapter(dict[str, View]).validate_python(
        {f"v{cell}": {"kind": "slice", "series": "FLAIR"} for cell in range(9)}
        | {"plain": {"kind": "slice", "series": "FLAIR"}}
    )
    changes = {f"v{cell}": one("occlude", grid=3, cell=cell) for cell in range(9)}
    pictures = render_study(study, views, tmp_path / "images" / study.study, edits=changes)
    hides = {picture.view: picture.hides for picture in pictures}
    assert hides.pop("plain") is None
    assert sum(hides.values()) == pytest.approx(1) and max(hides.values()) > 0.3
    healthy = small_brain.study(tmp_path / "healthy")
    pictures = render_study(healthy, {"v": views["plain"].model_copy(update={"slice": "middle"})}, tmp_path / "h" / "s",
                            edits={"v": one("occlude", grid=3, cell=4)})  # fmt: skip
    assert [picture.hides for picture in pictures] == [None]


def test_the_record_names_the_mask_that_was_taken(study: Study, tmp_path: Path) -> None:
    def masks(*changes: dict[str, object]) -> str | None:
        views = TypeAdapter(dict[str, View]).validate_python({"v": {"kind": "slice", "series": "FLAIR"}})
        (picture,) = render_study(study, views, tmp_path / "images" / study.study, edits={"v": edits(*changes)})
        return picture.edit_mask

    whole, part = masks({"kind": "erase", "by": "around"}), masks({"kind": "erase", "by": "around", "label": "4"})
    assert whole is not None and part is not None and len({whole, part}) == 2
    assert masks({"kind": "only"}) == whole == masks({"kind": "move"})
    assert masks({"kind": "mirror"}) is None and masks() is None
