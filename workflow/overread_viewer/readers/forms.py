"""What a rater's form says, read strictly: a field that is missing, doubled or has another value stores nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import parse_qsl

from overread_viewer.readers.database import Item, Judgement, Reading
from overread_viewer.readers.schema import LONGEST_COMMENT

T = TypeVar("T")

MOST_FIELDS = 10
KIND = "application/x-www-form-urlencoded"


class BadForm(Exception):
    """Why nothing was stored, in words for the rater."""


def posted(body: bytes, kind: str) -> dict[str, str]:
    """The fields of a form's body. kind: its content type"""
    if kind.partition(";")[0].strip().lower() != KIND:
        raise BadForm("This is not the page's form.")
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, strict_parsing=bool(body), max_num_fields=MOST_FIELDS,
            errors="strict",
        )  # fmt: skip
    except ValueError:  # UnicodeDecodeError is one
        raise BadForm("The form arrived damaged. Please send it again.") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise BadForm("The form names an answer twice.")
    return fields


def reading_of(fields: Mapping[str, str], item: Item) -> Reading:
    """The first part. `option` is the place shown, from 1, or `none` for "can't tell"."""
    _only(fields, {"option", "confidence", "answerable", "in_view"})
    places = {str(number): place for number, place in enumerate(item.shown, start=1)}
    option = _one_of(fields, "option", {**places, "none": None}, "Choose an option, or “Can’t tell”.")
    return Reading(
        chosen=option,
        confidence=_one_of(
            fields, "confidence", {str(k): k for k in range(1, 6)}, "Say how confident you are, 1 to 5."
        ),
        answerable=_yes_no(fields, "answerable", "Say whether the images let one answer the question."),
        seconds_in_view=_seconds(fields.get("in_view", "")),
    )


def judgement_of(fields: Mapping[str, str]) -> Judgement:
    _only(fields, {"agrees", "relevant", "comment"})
    comment = fields.get("comment", "").replace("\r\n", "\n").replace("\r", "\n").strip()
    if len(comment) > LONGEST_COMMENT:
        raise BadForm(f"The comment has {len(comment)} characters; {LONGEST_COMMENT} can be stored. Please shorten it.")
    if any(not (sign.isprintable() or sign in "\n\t") for sign in comment):
        raise BadForm("The comment holds a character that can’t be stored. Please type it anew.")
    return Judgement(
        agrees=_yes_no(fields, "agrees", "Say whether you agree with the given answer."),
        relevant=_yes_no(fields, "relevant", "Say whether the question is clinically relevant."),
        comment=comment,
    )


def _only(fields: Mapping[str, str], known: set[str]) -> None:
    if strange := sorted(set(fields) - known):
        raise BadForm(f"The form has a field that this page does not: {strange[0][:40]!r}.")


def _one_of(fields: Mapping[str, str], name: str, values: Mapping[str, T], missing: str) -> T:
    if fields.get(name, "") not in values:
        raise BadForm(missing)
    return values[fields[name]]


def _yes_no(fields: Mapping[str, str], name: str, missing: str) -> bool:
    return _one_of(fields, name, {"yes": True, "no": False}, missing)


def _seconds(text: str) -> float | None:
    """The browser's count; none where it has none."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
