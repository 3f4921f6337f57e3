"""Questions that are asked twice.

Within a study the stem decides: the same stem with other options is the same question. Across studies stem and set of
options must be the same. Text is compared in its normal form (`normalise`), options without their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from overread.core.text import normalise, words
from overread.curation.candidates import Wording
from overread.curation.rules import Duplicates

Asked = tuple[str, str, Wording]
"""A name, a study and a wording."""


def duplicates(asked: Sequence[Asked], rules: Duplicates) -> Iterator[tuple[str, str, str]]:
    """Name, rule and the earlier question's name of each that repeats an earlier one, in the order given.

    A repeated question is dropped and is no one's earlier question; so of many alike the first stays.
    """
    stems: dict[tuple[str, str], str] = {}
    everywhere: dict[tuple[str, frozenset[str]], str] = {}
    kept_words: dict[str, list[tuple[str, set[str]]]] = {}
    for name, study, wording in asked:
        stem = normalise(wording.stem)
        whole = (stem, frozenset(normalise(option) for option in wording.options))
        bag = set(words(" ".join([wording.stem, *wording.options])))
        if (earlier := stems.get((study, stem))) is not None:
            yield name, "within-study", earlier
        elif rules.across == "drop" and (earlier := everywhere.get(whole)) is not None:
            yield name, "across-studies", earlier
        elif rules.near is not None and (earlier := _like(bag, kept_words.get(study, ()), rules.near)) is not None:
            yield name, "near", earlier
        else:
            stems[study, stem] = name
            everywhere.setdefault(whole, name)
            kept_words.setdefault(study, []).append((name, bag))


def _like(bag: set[str], kept: Iterable[tuple[str, set[str]]], least: float) -> str | None:
    """The first kept question whose words are those of `bag` but for a few: Jaccard's index of the two sets.

    A side or a number that only one of them has makes them two questions, however much else they share.
    """
    for name, other in kept:
        if len(bag & other) >= least * len(bag | other) and not any(_tells(word) for word in bag ^ other):
            return name
    return None


def _tells(word: str) -> bool:
    return word[0].isdigit() or word in ("left", "right", "bilateral")
