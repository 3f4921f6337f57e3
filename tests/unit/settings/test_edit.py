"""The field `edit` of a setting: what it takes, how it is told, and that an edit of no strength is none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from overread.config import Setting
from overread.config.resolving import value_in_name
from overread.edits import EDITS
from overread.settings.edit import Edits

PAGE = Path(__file__).parents[3] / "docs/edits.md"


def setting(*edits: dict[str, object], **keys: object) -> Setting:
    return Setting(**{"images": "v", "edit": list(edits), **keys})


def test_one_edit_stands_for_a_list_of_one() -> None:
    assert Setting(images="v", edit={"kind": "mirror"}) == setting({"kind": "mirror"})


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"edit": [{"kind": "mirror"}, {"kind": "erase"}]}, "'erase' stands after 'mirror'"),
        ({"edit": {"kind": "blurr", "mm": 1}}, "blurr"),
        ({"edit": {"kind": "blur", "mm": -1}}, "greater than or equal to 0"),
        ({"edit": {"kind": "blur", "mm": 1, "pixels": 1}}, "give 'mm' or 'pixels', not both"),
        ({"edit": {"kind": "blur", "cm": 1}}, "cm"),
        ({"edit": {"kind": "occlude", "grid": 4, "cell": 16}}, "cell"),
        ({"edit": {"kind": "erase-control", "place": "mirrored"}}, "would show the lesion twice"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(keys: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(told)):
        Setting(images="v", **keys)


@pytest.mark.parametrize(("images", "source", "told"), [("none", "own", "no image"), ("v", "black", "is black")])
def test_an_edit_needs_a_picture(images: str, source: str, told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Setting(images=images, source=source, edit={"kind": "mirror"})


def test_an_edit_of_no_strength_is_the_plain_setting_and_no_picture_of_its_own() -> None:
    nothing = setting({"kind": "shift", "pixels": 0}, {"kind": "blur", "mm": 0})
    assert nothing[Edits].variant() is None
    assert nothing[Edits].effective(nothing) == setting()[Edits].effective(setting())
    half = setting({"kind": "shift", "pixels": 0}, {"kind": "blur", "mm": 0.5})
    assert half[Edits].variant() == setting({"kind": "blur", "mm": 0.5})[Edits].variant()


def test_the_order_is_part_of_the_setting() -> None:
    first, second = {"kind": "noise", "percent": 2}, {"kind": "blur", "mm": 1}
    there, back = setting(first, second)[Edits].variant(), setting(second, first)[Edits].variant()
    assert there is not None and back is not None and there[0] != back[0]
    assert there[1] == {"edit": [first, second]}


def test_every_edit_has_a_rendering_of_its_own_however_long_its_name() -> None:
    """Names are cut where they are long; what differs behind the cut still differs."""
    many = [{"kind": "mark", "letter": letter, "at": [0.123456789, 0.987654321]} for letter in "ABC"]
    names = {setting(one, many[0])[Edits].variant()[0] for one in many}  # type: ignore[index]
    assert len(names) == 3 and all(len(name) < 70 and re.fullmatch(r"[a-z0-9.-]+", name) for name in names)


def test_a_number_is_an_axis_and_what_is_left_is_the_plain_picture() -> None:
    blurred = setting({"kind": "blur", "mm": 0.5})
    (dose,) = [dose for dose in blurred[Edits].doses() if dose.value]
    assert (dose.name, dose.value, dose.what) == ("blur mm", 0.5, "blur, mm")
    (without,) = blurred[Edits].without(dose)
    assert without.nothing
    assert setting({"kind": "blur", "mm": 1}, {"kind": "mirror"})[Edits].doses() == ()


def test_words_say_what_is_done_in_order() -> None:
    both = setting({"kind": "erase"}, {"kind": "blur", "mm": 2})
    assert "with the lesion erased (filled from the other side), then blurred by 2 mm" in both[Edits].words()
    assert both[Edits].short() == "lesion erased, blurred by 2 mm"


def test_a_sweep_is_named_by_kind_and_strength() -> None:
    assert value_in_name({"kind": "blur", "mm": 0.5}) == "blur-mm-0.5"


@pytest.mark.parametrize("kind", sorted(EDITS.places))
def test_the_page_has_each_kind_with_its_keys(kind: str) -> None:
    (row,) = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{kind}` |")]
    section = EDITS[kind]
    assert section.gives in row
    inherited = kind == "erase-control" and "as `erase`" in row
    for key in set(section.model_fields) - {"kind"} - ({"label", "by", "feather"} if inherited else set()):
        assert f"`{key}`" in row, key
