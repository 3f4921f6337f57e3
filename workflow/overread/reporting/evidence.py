"""What an interval lets one say: something, nothing at all, or that it cannot be told."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from overread.reporting.rows import Row, number

FEWEST_PATIENTS = 10
"""Below this no verdict is given: a bootstrap of so few clusters is too narrow to be believed."""

FEW_PATIENTS = 30
"""Below this a verdict comes with a warning: intervals of few clusters tend to be too narrow (Cameron, Gelbach and
Miller 2008, who count five to thirty clusters as few)."""


class Answer(StrEnum):
    """What a statement amounts to. `more` and `less` are directions, whose meaning is the statement's."""

    MORE = "more"
    LESS = "less"
    NONE = "none"
    CANNOT_TELL = "cannot tell"
    DESCRIPTION = "description"


@dataclass(frozen=True)
class Evidence:
    """An estimate with its interval (both shares) and the patients behind it."""

    estimate: float | None
    low: float | None
    high: float | None
    patients: int

    @classmethod
    def of(cls, row: Row, column: str) -> Evidence:
        return cls(number(row[column]), number(row["low"]), number(row["high"]), int(number(row["patients"]) or 0))

    def negated(self) -> Evidence:
        """The same difference taken the other way round."""
        turned = [None if value is None else 0.0 - value for value in (self.estimate, self.high, self.low)]
        return Evidence(turned[0], turned[1], turned[2], self.patients)

    def against(self, value: float = 0.0) -> Answer:
        """Whether the estimate lies above or below `value`.

        NONE only for an interval of no width at `value`: every patient showed exactly that.
        """
        if self.estimate is None or self.low is None or self.high is None or self.patients < FEWEST_PATIENTS:
            return Answer.CANNOT_TELL
        if self.low > value:
            return Answer.MORE
        if self.high < value:
            return Answer.LESS
        return Answer.NONE if self.estimate == self.low == self.high == value else Answer.CANNOT_TELL

    def why_not(self, value: str = "0") -> str:
        """Why `against` cannot tell, as a sentence."""
        if self.estimate is None:
            return "There is no estimate."
        if self.patients < FEWEST_PATIENTS:
            return f"Too few patients for a verdict: {self.patients}, and {FEWEST_PATIENTS} are the least."
        if self.low is None or self.high is None:
            return "The table gives no interval."
        return f"The interval includes {value}."

    @property
    def few(self) -> bool:
        return FEWEST_PATIENTS <= self.patients < FEW_PATIENTS


def beyond_floor(row: Row, evidence: Evidence) -> Answer:
    """What a flip rate says against its noise floor, or against none where that was not measured.

    MORE only where the interval lies above that of the floor; NONE where nothing flips at all.
    """
    plain = evidence.against()
    floor = number(row.get("floor_high")) or number(row.get("floor"))
    if plain is not Answer.MORE or floor is None:
        return plain
    return Answer.MORE if evidence.against(floor) is Answer.MORE else Answer.CANNOT_TELL


def unseen_share(patients: int, level: float = 0.95) -> float:
    """The largest share of patients that may still show what none of `patients` showed: the exact rule of three.

    Hanley and Lippman-Hand 1983: the upper one-sided limit of 0 out of n is 1 - (1 - level)^(1/n).
    """
    return 1 - math.exp(math.log(1 - level) / patients)
