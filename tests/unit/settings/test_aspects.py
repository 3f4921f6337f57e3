"""What holds of every aspect of a setting that is registered."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError, field_validator

from overread.config import Setting
from overread.core.errors import BadInput
from overread.reporting.presented_conditions import BY_CHANGE, MANNERS, condition_of
from overread.settings.base import Aspect
from overread.settings.registry import register
from overread.settings.setting import plain_value, read_settings

BASE = {"images": "frontal", "report": "full"}
"""Beside these every aspect can have any value."""
NAMES = ("none", "full", "neutral", "substitute", "frontal", "montage")

EDITS = (
    {"kind": "blur", "mm": 2}, {"kind": "blur", "mm": 0}, {"kind": "blur", "pixels": 2.5}, {"kind": "erase"},
    {"kind": "mark", "size": 0.2}, {"kind": "mirror"}, {"kind": "shift", "pixels": -1}, {"kind": "occlude", "cell": 3},
)  # fmt: skip

every_aspect = pytest.mark.parametrize("kind", Setting.kinds, ids=lambda kind: kind.name)
sampled = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])


def values_of(kind: type[Aspect]) -> st.SearchStrategy[dict[str, Any]]:
    """Values that the schema of an aspect allows."""
    return st.fixed_dictionaries({name: _value(one) for name, one in kind.model_json_schema()["properties"].items()})


def _value(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:  # an edit, or a list of edits
        return st.lists(st.sampled_from(EDITS), max_size=2)
    if schema["type"] == "boolean":
        return st.booleans()
    if schema["type"] == "integer":
        return st.integers(schema.get("minimum", -9), schema.get("maximum", 99))
    if schema["type"] == "number":
        return st.floats(schema.get("minimum", -9), schema.get("maximum", 99), allow_nan=False)
    if "[a-z0-9]+([.-]" in schema.get("pattern", ""):
        return st.sampled_from(NAMES)
    return st.from_regex(schema["pattern"], fullmatch=True) if "pattern" in schema else st.text(max_size=9)


def setting_of(values: dict[str, Any]) -> Setting:
    try:
        return Setting.model_validate({**BASE, **values})
    except ValidationError:
        assume(False)
        raise


@every_aspect
def test_each_has_a_name_a_title_a_place_and_plain_values_in_the_schema(kind: type[Aspect]) -> None:
    schema = Setting.model_json_schema()["properties"]
    assert kind.name and kind.title and kind.rank > 0
    assert kind.qualifies in ("", *(one.name for one in Setting.kinds))
    for name, field in kind.model_fields.items():
        assert field.default == plain_value(name)
        assert schema[name].get("default") == TypeAdapter(field.annotation).dump_python(field.default, mode="json")
        assert isinstance(Setting()[kind], kind)


def test_no_two_share_a_name_a_place_or_a_field() -> None:
    for what in ([kind.name for kind in Setting.kinds], [kind.rank for kind in Setting.kinds]):
        assert len(set(what)) == len(what)
    assert sum(len(kind.model_fields) for kind in Setting.kinds) == len(Setting.model_fields)


def test_a_setting_of_which_nothing_is_said_is_plain() -> None:
    assert Setting().changed() == {} and Setting().is_plain() and Setting().short() == []
    assert all(dose.value == plain_value(dose.field) for dose in Setting().doses())


@every_aspect
@given(data=st.data())
@sampled
def test_any_value_goes_to_json_and_back_and_has_words(kind: type[Aspect], data: st.DataObject) -> None:
    setting = setting_of(data.draw(values_of(kind)))
    assert Setting.model_validate_json(setting.model_dump_json()) == setting
    assert read_settings({"one": setting.model_dump(mode="json")}) == {"one": setting}
    words = setting.words_of(kind)
    assert words and words == words.strip() and not words.endswith(".")
    assert (
        all(setting.short())
        and setting.sort_key() != ()
        and (setting.sort_key() < Setting().sort_key()) in (True, False)
    )


@every_aspect
@given(data=st.data())
@sampled
def test_what_differs_is_told_apart_and_the_difference_leads_from_one_to_the_other(
    kind: type[Aspect], data: st.DataObject
) -> None:
    one, two = (setting_of(data.draw(values_of(kind))) for _ in range(2))
    difference = one.difference(two)
    assert set(difference) <= set(kind.model_fields)
    assert (one.differing(two) == (kind,)) == bool(difference)
    assert (one.describe() != two.describe()) == bool(difference)
    # What does nothing in the one may do something once the rest is changed: it begins with what it does.
    as_it_acts = one.model_copy(update=one.effective())
    assert as_it_acts.model_copy(update={name: pair[1] for name, pair in difference.items()}).difference(two) == {}


@every_aspect
@given(data=st.data())
@sampled
def test_only_what_the_papers_asked_has_a_place_in_their_layout(kind: type[Aspect], data: st.DataObject) -> None:
    setting = setting_of(data.draw(values_of(kind)))
    changed = {name: value for name, value in setting.changed().items() if name not in ("images", *MANNERS)}
    condition = condition_of(setting, {})
    assert (condition is not None) <= any(changes == changed for changes, _, _ in BY_CHANGE)
    if condition in ("own", "text"):
        assert changed == {}


@every_aspect
@given(data=st.data())
@sampled
def test_a_dose_is_a_number_and_can_be_set_back(kind: type[Aspect], data: st.DataObject) -> None:
    setting = setting_of(data.draw(values_of(kind)))
    for dose in setting.doses():
        rest = setting.without(dose)
        assert dose.field in kind.model_fields and isinstance(dose.value, int | float) and dose.what
        assert rest.without(dose) == rest
        assert {name for name, value in setting if getattr(rest, name) != value} <= {dose.field}


def test_two_aspects_of_one_field_are_refused_by_name_and_validators_that_nothing_would_ask() -> None:
    with pytest.raises(BadInput, match="both have the field 'order'"):

        class Again(Aspect):
            name = "again"
            title = "again"
            rank = 1
            order: str = ""

    with pytest.raises(BadInput, match="put its checks into `conflict`"):

        class Unheard(Aspect):
            name = "unheard"
            title = "unheard"
            rank = 1
            loudness: int = 0

            @field_validator("loudness")
            @classmethod
            def _never_asked(cls, value: int) -> int:
                raise ValueError("too loud")

    assert not {"again", "unheard"} & {kind.name for kind in Setting.kinds}
    register(next(iter(Setting.kinds)))  # the same one once more is no second one
