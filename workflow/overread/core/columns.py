"""Columns of the files that a study leaves: what each means, its unit and its range.

A file's columns are declared once, by the module that makes it. The declaration is what `core.csv_files` writes by and
what reading checks by, and docs/tables.md is printed from it. A name has one meaning in all files: columns that several
files share stand here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, Self

Kind = Literal["text", "whole", "number", "yes/no", "list"]
SHARE = (0.0, 1.0)
DIFFERENCE = (-1.0, 1.0)
FROM_0 = (0.0, None)
FROM_1 = (1.0, None)


@dataclass(frozen=True)
class Column:
    """One column of a file.

    meaning  in words, for docs/tables.md
    unit     of a number: `years`, `tokens`; nothing for a share or a count
    range    the smallest and the largest value; None where there is no bound
    values   the texts that it may hold; any where there are none
    blank    when a cell is blank; never where nothing is said
    """

    name: str
    meaning: str
    kind: Kind = "text"
    unit: str = ""
    range: tuple[float | None, float | None] = (None, None)
    values: tuple[str, ...] = ()
    blank: str = ""

    def but(self, *, blank: str | None = None, range: tuple[float | None, float | None] | None = None) -> Self:
        """The same column in a file where a cell may be blank, or has another range."""
        return replace(self, blank=self.blank if blank is None else blank, range=self.range if range is None else range)

    @property
    def numeric(self) -> bool:
        return self.kind in ("whole", "number")

    def problem(self, text: str) -> str:
        """What is wrong with the text of a cell that is not blank; nothing if it fits."""
        if self.values and text not in self.values:
            return f"not one of {', '.join(self.values)}"
        if not self.numeric:
            return ""
        try:
            value = int(text) if self.kind == "whole" else float(text)
        except ValueError:
            return f"not a {'whole number' if self.kind == 'whole' else 'number'}"
        low, high = self.range
        if (low is not None and value < low) or (high is not None and value > high):
            return f"not {self.bounds}"
        return ""

    @property
    def bounds(self) -> str:
        """The range in words."""
        low, high = ("" if one is None else f"{one:g}" for one in self.range)
        if low and high:
            return f"{low} to {high}"
        return f"{low} or more" if low else f"{high} or less" if high else ""


def text(name: str, meaning: str, *, values: Iterable[str] = (), blank: str = "") -> Column:
    return Column(name, meaning, values=tuple(values), blank=blank)


def count(name: str, meaning: str, *, unit: str = "", blank: str = "") -> Column:
    """A whole number from 0."""
    return Column(name, meaning, "whole", unit, FROM_0, blank=blank)


def share(name: str, meaning: str, *, blank: str = "") -> Column:
    """A fraction from 0 to 1."""
    return Column(name, meaning, "number", range=SHARE, blank=blank)


def difference(name: str, meaning: str, *, blank: str = "") -> Column:
    """The difference of two fractions, from -1 to 1."""
    return Column(name, meaning, "number", range=DIFFERENCE, blank=blank)


def number(
    name: str, meaning: str, *, unit: str = "", range: tuple[float | None, float | None] = (None, None), blank: str = ""
) -> Column:
    return Column(name, meaning, "number", unit, range, blank=blank)


DATASET = text("dataset", "the data set's name in the config")
MODEL = text("model", "the model's name in the config, which is that of its file")
SETTING = text("setting", "the setting's name in the config; of a difference both, as `first - second`")
COMPARISON = text("comparison", "the comparison's name in the config")
EFFECT = text("effect", "the effect's name in the config, or that of a comparison of accuracy")
GROUP = text("group", "which of the pairs: `all`, a topic, or a kind of pair (`label-changed`, `within-patient`, ...)")
STUDY = text("study", "the study's id in its source")
PATIENT = text("patient", "the patient's id in the source: the cluster of every interval")
QUESTION = text("question", "the question's id, a hash of its content")
TOPIC = text("topic", "what the question is about: a finding's name, or location, size, ...")
STEM = text("stem", "the question's wording, without its options")
RATER = text("rater", "the rater's name, or `consensus`", blank="a model's row")
SUBSET = text("subset", "the reader study's name in the config")
TRIAL = text("trial", "the trial's id, a hash of what reaches the model: equal ids put the same request")
RUN = Column("run", "which run, from 1", "whole", range=FROM_1)
VIEW = text("view", "the view's name in the config")
SECONDS = number("seconds", "how long it took", unit="s", range=FROM_0)
PROMPT_TOKENS = count("prompt_tokens", "tokens of the prompt, or of all prompts that a row sums", unit="tokens")
COMPLETION_TOKENS = count(
    "completion_tokens", "tokens of the response, or of all responses that a row sums", unit="tokens"
)
RUNS = Column("runs", "how many runs", "whole", range=FROM_1)
QUESTIONS = count("questions", "how many questions")
STUDIES = count("studies", "how many studies")
PATIENTS = count("patients", "how many patients: the clusters of the interval")
PAIRS = count("pairs", "how many pairs: one question in one run, answered in both arms")
LOW = number("low", "lower end of the estimate's interval")
HIGH = number("high", "upper end of the estimate's interval")
FLIP_RATE = share("flip_rate", "share of the pairs whose answers differ")
UNPAIRED = count("unpaired", "pairs left out because an arm was not answered")
FLOOR = share("floor", "the noise floor: how often the same questions flip when only the run changes")
FLOOR_LOW = share("floor_low", "lower end of the floor's interval")
FLOOR_HIGH = share("floor_high", "upper end of the floor's interval")
FLOOR_RATE = share("floor_rate", "share of the same questions that flip under the floor's change")
SURPLUS = difference("surplus", "flip_rate less floor_rate")
REPORT_SHOWN = text("report_shown", "the report that is shown beside the image")
P = share("p", "one-sided p that the estimate is above what no effect gives")
P_HOLM = share("p_holm", "the same, adjusted over the model's tests on the data set (Holm 1979)")
P_EQUIVALENT = share("p_equivalent", "p that it lies within the smallest effect, whatever lost answers hide")
BOUND_LOW = number("bound_low", "the least that the estimate may be, whatever the lost answers hide (Manski)")
BOUND_HIGH = number("bound_high", "the most that the estimate may be, whatever the lost answers hide")
PATIENTS_MOVED = count("patients_moved", "patients who show any change")
EFFECTIVE = number("effective", "as many patients of equal size would say as much", unit="patients", range=FROM_0)
