"""The decision: one rule, made of the adjusted tests alone.

A model's primary family is named before anything is asked (`statistics.primary`), and holds tests of this model on this
data set only: another model changes nothing. All tests are one-sided at (1 - level)/2, so that they agree with the
intervals of `level`.

    uses          following is above 0 in one comparison of the family at least, adjusted by Holm (1979)
    does not use  following is within the smallest effect in every comparison of the family, whatever the lost answers
                  hide (each at full level: all of them have to hold, so nothing is to be adjusted; Berger 1982), and
                  nothing shows that the image reaches the model below its answers
    cannot tell   neither; or more pairs are lost than `statistics.lost` allows; or there are fewer than ten patients

A reader that follows by less than the smallest effect beyond doubt uses the image, and is said to read less than it.
What reacts (answers that move beyond a measured floor) makes no verdict by itself: that answers move with the image
does not say that they follow it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from overread.estimates.inference.auc import Below, below_of
from overread.estimates.inference.following import Following, following_of
from overread.estimates.inference.gain import Gain
from overread.estimates.inference.reacting import Reacting, reacting_of
from overread.estimates.inference.swap import Swap

Class = Literal["uses", "does not use", "cannot tell", "not tested"]
CLASSES: tuple[Class, ...] = ("uses", "does not use", "cannot tell", "not tested")
SUBCLASSES = (
    "reads", "reads less than the smallest effect", "gains from the image",
    "blind", "reacts without reading", "floor not measured", "no gain",
    "image reaches it, below the answer", "lost", "too few patients", "reacts; floor not measured",
    "reacts; reading open", "open",
)  # fmt: skip
"""Of use, of no use, and of what cannot be told."""
Decoding = Literal["greedy", "sampled", "unknown"]
FEWEST_PATIENTS = 10
"""Below this there is no verdict: intervals of so few clusters are not to be believed."""


@dataclass(frozen=True)
class Rules:
    """What is set beforehand. Shares.

    following, gain   smallest effects
    lost              the share of lost pairs beyond which nothing is concluded
    by_topic          whether findings are a sample as well
    """

    level: float = 0.95
    following: float = 0.1
    gain: float = 0.05
    lost: float = 0.1
    by_topic: bool = False

    @property
    def alpha(self) -> float:
        """Of each one-sided test."""
        return (1 - self.level) / 2


@dataclass(frozen=True)
class Tested:
    """One comparison of the family, with all that was found."""

    following: Following | None = None
    reacting: tuple[Reacting, ...] = ()
    below: Below | None = None
    gain: Gain | None = None
    lost: float = 0.0

    @property
    def main(self) -> Following | Gain | None:
        return self.following or self.gain

    @property
    def patients(self) -> int:
        return self.main.combined.patients if self.main is not None else 0

    @property
    def p(self) -> float:
        return self.main.p if self.main is not None else 1.0

    @property
    def p_equivalent(self) -> float:
        return self.main.p_equivalent if self.main is not None else 1.0

    def reacts(self, alpha: float, smallest: float, decoding: Decoding) -> bool:
        """Whether answers move beyond every floor of their own (the label-matched one only where there is no other).

        So they do as well where the placebo alone moves them by more than the smallest effect above the reruns: then
        anything does.
        """
        own = {one.floor: one for one in self.reacting if one.floor_rate is not None}
        floors = [one for name, one in own.items() if name != "label-matched"] or list(own.values())
        if floors and all(one.p <= alpha for one in floors):
            return True
        again = own["reruns"].floor_rate if "reruns" in own else 0.0 if decoding == "greedy" else None
        still = own["placebo"].floor_rate if "placebo" in own else None
        return again is not None and still is not None and still - again > smallest


@dataclass(frozen=True)
class Verdict:
    """What is concluded of one model on one data set.

    comparison   the one of the family that it rests on: the smallest adjusted p
    p            by comparison, adjusted over the family; `p_equivalent` of the family as a whole
    reasons      codes, in the order of the docs
    """

    verdict: Class
    subclass: str
    comparison: str = ""
    p: Mapping[str, float] = field(default_factory=dict)
    p_equivalent: float = 1.0
    lost: float = 0.0
    reasons: tuple[str, ...] = ()


def tested(swap: Swap, rules: Rules) -> Tested:
    """All that is found in one swap."""
    following = following_of(swap, level=rules.level, smallest=rules.following, by_topic=rules.by_topic)
    return Tested(following, tuple(reacting_of(swap)), below_of(swap), lost=swap.lost)


def verdict_of(
    swaps: Mapping[str, Swap],
    gains: Mapping[str, Gain] | None = None,
    rules: Rules | None = None,
    decoding: Decoding = "unknown",
) -> Verdict:
    """The verdict from the swaps of a family; from its gains where it has no swap."""
    rules = rules or Rules()
    family = {name: tested(swap, rules) for name, swap in swaps.items()}
    family = family or {name: Tested(gain=gain, lost=gain.lost) for name, gain in (gains or {}).items()}
    return decide(family, rules, decoding)


def decide(family: Mapping[str, Tested], rules: Rules, decoding: Decoding = "unknown") -> Verdict:
    """The verdict from what was found in each comparison of the family."""
    if not family:
        return Verdict("not tested", "")
    alpha, names = rules.alpha, list(family)
    adjusted = dict(zip(names, holm([family[name].p for name in names]), strict=True))
    principal = min(names, key=lambda name: (adjusted[name], family[name].p, names.index(name)))
    equivalent = max(one.p_equivalent for one in family.values())
    lost = max(one.lost for one in family.values())
    superior, within = adjusted[principal] <= alpha, equivalent <= alpha
    reasons = _reasons(family, rules, decoding, lost=lost, superior=superior, within=within)

    def verdict(which: Class, subclass: str) -> Verdict:
        return Verdict(which, subclass, principal, adjusted, equivalent, lost, reasons)

    if all(one.main is None for one in family.values()):
        return verdict("cannot tell", "reacts; reading open" if "reacts" in reasons else "open")
    if all(one.patients < FEWEST_PATIENTS for one in family.values()):
        return verdict("cannot tell", "too few patients")
    if lost > rules.lost:
        return verdict("cannot tell", "lost")
    found = family[principal].main
    if superior and found is not None:
        if isinstance(found, Gain):
            return verdict("uses", "gains from the image")
        high = found.interval[1]
        small = high is not None and high < rules.following
        return verdict("uses", "reads less than the smallest effect" if small else "reads")
    below = "margins-follow" in reasons or ("margins-move" in reasons and "reacts" not in reasons)
    if below:
        return verdict("cannot tell", "image reaches it, below the answer")
    if within:
        return verdict("does not use", _of_no_use(family, reasons))
    if "reacts" in reasons:
        return verdict("cannot tell", "reacts; reading open")
    return verdict("cannot tell", "reacts; floor not measured" if "reacts-unmeasured" in reasons else "open")


def holm(values: Sequence[float]) -> list[float]:
    """Holm's (1979) adjusted p, in the order given."""
    adjusted, largest = [1.0] * len(values), 0.0
    for place, index in enumerate(sorted(range(len(values)), key=lambda one: values[one])):
        largest = max(largest, min(1.0, (len(values) - place) * values[index]))
        adjusted[index] = largest
    return adjusted


def _of_no_use(family: Mapping[str, Tested], reasons: tuple[str, ...]) -> str:
    if all(one.following is None for one in family.values()):
        return "no gain"
    if "reacts" in reasons:
        return "reacts without reading"
    unmeasured = any(one.floor_rate is None and one.flip_rate > 0 for each in family.values() for one in each.reacting)
    return "floor not measured" if unmeasured else "blind"


def _reasons(
    family: Mapping[str, Tested], rules: Rules, decoding: Decoding, *, lost: float, superior: bool, within: bool
) -> tuple[str, ...]:
    each = list(family.values())
    alpha = rules.alpha / len(each)
    unmeasured = [one for a in each for one in a.reacting if one.floor_rate is None]
    has_floor = any(one.floor_rate is not None for a in each for one in a.reacting)
    above = [low for one in unmeasured if (low := one.surplus.limits(rules.level)[0]) is not None and low > 0]
    aucs = [a.below.auc for a in each if a.below is not None and a.below.auc is not None]
    moved = [a.below for a in each if a.below is not None and a.below.moved is not None]
    found = {
        "superior": superior,
        "equivalent": within,
        "lost-over-limit": lost > rules.lost,
        "few-patients": all(one.patients < FEWEST_PATIENTS for one in each),
        "no-label-change": all(one.main is None for one in each),
        "reacts": any(one.reacts(alpha, rules.following, decoding) for one in each),
        "reacts-unmeasured": bool(above) and not has_floor,
        "margins-move": any(one.moves(rules.level, rules.following) for one in moved),
        "margins-follow": any(one.p_above(0.5) <= rules.alpha / len(aucs) for one in aucs),
        "few-events": any(one.main is not None and one.main.combined.shown < 8 for one in each),
        "decoding-sampled": decoding == "sampled",
        "decoding-unknown": decoding == "unknown",
    }
    return tuple(name for name, holds in found.items() if holds)
