"""Text of a given length: sentences taken in turn from a list, until they are as long as another text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from overread.core.errors import BadInput

Measure = Callable[[str], int]
"""How long a text is, in words or in a model's tokens."""

TOLERANCE = 0.05
"""How far from the length that is to be matched a text may be, as a share of it."""


def in_words(text: str) -> int:
    return len(text.split())


def in_tokens(folder: Path) -> Measure:
    """A measure in the tokens of the tokenizer in a folder, special tokens aside. BadInput where there is none."""
    from tokenizers import Tokenizer

    file = folder / "tokenizer.json"
    if not file.is_file():
        raise BadInput(f"{file}: no such file; 'reports.tokenizer' names a folder with a model's tokenizer.json")
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises a bare Exception
        raise BadInput(f"{file}: not a tokenizer ({' '.join(str(error).split())})") from None
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def fitted(pool: Sequence[str], target: int, measure: Measure, start: int = 0) -> str:
    """Sentences of `pool`, in turn from the one at `start`, that are `target` long, or as near below it as can be.

    What the next sentence is too long for is filled with the longest sentences that fit, and at last with the first
    words of one.
    raises   BadInput for a pool without sentences
    """
    sentences = [" ".join(text.split()) for text in pool if text.strip()]
    if not sentences:
        raise BadInput("`fit` needs at least one sentence")
    text, place = "", start % len(sentences)
    while measure(longer := _joined(text, sentences[place])) <= target:
        text, place = longer, (place + 1) % len(sentences)
    by_length = sorted(sentences, key=lambda one: (-measure(one), one))
    while True:
        fits = (one for one in by_length if not text.endswith(one) and measure(_joined(text, one)) <= target)
        filler = next(fits, None)
        if filler is None:
            break
        text = _joined(text, filler)
    return text if measure(text) == target else _filled(text, sentences, target, measure)


def _filled(text: str, sentences: Sequence[str], target: int, measure: Measure) -> str:
    """`text` with the first words of one of the sentences, those that come nearest to `target`, and a full stop."""
    best, length = text, measure(text)
    for sentence in sentences:
        words = sentence.rstrip(".!?").split()
        for count in range(1, len(words)):
            longer = _joined(text, f"{' '.join(words[:count])}.")
            reached = measure(longer)
            if reached > target:
                break
            if reached > length:
                best, length = longer, reached
    return best


def _joined(text: str, sentence: str) -> str:
    return f"{text} {sentence}" if text else sentence
