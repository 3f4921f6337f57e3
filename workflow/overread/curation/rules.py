"""The rules for generated questions, from a YAML file: `resources/filter.yaml` is the one that comes with Overread.

Terms are lists of words in the file's own small language:

    stable          the word, its plural and possessive; never a part of a longer word (unstable)
    recurren*       every word that begins so: recurrent, recurrence
    post-surgical   hyphen, space or nothing between: postsurgical, post surgical, post-surgical
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Literal

import yaml
from pydantic import Field, ValidationError, field_validator

from overread.config import Section
from overread.core import resources
from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.records import one_line
from overread.core.text import plain

OWN_RULES = resources.FILTER
"""The rules that come with Overread."""

Part = Literal["stem", "options", "answer"]


class Keywords(Section):
    """A class of terms: a question that holds one of them is dropped."""

    terms: tuple[str, ...] = Field(min_length=1)
    but: tuple[str, ...] = Field(default=(), description="phrases in which a term does not count")
    look_in: tuple[Part, ...] = Field(default=("stem", "options"), min_length=1)


class Spacing(Section):
    """How far apart the sizes among a question's options must be, in mm."""

    cm: Decimal = Field(default=Decimal(10), gt=0, description="options in centimetres")
    mm: Decimal = Field(default=Decimal(5), gt=0, description="options in millimetres")
    large: Decimal = Field(default=Decimal(5), gt=0, description="midline shift and what else `large_structures` names")
    small: Decimal = Field(default=Decimal(3), gt=0, description="what `small_structures` names")
    large_structures: tuple[str, ...] = ("midline shift", "shift")
    small_structures: tuple[str, ...] = ("pituitary",)


class Location(Section):
    """When a question about a lesion says which one is meant."""

    lesions: tuple[str, ...] = Field(min_length=1, description="a stem with one of these asks about a lesion")
    but: tuple[str, ...] = Field(default=(), description="phrases in which such a word is no lesion")
    places: tuple[str, ...] = Field(min_length=1, description="sides and places, one of which it must then name")
    asks_where: tuple[str, ...] = Field(default=(), description="phrases of a stem that asks for the place itself")


class Dimensions(Section):
    """When a question whose options are sizes says which dimension is meant."""

    names: tuple[str, ...] = Field(min_length=1, description="names of one dimension: diameter, thickness, shift")
    axes: tuple[str, ...] = Field(min_length=1, description="names of the axes in a dimension format")


class Evidence(Section):
    score: float = Field(default=90.0, ge=0, le=100, description="the least score of a quotation that was found")


class Duplicates(Section):
    across: Literal["drop", "keep"] = Field(
        default="drop", description="questions of two studies with the same stem and the same set of options"
    )
    near: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="share of words in common from which two of a study are one; none: not looked for",
    )


class Rules(Section):
    """Everything that code decides about a generated question."""

    forbidden: tuple[str, ...] = Field(min_length=1, description="phrases that no stem or option may hold")
    keywords: dict[str, Keywords]
    spacing: Spacing = Spacing()
    location: Location
    dimensions: Dimensions
    evidence: Evidence = Evidence()
    duplicates: Duplicates = Duplicates()
    topics: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="terms of a stem by topic; the first topic that fits; else `other`"
    )

    @field_validator("keywords")
    @classmethod
    def _no_empty_term(cls, classes: dict[str, Keywords]) -> dict[str, Keywords]:
        for name, one in classes.items():
            for term in (*one.terms, *one.but):
                if not re.search(r"\w", term):
                    raise ValueError(f"{name}: the term {term!r} holds no letter")
        return classes


def read_rules(path: Path | None = None) -> Rules:
    """The rules of a file; without one, Overread's own. BadInput names file and field."""
    path = path or OWN_RULES
    try:
        content = yaml.safe_load(regular(path).read_text(encoding="utf-8"))
        return Rules.model_validate(content)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; it should hold the rules for generated questions") from None
    except yaml.YAMLError as error:
        raise BadInput(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        raise BadInput(f"{path}: {one_line(error)}") from None


@cache
def pattern(terms: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for all terms, for text made `plain`; the longest term that fits at a place is the one found."""
    ordered = sorted(terms, key=lambda term: (-len(term), term))
    return re.compile(r"(?<![^\W_])(?:" + "|".join(_expression(term) for term in ordered) + r")(?![^\W_])")


def _expression(term: str) -> str:
    parts = re.split(r"([\s-]+)", plain(term))
    between = {place: r"[\s-]+" if part.isspace() else r"[\s-]*" for place, part in enumerate(parts) if place % 2}
    return "".join(between.get(place, _word(part, last=place == len(parts) - 1)) for place, part in enumerate(parts))


def _word(word: str, *, last: bool) -> str:
    if word.endswith("*"):
        return re.escape(word[:-1]) + r"[^\W_]*"
    return re.escape(word) + (r"(?:s|es|'s|s')?" if last and word[-1:].isalpha() else "")


def hits(text: str, terms: tuple[str, ...], but: tuple[str, ...] = ()) -> list[str]:
    """The terms that a text holds, as written there, less those inside one of the phrases `but`."""
    return [match.group() for match in _matches(text, terms, but)]


def first(text: str, terms: tuple[str, ...], but: tuple[str, ...] = ()) -> int | None:
    """Where in a text the first of the terms stands, or None."""
    return next((match.start() for match in _matches(text, terms, but)), None)


def _matches(text: str, terms: tuple[str, ...], but: tuple[str, ...]) -> list[re.Match[str]]:
    text = plain(text)
    excused = [match.span() for match in pattern(but).finditer(text)] if but else []
    found = pattern(terms).finditer(text)
    return [one for one in found if not any(a <= one.start() and one.end() <= b for a, b in excused)]
