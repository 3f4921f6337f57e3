"""The verdict in words: a line per model and a sentence per data set, made of the adjusted tests alone.

All numbers stand in verdicts.csv, following.csv and gain.csv; by which rule a verdict is reached stands in
`estimates.inference.decide`. Nothing is decided here: each kind of verdict has its words, its opponent and its doubts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from overread.reporting.evidence import Answer, Evidence
from overread.reporting.rows import Row, number, where
from overread.reporting.words import SPACE, capital, count, interval, listed, percent, points
from overread.settings.report import Report
from overread.settings.setting import Setting

if TYPE_CHECKING:
    from overread.reporting.contrasts import Tables


@dataclass(frozen=True)
class Kind:
    """A kind of verdict in words.

    headline    what is said of the model first
    one, many   the end of "1 ..." and "2 ..." in the sentence on a data set
    """

    answer: Answer
    headline: str
    one: str
    many: str


KINDS: dict[tuple[str, str], Kind] = {
    ("does not use", "blind"): Kind(
        Answer.NONE, "Does not use the image", "does not use the image", "do not use the image"
    ),
    ("does not use", "no gain"): Kind(
        Answer.NONE, "Gains nothing from the image", "gains nothing from the image", "gain nothing from the image"
    ),
    ("does not use", "floor not measured"): Kind(
        Answer.NONE,
        "Does not read the image; whether it reacts to it was not measured",
        "does not read the image",
        "do not read the image",
    ),
    ("does not use", "reacts without reading"): Kind(
        Answer.NONE, "Reacts to the image without reading it", "reacts without reading", "react without reading"
    ),
    ("not tested", ""): Kind(
        Answer.DESCRIPTION, "Use of the image was not tested", "was not tested", "were not tested"
    ),
    ("cannot tell", "image reaches it, below the answer"): Kind(
        Answer.CANNOT_TELL,
        "The image reaches it, but below the answer; whether it reads it cannot be told",
        "is reached by the image below its answers",
        "are reached by the image below their answers",
    ),
    ("cannot tell", "reacts; reading open"): Kind(
        Answer.CANNOT_TELL,
        "Reacts to the image; whether it reads it cannot be told",
        "reacts, and whether it reads cannot be told",
        "react, and whether they read cannot be told",
    ),
    ("cannot tell", "reacts; floor not measured"): Kind(
        Answer.CANNOT_TELL,
        "Answers change with the image, against no measured floor; whether it reads it cannot be told",
        "changes its answers against no measured floor",
        "change their answers against no measured floor",
    ),
    ("cannot tell", "lost"): Kind(
        Answer.CANNOT_TELL,
        "Cannot tell whether it uses the image: too many answers are missing",
        "cannot be judged, since too many of its answers are missing",
        "cannot be judged, since too many of their answers are missing",
    ),
    ("cannot tell", "too few patients"): Kind(
        Answer.CANNOT_TELL,
        "Cannot tell whether it uses the image: too few patients",
        "cannot be judged with so few patients",
        "cannot be judged with so few patients",
    ),
    ("cannot tell", "open"): Kind(
        Answer.CANNOT_TELL, "Cannot tell whether it uses the image", "is undecided", "are undecided"
    ),
    ("uses", "reads less than the smallest effect"): Kind(
        Answer.MORE,
        "Reads the image, by less than the smallest effect that matters",
        "reads the image by less than matters",
        "read the image by less than matters",
    ),
    ("uses", "gains from the image"): Kind(
        Answer.MORE, "Gains from the image", "gains from the image", "gain from the image"
    ),
    ("uses", "reads"): Kind(Answer.MORE, "Reads the image", "reads the image", "read the image"),
}
"""By verdict and subclass, from the least use of the image to the most."""
ORDER = list(KINDS)
MAY_NOT_SEE = Kind(
    Answer.CANNOT_TELL,
    "May not see the image at all: look at the set-up first",
    "may not see the image",
    "may not see the image",
)
"""In place of `does not use`, where marks drawn on the picture are not seen either: a doubt about the set-up."""
NO_SIGHT = "Whether it sees the picture at all was not measured: no setting asks about marks drawn on it."
OPPONENTS = {
    "no image": "without an image", "black image": "with a black image", "blind arm": "with neither image nor report",
    "majority of the finding": "by always giving each finding's commonest answer",
}  # fmt: skip
DOUBTS = {
    "decoding-unknown": "How it draws its answers is not known: identical reruns may differ.",
    "few-events": "Few patients show any change, so the interval is wide.",
}
"""Reason codes of verdicts.csv that are told beside every verdict."""


@dataclass(frozen=True)
class Conclusion:
    """What is concluded of one model on one data set.

    number     how far its answers follow the picture that is shown, or its gain, with interval and adjusted p
    opponent   how it does against the opponent that it does worst against
    behind     the comparison that it rests on, its pairs and patients
    report     what the report does to it: silences, weakens, or empty
    lesion     what erasing the lesion does to its answers
    sight      how well it answers questions about marks drawn at random on the picture
    blind      whether it is not shown to see those
    doubts     what was not measured or is missing
    """

    dataset: str
    model: str
    kind: tuple[str, str]
    number: str = ""
    opponent: str = ""
    behind: str = ""
    report: str = ""
    lesion: str = ""
    sight: str = ""
    blind: bool = False
    doubts: tuple[str, ...] = ()
    size: float = 0.0

    @property
    def words(self) -> Kind:
        return MAY_NOT_SEE if self.blind and self.kind[0] == "does not use" else KINDS[self.kind]

    @property
    def rank(self) -> int:
        """How much use of the image is shown, as a place in `ORDER`."""
        return ORDER.index(self.kind)

    @property
    def sentence(self) -> str:
        """Number, opponent and doubts as sentences."""
        told = [f"{capital(part)}." for part in (self.number, self.opponent) if part]
        if self.report:
            told.append(f"The report {self.report} the image.")
        if self.lesion:
            told.append(f"{capital(self.lesion)}.")
        if self.sight:
            told.append(f"{capital(self.sight)}.")
        return " ".join([*told, *self.doubts])


def conclude(
    dataset: str,
    model: str,
    tables: Tables,
    spec: Mapping[str, Any],
) -> Conclusion:
    """The conclusion on a model from its rows of the tables; "not tested" where it has no verdict.

    spec   comparisons, settings and statistics are read
    """
    row = next(iter(tables.verdicts), None)
    if row is None or row["verdict"] == "not tested":
        return Conclusion(dataset, model, ("not tested", ""))
    of_model = where(tables.following, group="all")
    compared = spec["comparisons"].get(row["comparison"]) or {}
    pair = compared.get("flips") or compared.get("accuracy") or ("", "")
    own = where(tables.gain, setting=pair[0])
    gains = [one for one in own if number(one["gain"]) is not None]
    seen = _plainest(where(tables.sight, asked_about="all"))
    worst = min(gains, key=lambda one: number(one["gain"]) or 0.0, default=None)
    return Conclusion(
        dataset,
        model,
        (row["verdict"], row["subclass"]),
        number=_number(row),
        opponent=_against(worst) if worst is not None else "",
        behind=_behind(row),
        report=_report(row, of_model, spec) if row["verdict"] == "uses" else "",
        lesion=_lesion(where(tables.grounding, asked_about="all")),
        sight=_sight(seen, reads=row["verdict"] == "uses") if seen is not None else "",
        blind=seen is not None and seen["sees"] == "not shown",
        doubts=_doubts(row, spec) if seen is not None else (*_doubts(row, spec), *_not_asked(row)),
        size=number(row["following"]) or 0.0,
    )


def _number(row: Row) -> str:
    """How far its answers follow the picture; the surplus of changes where following could not be measured."""
    adjusted = number(row["p_holm"])
    test = "" if adjusted is None else f", {_p(adjusted)}"
    if number(row["following"]) is not None:
        evidence = Evidence.of(row, "following")
        told = f"its answers follow the picture that is shown by {points(evidence.estimate or 0.0)}"
        told += f" {interval(evidence.low, evidence.high)}{test}"
    else:
        told = "whether its answers follow the picture could not be measured: in no pair does the correct answer differ"
    if row["verdict"] == "does not use":
        told += f"; the smallest effect that matters is {points(number(row['smallest_effect']) or 0.0)}"
    if row["subclass"] == "image reaches it, below the answer" and number(row["auc"]) is not None:
        low, high = number(row["auc_low"]), number(row["auc_high"])
        told += f"; its log-probabilities tell the picture's label with an AUC of {number(row['auc']):.2f}"
        told += f" [{low:.2f}, {high:.2f}]" if low is not None and high is not None else ""
    return told


def _against(row: Row) -> str:
    """`correct 18.3 points less [...] than without an image`, balanced within each finding."""
    gain, low, high = (number(row[name]) for name in ("gain", "low", "high"))
    what = OPPONENTS[row["opponent"]]
    if gain is None or low is None or high is None:
        return ""
    size = f"{points(gain)} {interval(low, high)} balanced accuracy"
    if low > 0:
        return f"it does better with the image than {what}, its strongest opponent: {size}"
    if high < 0:
        return f"it does worse with the image than {what}: {size}"
    return f"it does not show that it does better with the image than {what}: {size}"


def _behind(row: Row) -> str:
    parts = [row["comparison"]]
    for name, word in (("questions", "pair"), ("patients", "patient")):
        found = number(row[name])
        parts += [count(found, word)] if found is not None else []
    return ", ".join(parts)


def _report(row: Row, following: Sequence[Row], spec: Mapping[str, Any]) -> str:
    """What showing the report does to a model that reads: the same swap beside the full report.

    silences  beside it, following is shown to lie within the smallest effect
    weakens   beside it, the whole interval of following lies below that without it
    """
    settings: Mapping[str, Setting] = spec["settings"]
    flips = (spec["comparisons"].get(row["comparison"]) or {}).get("flips")
    if not flips or settings[flips[0]][Report].shown:
        return ""
    alpha = (1 - spec["statistics"]["level"]) / 2
    for other in following:
        pair = spec["comparisons"][other["comparison"]]["flips"]
        alike = all(settings[a].difference(settings[b]).keys() == {"report"} for a, b in zip(flips, pair, strict=True))
        if not alike or settings[pair[0]][Report].report != "full":
            continue
        equivalent, high, low = number(other["p_equivalent"]), number(other["high"]), number(row["low"])
        if equivalent is not None and equivalent <= alpha:
            return "silences"
        if high is not None and low is not None and high < low:
            return "weakens"
    return ""


def _lesion(rows: Sequence[Row]) -> str:
    """What erasing the lesion changes beside what erasing as much elsewhere does: of the first setting with both."""
    if not rows:
        return ""
    row = rows[0]
    told = f"erasing the lesion changes {percent(number(row['flips_erased']) or 0.0)} of its answers, erasing as much "
    told += f"elsewhere {percent(number(row['flips_control']) or 0.0)}"
    size = points(number(row["grounding"]) or 0.0)
    return f"{told}: a difference of {size} {interval(number(row['low']), number(row['high']))}"


def _plainest(rows: Sequence[Row]) -> Row | None:
    """Of several settings with marks the one whose marks are the easiest to see."""
    return max(
        rows, default=None,
        key=lambda row: (number(row["mark_size"]) or 0.0) * abs(number(row["mark_contrast"]) or 0.0),
    )  # fmt: skip


def _sight(row: Row, *, reads: bool) -> str:
    """Who reads the picture sees it: such a model is only said not to answer about marks."""
    told = {"yes": "it sees", "in part": "it sees in part"}.get(row["sees"], "it may not see")
    correct, chance = number(row["accuracy"]), number(row["chance"])
    if correct is None or chance is None:
        return "whether it sees is not known: every question about marks failed"
    shares = f"{percent(correct)} {interval(number(row['low']), number(row['high']))}"
    answers = f"of questions about marks drawn on the picture it answers {shares} correctly"
    if reads and row["sees"] == "not shown":
        return f"{answers}, no more than chance ({percent(chance)})"
    return f"{told}: {answers} (chance {percent(chance)})"


def _not_asked(row: Row) -> tuple[str, ...]:
    """Said only where it would make a difference: who reads the picture sees it."""
    return (NO_SIGHT,) if row["verdict"] == "does not use" else ()


def _doubts(row: Row, spec: Mapping[str, Any]) -> tuple[str, ...]:
    reasons = row["reasons"].split(";")
    told = [text for code, text in DOUBTS.items() if code in reasons]
    if row["floor_kind"] == "not measured":
        told.append("How many answers change without a reason was not measured: neither a rerun nor a placebo was run.")
    lost = number(row["lost"])
    if lost is not None and lost > 0.02:
        limit = percent(spec["statistics"].get("lost", 0.1), 0)
        told.append(f"{percent(lost)} of the pairs lack an answer; beyond {limit} nothing is concluded.")
    return tuple(told)


def _p(value: float) -> str:
    return f"adjusted p{SPACE}<{SPACE}0.001" if value < 0.001 else f"adjusted p{SPACE}={SPACE}{value:.3f}"


def summary(conclusions: Sequence[Conclusion]) -> str:
    """One sentence on a data set: `Of 4 models, 2 read the image, 1 reacts without reading and 1 does not use the
    image; the report silences the image in both that read it.`
    """
    if not conclusions:
        return ""
    groups = list(Counter(one.words for one in sorted(conclusions, key=lambda one: -one.rank)).items())
    parts = [f"{many} {kind.one if many == 1 else kind.many}" for kind, many in groups]
    if len(conclusions) == 1:
        text = f"The one model {groups[0][0].one}"
    else:
        text = f"Of {len(conclusions)} models, {listed(parts)}"
    readers = [one for one in conclusions if one.kind[0] == "uses"]
    for word in ("silences", "weakens"):
        found = sum(one.report == word for one in readers)
        if found:
            text += f"; the report {word} the image in {_of(found, len(readers))}"
    return f"{text}."


def _of(found: int, readers: int) -> str:
    if readers == 1:
        return "the one that reads it"
    if found == readers:
        return "both that read it" if readers == 2 else f"all {readers} that read it"
    return f"{found} of the {readers} that read it"
