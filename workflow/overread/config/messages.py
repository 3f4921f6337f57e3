"""What is wrong with a config, in words: pydantic's errors as one line each, with key, value and what is allowed."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, Discriminator, Tag, ValidationError
from pydantic.fields import FieldInfo

from overread.core.errors import unknown

T = TypeVar("T")

Problem = tuple[str, str]
"""Where (`evaluations[0].models`) and what."""


def validated(validate: Callable[[], T], kind: type[BaseModel], problems: list[Problem]) -> T | None:
    """What `validate` returns, or None with the problems added to `problems`, each once."""
    try:
        return validate()
    except ValidationError as error:
        found: list[Problem] = []
        for each in error.errors(include_url=False):
            found.extend(_problems_of(each, kind))
        problems.extend(dict.fromkeys(found))
        return None


def key_of(location: tuple[int | str, ...], kind: type[BaseModel]) -> str:
    """`evaluations[0].models` from pydantic's location in `kind`.

    Pydantic puts into a location the tag of each discriminated union that it goes through. The types say where those
    stand, so a key that happens to be called like a tag is kept.
    """
    text = ""
    current: Any = kind
    for part in location:
        current, members = _opened(current)
        if members is not None:
            if part in members:
                current = members[str(part)]
                continue
            current = None
        if part == "[key]":
            continue
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
        current = _inside(current, part)
    return text


def _opened(annotation: Any) -> tuple[Any, dict[str, Any] | None]:
    """The type without `Annotated` and `| None`; and its members by tag if it is a discriminated union."""
    by: Discriminator | str | None = None
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation, *metadata = get_args(annotation)
            for each in metadata:
                if isinstance(each, Discriminator):
                    by = each
                elif isinstance(each, FieldInfo) and each.discriminator is not None:
                    by = each.discriminator
        elif origin in (Union, types.UnionType):
            members = [member for member in get_args(annotation) if member is not type(None)]
            if by is not None:
                return annotation, {tag: member for member in members for tag in _tags(member, by)}
            if len(members) != 1:
                return None, None
            annotation = members[0]
        else:
            return annotation, None


def _tags(member: Any, by: Discriminator | str) -> tuple[str, ...]:
    if isinstance(by, str):
        return tuple(get_args(member.model_fields[by].annotation))
    return tuple(each.tag for each in get_args(member)[1:] if isinstance(each, Tag))


def _inside(annotation: Any, part: int | str) -> Any:
    """The type of a model's field, a mapping's values or a sequence's items; None where it is not known."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        field = annotation.model_fields.get(str(part))
        if field is None:
            return None
        return Annotated[field.annotation, field] if field.discriminator is not None else field.rebuild_annotation()
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is dict:
        return inner[1]
    if origin is tuple and isinstance(part, int):
        return inner[0] if len(inner) == 2 and inner[1] is ... else inner[part] if part < len(inner) else None
    return inner[0] if origin is list and inner else None


# `it is ...` is added where the value can be shown in a word.
_WORDS = {
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text; put quotes around it",
    "string_too_short": "must not be empty",
    "model_type": "must be a mapping of keys to values",
    "model_attributes_type": "must be a mapping of keys to values",
    "dict_type": "must be a mapping of names to sections",
    "tuple_type": "must be a list, as in [a, b]",
    "list_type": "must be a list, as in [a, b]",
    "finite_number": "must be a finite number",
}
_BOUNDS = {
    "greater_than": ("gt", "must be more than"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be less than"),
    "less_than_equal": ("le", "must be at most"),
}
_PATTERNS = (
    (r"[0-9a-f]{64}", "must be a SHA-256: 64 hexadecimal digits"),
    (r"^https?", "must be an address that begins with http:// or https://"),
    (r"[a-z0-9]+", "must be small letters, digits, dots and hyphens, as in single-slice"),
)


def _problems_of(error: Any, kind: type[BaseModel]) -> list[Problem]:
    where, sort, value = key_of(error["loc"], kind), error["type"], error.get("input")
    context = error.get("ctx", {})
    if sort == "too_short" and value:
        return []  # only because each of its entries is wrong, and they are told of themselves
    if sort == "unknown_names":
        return list(context["problems"])
    if sort == "unknown_keys":
        return [(where, line) for line in str(error["msg"]).splitlines()]
    if sort in ("union_tag_invalid", "union_tag_not_found"):
        discriminator = str(context["discriminator"]).strip("'")
        inside = f"{where}.{discriminator}" if where else discriminator
        if sort == "union_tag_not_found":
            return [(inside, "is missing")]
        tags = re.findall(r"'([^']*)'", context["expected_tags"])
        return [(inside, unknown("value", str(context["tag"]), tags))]
    return [(where, _message(sort, value, context, str(error["msg"])))]


def _message(sort: str, value: Any, context: dict[str, Any], message: str) -> str:
    """What is wrong, with the value and what is allowed."""
    if sort == "missing":
        return "is missing"
    if sort == "literal_error":
        allowed = re.findall(r"'([^']*)'", context["expected"])
        if allowed == ["all"]:
            return f"must be `all` or a list, as in [{value}] (it is {_shown(value)})"
        return unknown("value", str(value), allowed)
    if sort == "too_short":
        return "is empty; give at least one"
    if sort == "too_long" or sort == "unexpected_positional_argument":
        return f"must have {context.get('max_length', 'fewer')} values"
    if sort in _BOUNDS:
        bound, words = _BOUNDS[sort]
        text = f"{words} {context[bound]:g}"
    elif sort == "string_pattern_mismatch":
        text = next(
            (words for part, words in _PATTERNS if part in context["pattern"]), f"must fit {context['pattern']}"
        )
    elif sort in _WORDS:
        text = _WORDS[sort]
    else:
        return message.removeprefix("Value error, ")
    return f"{text} (it is {_shown(value)})" if value is None or isinstance(value, str | int | float) else text


def _shown(value: str | int | float | None) -> str:
    return "empty" if value is None or value == "" else json.dumps(value, ensure_ascii=False)
