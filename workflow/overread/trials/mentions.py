"""Whether a sentence of a report mentions a finding, by the words of a YAML file: Overread's, or a study's own.

A mention is a mention whether it is affirmed, denied or doubted: "no evidence of effusion" speaks of effusion. The file
explains its own notation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from overread.config import read_yaml
from overread.core import resources
from overread.core.errors import BadInput
from overread.core.records import one_line

OWN_FINDINGS = resources.FINDINGS
"""The words that come with Overread."""

FUZZY_FROM, FUZZY_TWICE_FROM = 6, 11
"""Letters from which a word may have one slip of the pen, and two. Shorter words are too like each other."""

GAP = 4
"""The most words that `..` stands for."""

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


class _Words(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    terms: tuple[str, ...] = ()
    excepted: tuple[str, ...] = ()  # `except` and `with` are words of Python
    also: tuple[str, ...] = ()


class _Step(NamedTuple):
    """One word of a term."""

    word: str
    begins: bool  # any word that begins so
    gap: int  # how many words may stand between it and the word before


Term = tuple[_Step, ...]


class Lexicon:
    """Which words mention a topic."""

    def __init__(self, topics: Mapping[str, _Words], source: Path) -> None:
        self.source = source
        self._topics = topics
        self._terms = {name: tuple(_term(text) for text in words.terms) for name, words in topics.items()}
        self._excepted = {name: tuple(_term(text) for text in words.excepted) for name, words in topics.items()}

    def knows_any(self, topics: Iterable[str]) -> bool:
        return bool(self._words_of(topics))

    def mentions(self, sentence: str, topics: Iterable[str]) -> bool:
        """Whether a sentence mentions one of the topics: a finding's name, or an MRI question's topic."""
        words = tuple(_WORD.findall(sentence.casefold()))
        return any(self._of(words, topic) for topic in self._words_of(topics))

    def _words_of(self, topics: Iterable[str]) -> list[str]:
        named = [topic for topic in topics if topic in self._topics]
        return list(dict.fromkeys([*named, *(also for topic in named for also in self._topics[topic].also)]))

    def _of(self, words: tuple[str, ...], topic: str) -> bool:
        excepted = {place for term in self._excepted[topic] for found in _found(term, words) for place in found}
        return any(not excepted.issuperset(found) for term in self._terms[topic] for found in _found(term, words))


def read_lexicon(path: Path = OWN_FINDINGS) -> Lexicon:
    """The words of a file. BadInput for one that can't be used, with the key."""
    content = read_yaml(path)
    topics = content.get("topics")
    if set(content) != {"topics"} or not isinstance(topics, dict) or not topics:
        raise BadInput(f"{path}: must hold one key, 'topics', with the words of each topic")
    made: dict[str, _Words] = {}
    for name, section in topics.items():
        if not isinstance(section, dict):
            raise BadInput(f"{path}: topics.{name}: must be a mapping with 'terms'")
        strange = sorted(set(section) - {"terms", "except", "with"})
        if strange:
            raise BadInput(f"{path}: topics.{name}: no key {strange[0]!r}; there are: except, terms, with")
        try:
            made[str(name)] = _Words(
                terms=section.get("terms", ()), excepted=section.get("except", ()), also=section.get("with", ())
            )
        except ValidationError as error:
            raise BadInput(f"{path}: topics.{name}: {one_line(error)}") from None
        for also in made[str(name)].also:
            if also not in topics:
                raise BadInput(f"{path}: topics.{name}.with: no topic {also!r}")
    return Lexicon(made, path)


def _term(text: str) -> Term:
    steps: list[_Step] = []
    gap = 0
    for part in text.casefold().replace("-", " ").split():
        if part == "..":
            gap = GAP
            continue
        steps.append(_Step(part.removesuffix("*"), part.endswith("*"), gap))
        gap = 0
    if not steps:
        raise BadInput(f"term {text!r} has no word")
    return tuple(steps)


def _found(term: Term, words: Sequence[str]) -> list[tuple[int, ...]]:
    """The places of the term's words, for each time that it occurs."""
    found: list[tuple[int, ...]] = []
    for start in range(len(words)):
        if not _is(words[start], term[0]):
            continue
        places = [start]
        for step in term[1:]:
            last = places[-1]
            following = range(last + 1, min(last + 2 + step.gap, len(words)))
            place = next((place for place in following if _is(words[place], step)), None)
            if place is None:
                break
            places.append(place)
        else:
            found.append(tuple(places))
    return found


@lru_cache(maxsize=65536)
def _is(word: str, step: _Step) -> bool:
    """Whether a word of a sentence is a term's: itself, its plural, a word that begins so, or a slip of the pen."""
    wanted = step.word
    if word == wanted or (step.begins and word.startswith(wanted)):
        return True
    singulars = _singulars(word)
    if wanted in singulars:
        return True
    if len(wanted) < FUZZY_FROM or word[0] != wanted[0]:
        return False
    most = 2 if len(wanted) >= FUZZY_TWICE_FROM else 1
    if step.begins:
        return any(_apart(word[: len(wanted) + more], wanted, most) for more in (-1, 0, 1))
    return any(_apart(one, wanted, most) for one in singulars)


def _singulars(word: str) -> tuple[str, ...]:
    """What a word can be the plural of, and the word itself."""
    made = [word]
    for plural, singular in (("s", ""), ("es", ""), ("ies", "y"), ("es", "is"), ("ces", "x"), ("a", "um")):
        if word.endswith(plural) and len(word) > len(plural) + 2:
            made.append(word.removesuffix(plural) + singular)
    return tuple(made)


def _apart(one: str, two: str, most: int) -> bool:
    """Whether so few letters are wrong, missing, one too many or swapped with their neighbour (optimal alignment)."""
    from rapidfuzz.distance import OSA

    return OSA.distance(one, two, score_cutoff=most) <= most
