"""Readers whose behaviour, and whether they read, is known by construction.

A reader is asked an arm of a study in one run, all questions at once, and says what it answers. All it draws comes from
`Draws`, which say what a draw hangs on: the question (the same in every arm and run, so that a greedy reader is
steady), the picture shown, its very pixels (other ones once the picture is shifted by a pixel), or nothing (asked anew
each time, as a sampled model is).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Literal, Protocol

import numpy as np

from overread.gallery.cohorts import BoolArray, FloatArray, IntArray

Shown = Literal["own", "substitute", "placebo", "black", "none"]


class Truth(StrEnum):
    """What is true of a reader."""

    BLIND = "does not read"
    REACTS = "reacts without reading"
    READS = "reads"
    BELOW = "below the answer"
    UNTOLD = "cannot be told"


class Draws(Protocol):
    """Uniform draws in [0, 1), one per question, the same whenever the same `what` is asked of the same thing."""

    def question(self, what: str) -> FloatArray: ...

    def picture(self, what: str, *, own: bool = False) -> FloatArray:
        """By the study whose picture is shown and the topic; of the question's own study whatever is shown if `own`."""
        ...

    def pixels(self, what: str) -> FloatArray:
        """By the very pixels shown and the topic."""
        ...

    def fresh(self, what: str) -> FloatArray:
        """Another draw in each arm and run."""
        ...


@dataclass(frozen=True)
class Asked:
    """An arm in one run. Arrays have a row per question; places are those of the options as written, from 0.

    truth      place of what is true of the picture shown; -1 where none is shown, or it is not among the options
    own_truth  the same of the question's own study
    told       place of what the report says; -1 without a report
    first      place of the option that is shown first
    yes_no     whether the options are yes and no, in this order
    """

    shown: Shown
    run: int
    topic: IntArray
    prevalence: FloatArray
    n_options: IntArray
    yes_no: BoolArray
    truth: IntArray
    own_truth: IntArray
    told: IntArray
    first: IntArray
    draws: Draws

    @property
    def sees(self) -> bool:
        """Whether a study's picture is shown."""
        return self.shown in ("own", "substitute", "placebo")


@dataclass(frozen=True)
class Given:
    """What a reader answers.

    choice    place as written
    lean      log-odds of its answer: of yes against no, else of the option it chose against the others
    answered  whether it answers; else it refuses
    """

    choice: IntArray
    lean: FloatArray
    answered: BoolArray


@dataclass(frozen=True)
class Reader:
    """One of the gallery.

    following    the share of answers that follow the picture where the truth differs: the true value of the estimand
    temperature  what its model file says of its decoding; 0 is greedy
    """

    name: str
    truth: Truth
    description: str
    answer: Callable[[Asked], Given]
    following: float = 0.0
    temperature: float = 0.0


# -- parts -------------------------------------------------------------------------------------------------------------

TRUSTS_REPORT = 0.8
"""How often a report is followed, by those that follow it: drawn by question."""


def _say(
    asked: Asked, choice: IntArray, strength: FloatArray | None = None, answered: BoolArray | None = None
) -> Given:
    """An answer whose margin has the sign of the answer and a size of the question's own, or `strength`."""
    size = 0.3 + 3 * asked.draws.question("strength") if strength is None else strength
    lean = np.where(asked.yes_no & (choice == 1), -size, size)
    return Given(choice, lean, np.ones(len(choice), dtype=bool))


def _majority(asked: Asked) -> IntArray:
    """The commoner answer to each finding; of four options whichever is written first."""
    return np.where(asked.yes_no & (asked.prevalence < 0.5), 1, 0)


def _by_prior(asked: Asked, draws: FloatArray) -> IntArray:
    """Yes as often as the finding is there; of four options any."""
    return np.where(asked.yes_no, np.where(draws < asked.prevalence, 0, 1), (draws * asked.n_options).astype(np.int64))


def _guess(asked: Asked) -> IntArray:
    return _by_prior(asked, asked.draws.question("guess"))


def _beside(asked: Asked, alone: IntArray, trust: float = TRUSTS_REPORT) -> IntArray:
    """What the report says, in a share `trust` of the questions that have one; else the answer given without it."""
    follows = (asked.told >= 0) & (asked.draws.question("report") < trust)
    return np.where(follows, asked.told, alone)


def _follow(asked: Asked, reliance: float, otherwise: IntArray) -> IntArray:
    """What is true of the picture shown, in a share `reliance` of the questions."""
    follows = (asked.truth >= 0) & (asked.draws.question("image") < reliance)
    return np.where(follows, asked.truth, otherwise)


# -- readers that do not read ------------------------------------------------------------------------------------------


def majority(asked: Asked) -> Given:
    return _say(asked, _beside(asked, _majority(asked)))


def prior(asked: Asked) -> Given:
    return _say(asked, _beside(asked, _guess(asked)))


def prior_sampled(asked: Asked) -> Given:
    choice = _beside(asked, _by_prior(asked, asked.draws.fresh("answer")))
    share = np.clip(asked.prevalence, 1e-3, 1 - 1e-3)
    lean = np.where(asked.yes_no, np.log(share / (1 - share)), 0.0)
    return Given(choice, lean, np.ones(len(choice), dtype=bool))


def sampled(asked: Asked) -> Given:
    """Each question has a log-odds of its own; the answer is drawn from it."""
    lean = 4 * asked.draws.question("lean") - 2
    share = 1 / (1 + np.exp(-lean))
    draws = asked.draws.fresh("answer")
    choice = np.where(asked.yes_no, np.where(draws < share, 0, 1), (draws * asked.n_options).astype(np.int64))
    return Given(_beside(asked, choice), lean, np.ones(len(choice), dtype=bool))


def constant(asked: Asked, *, place: int) -> Given:
    return _say(asked, np.full(len(asked.topic), place))


def black_yes(asked: Asked) -> Given:
    """No to every radiograph, yes to a black picture."""
    return constant(asked, place=0 if asked.shown == "black" else 1)


def first_option(asked: Asked) -> Given:
    biased = asked.draws.question("position") < 0.8
    return _say(asked, np.where(biased, asked.first, _guess(asked)))


def refuses_black(asked: Asked) -> Given:
    refuses = (asked.draws.question("refuses") < 0.41) & (asked.shown == "black")
    return replace(majority(asked), answered=~refuses)


def refuses_any(asked: Asked, *, share: float) -> Given:
    return replace(majority(asked), answered=asked.draws.fresh("refuses") >= share)


def drifts(asked: Asked) -> Given:
    """Each run draws one answer in six anew, the same in all arms of the run."""
    anew = asked.draws.question(f"whether run {asked.run}") < 1 / 6
    return _say(asked, np.where(anew, _by_prior(asked, asked.draws.question(f"run {asked.run}")), _guess(asked)))


def rounding(asked: Asked, *, share: float) -> Given:
    """Greedy but for arithmetic that depends on the batch: a share of the answers, drawn anew, comes out otherwise."""
    return _turned(asked, prior(asked), share)


def _turned(asked: Asked, given: Given, share: float) -> Given:
    other = np.where(asked.yes_no, 1 - given.choice, (given.choice + 1) % asked.n_options)
    return _say(asked, np.where(asked.draws.fresh("rounding") < share, other, given.choice))


# -- readers that react ------------------------------------------------------------------------------------------------


def pixels(asked: Asked) -> Given:
    """By a hash of the picture, never by its content; the same where the picture is shifted by a pixel."""
    draws = asked.draws.picture("hash")
    return _say(asked, _beside(asked, _by_prior(asked, draws)), 0.3 + 3 * asked.draws.picture("strength"))


def raw_pixels(asked: Asked) -> Given:
    """By a hash of the very pixels: a shift by a pixel changes it as much as another picture does."""
    return _say(asked, _beside(asked, _by_prior(asked, asked.draws.pixels("hash"))))


def worse_with_image(asked: Asked) -> Given:
    """Any picture throws it off: it answers by a hash of it, and by the majority without one."""
    by_hash = np.where(asked.draws.picture("hash") < 0.5, 0, asked.n_options - 1)
    return _say(asked, by_hash if asked.sees else _majority(asked))


def margins_move(asked: Asked) -> Given:
    """The answer never changes; the margin follows a hash of the picture, and 85 % move by over 0.5."""
    return _say(asked, _guess(asked), 0.5 + 6.4 * asked.draws.picture("margin"))


def margins_read(asked: Asked) -> Given:
    """The answer never changes; the margin follows what the picture shows."""
    choice = _guess(asked)
    towards = np.where(asked.truth < 0, 0.0, np.where(asked.truth == choice, 1.5, -1.5))
    return _say(asked, choice, 3.0 + towards + asked.draws.picture("margin"))


# -- readers that read -------------------------------------------------------------------------------------------------


def reads(asked: Asked, *, reliance: float, beside: float | None = None, trust: float = TRUSTS_REPORT) -> Given:
    """Follows the picture in a share of the questions: `reliance`; beside a report what `trust` leaves, or `beside`.

    What it does not read it guesses by the finding's prevalence, alike in all arms.
    """
    reported = asked.told >= 0
    alone = _follow(asked, reliance, _guess(asked))
    if beside is None:
        return _say(asked, _beside(asked, alone, trust))
    return _say(asked, np.where(reported, _follow(asked, beside, np.where(reported, asked.told, 0)), alone))


def reads_sampled(asked: Asked, *, reliance: float) -> Given:
    guess = _by_prior(asked, asked.draws.fresh("answer"))
    return _say(asked, _beside(asked, _follow(asked, reliance, guess)))


def reads_finding(asked: Asked, *, topic: int) -> Given:
    """Reads one finding perfectly and answers the majority of all others."""
    reads_it = (asked.topic == topic) & (asked.truth >= 0)
    return _say(asked, np.where(reads_it, asked.truth, _majority(asked)))


def _right(asked: Asked, share: float, *, own: bool = False) -> IntArray:
    """What is true of the picture, wrong in a share 1 - `share` of the pictures and topics."""
    truth = asked.own_truth if own else asked.truth
    other = np.where(asked.yes_no, 1 - truth, (truth + 1) % asked.n_options)
    seen = np.where(asked.draws.picture("error", own=own) < share, truth, other)
    return np.where(truth >= 0, seen, _guess(asked))


def correct(asked: Asked, *, share: float) -> Given:
    return _say(asked, _right(asked, share))


def refuses_flips(asked: Asked) -> Given:
    """Correct in 90 %, and refuses a substitute exactly where it would have to change its answer."""
    given = correct(asked, share=0.9)
    if asked.shown != "substitute":
        return given
    return replace(given, answered=given.choice == _right(asked, 0.9, own=True))


def reads_worse(asked: Asked) -> Given:
    """Knows 60 % from the words of the question; a picture makes it forget that, and it reads 30 % of it."""
    from_words = np.where(asked.draws.question("words") < 0.6, asked.own_truth, _guess(asked))
    if asked.shown == "none":
        return _say(asked, from_words)
    return _say(asked, _follow(asked, 0.3, np.where(asked.yes_no, 0, (asked.own_truth + 1) % asked.n_options)))


# -- the gallery -------------------------------------------------------------------------------------------------------

RELIANCES = (0.05, 0.1, 0.3, 0.5, 1.0)
ROUNDINGS = (0.001, 0.005, 0.01)
ONE_FINDING = 6
"""The topic that a reader of one finding reads: of middling prevalence among thirteen."""

_ALL = (
    Reader("majority", Truth.BLIND, "blind, greedy: the commoner answer to each finding", majority),
    Reader("prior", Truth.BLIND, "blind, greedy: yes to as many of a finding's questions as have it", prior),
    Reader("prior-sampled", Truth.BLIND, "blind: each answer drawn from the finding's prevalence", prior_sampled,
           temperature=1.0),
    Reader("sampled", Truth.BLIND, "blind: sampled at temperature 1 from log-odds of the question", sampled,
           temperature=1.0),
    Reader("constant-no", Truth.BLIND, "no to everything", partial(constant, place=1)),
    Reader("constant-yes", Truth.BLIND, "yes to everything", partial(constant, place=0)),
    Reader("black-yes", Truth.BLIND, "no to every radiograph, yes to a black picture", black_yes),
    Reader("first-option", Truth.BLIND, "blind: the option shown first in 80 %", first_option),
    Reader("refuses-black", Truth.BLIND, "blind: refuses 41 % of black pictures", refuses_black),
    Reader("refuses-few", Truth.BLIND, "blind: refuses 3 % at random", partial(refuses_any, share=0.03),
           temperature=1.0),
    Reader("refuses-some", Truth.UNTOLD, "refuses 20 % at random", partial(refuses_any, share=0.2), temperature=1.0),
    Reader("refuses-most", Truth.UNTOLD, "refuses 95 % at random", partial(refuses_any, share=0.95), temperature=1.0),
    Reader("drifts", Truth.BLIND, "blind: one answer in six is another in each run", drifts),
    *(
        Reader(f"rounding-{100 * share:g}", Truth.BLIND, f"greedy: {100 * share:g} % of answers turned by rounding",
               partial(rounding, share=share))
        for share in ROUNDINGS
    ),
    Reader("pixels", Truth.REACTS, "greedy: by a hash of the picture, never by its content", pixels),
    Reader("raw-pixels", Truth.REACTS, "greedy: by a hash of the pixels; one shifted pixel changes it", raw_pixels),
    Reader("worse-with-image", Truth.REACTS, "any picture throws it off; without one it says the majority",
           worse_with_image),
    Reader("margins-move", Truth.BELOW, "no flips; 85 % of margins move by over 0.5, by a hash", margins_move),
    Reader("margins-read", Truth.BELOW, "no flips; the margins follow what the picture shows", margins_read),
    *(
        Reader(f"reads-{100 * share:g}", Truth.READS, f"follows the picture in {100 * share:g} % of the questions",
               partial(reads, reliance=share), share)
        for share in RELIANCES
    ),
    Reader("reads-30-sampled", Truth.READS, "follows the picture in 30 %; else drawn from the prevalence",
           partial(reads_sampled, reliance=0.3), 0.3, 1.0),
    Reader("reads-without-report", Truth.READS, "follows the picture in 50 %, the report alone where there is one",
           partial(reads, reliance=0.5, trust=1.0), 0.5),
    Reader("reads-with-report", Truth.READS, "follows the picture in 50 % beside a report, never without",
           partial(reads, reliance=0.0, beside=0.5)),
    Reader("one-finding", Truth.READS, "reads one finding of all perfectly, says the majority of the others",
           partial(reads_finding, topic=ONE_FINDING)),
    Reader("correct-90", Truth.READS, "says what the picture shows, correct in 90 %", partial(correct, share=0.9),
           0.8),
    Reader("refuses-flips", Truth.READS, "correct in 90 %; refuses where the swap would flip its answer", refuses_flips,
           0.8),
    Reader("reads-worse", Truth.READS, "reads 30 %, yet knows more from the words of the question alone", reads_worse,
           0.3),
)  # fmt: skip
GALLERY: dict[str, Reader] = {reader.name: reader for reader in _ALL}
"""All readers by name."""


def reading(reliance: float, *, floor: float = 0.0) -> Reader:
    """A reader that follows the picture in a share `reliance` of the questions.

    floor  the share of its answers that change when the same is asked again, below 0.5. Where one answer in s is
           turned by chance, 2 s (1 - s) of the pairs of runs differ; following is then (1 - 2 s) times the reliance
    """
    turned = (1 - (1 - 2 * floor) ** 0.5) / 2

    def answer(asked: Asked) -> Given:
        return _turned(asked, reads(asked, reliance=reliance), turned)

    name = f"reads-{100 * reliance:g}"
    description = f"follows the picture in {100 * reliance:g} % of the questions"
    return Reader(name, Truth.READS, description, answer, reliance * (1 - 2 * turned), 1.0 if floor else 0.0)
