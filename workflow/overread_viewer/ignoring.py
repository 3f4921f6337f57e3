"""Which model ignores the image most, by the run's own tables, and one trial that shows it.

Models are ranked within a dataset by how often their answer changes when the image alone is swapped: over the pairs
whose correct answer differs between the two images where the tables have them, since there a reader that looks has to
change it. The verdict beside it is the report's. Nothing is computed here that the tables have not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from overread.reporting.contrasts import Tables, contrast, rate, signed
from overread.reporting.evidence import FEWEST_PATIENTS, Evidence
from overread.reporting.examples import swap_pairs
from overread.reporting.report import EVIDENCE
from overread.reporting.rows import Row, number, where
from overread.reporting.verdict import Judgement, judge
from overread.reporting.words import count, listed
from overread.settings.image import Image
from overread.settings.report import Report
from overread_viewer.catalogue import Catalogue


@dataclass(frozen=True)
class Rate:
    """A flip rate or a gain of accuracy, of so many pairs."""

    evidence: Evidence
    pairs: int | None

    @property
    def text(self) -> str:
        """`20.9 % [19.7, 22.1]`."""
        return rate(self.evidence)

    @property
    def difference(self) -> str:
        """`+16.7 points [15.6, 17.7]`."""
        return signed(self.evidence)


@dataclass(frozen=True)
class Example:
    """A trial whose answer stayed though the swapped image shows something else.

    truth, image_truth  the right option by the study's own image and by the one shown instead
    said                what the model answered to both
    """

    setting: str
    run: int
    question: str
    study: str
    image_study: str
    stem: str
    truth: str
    image_truth: str
    said: str


@dataclass(frozen=True)
class Ranked:
    """A model on a dataset. Rates are none where the tables have none.

    changed  flips where the right answer differs between the two images
    every    flips over all pairs
    beside   flips over the same pairs as `by` with the report beside the image
    gain     accuracy with the own image less accuracy without it
    """

    model: str
    label: str
    judgement: Judgement
    changed: Rate | None
    every: Rate | None
    beside: Rate | None
    gain: Rate | None
    example: Example | None


@dataclass(frozen=True)
class Ranking:
    """The models of a dataset, from the one that ignores the image most.

    comparison  the swap that they are ranked by; none where no image was swapped, then by the gain
    pair        its settings: the own image, another study's
    gain        what the gain compares, in words
    lead        who comes first, in a sentence
    """

    dataset: str
    comparison: str | None
    pair: tuple[str, str] | None
    beside: str | None
    gain: str | None
    rows: tuple[Ranked, ...]
    lead: str


def ranking(catalogue: Catalogue, dataset: str) -> Ranking:
    """The ranking of a dataset; kept until a table or an answer changes."""
    made: Ranking = catalogue.from_tables(f"ranking of {dataset}", lambda: _ranking(catalogue, dataset))
    return made


def _ranking(catalogue: Catalogue, dataset: str) -> Ranking:
    spec = catalogue.spec
    there = set(catalogue.tables())
    evidence = Tables(*(catalogue.table(name) if name in there else [] for name in EVIDENCE))
    swap = _swap(catalogue, dataset)
    pair = swap_pairs(spec)[swap] if swap is not None else None
    beside = _beside(spec, pair, evidence.flips, dataset)
    gain = _gain(spec, pair, evidence.effects, dataset)
    rows = []
    for model in catalogue.models(dataset):
        own = evidence.of(dataset, model)
        rows.append(
            Ranked(
                model=model,
                label=catalogue.label(model),
                judgement=judge(dataset, model, evidence, spec),
                changed=_flips(own.flips, swap, "label-changed"),
                every=_flips(own.flips, swap, "all"),
                beside=_flips(own.flips, beside, "label-changed") or _flips(own.flips, beside, "all"),
                gain=_difference(own.effects, gain, spec),
                example=_example(catalogue, dataset, model, pair) if pair is not None else None,
            )
        )
    rows.sort(key=lambda row: (_key(row), row.label))
    return Ranking(dataset, swap, pair, beside, _in_words(spec, gain), tuple(rows), _lead(rows, swap is not None))


# -- which comparison ------------------------------------------------------------------------------------------------


def _swap(catalogue: Catalogue, dataset: str) -> str | None:
    """The swap to rank by: that of most models, of those without a report before those with one."""
    models = {
        name: sum(
            all(catalogue.runs(dataset, model, setting) for setting in pair) for model in catalogue.models(dataset)
        )
        for name, pair in swap_pairs(catalogue.spec).items()
    }
    asked = [name for name, count in models.items() if count]
    if not asked:
        return None
    settings, pairs = catalogue.spec["settings"], swap_pairs(catalogue.spec)
    return min(asked, key=lambda name: (-models[name], settings[pairs[name][0]][Report].shown, name))


def _beside(spec: Mapping[str, Any], pair: tuple[str, str] | None, flips: Sequence[Row], dataset: str) -> str | None:
    """The swap whose settings differ from those of `pair` in the report alone, and have the whole of it."""
    if pair is None:
        return None
    settings = spec["settings"]
    for name, other in swap_pairs(spec).items():
        alike = all(contrast(settings[a], settings[b]) == "report" for a, b in zip(pair, other, strict=True))
        if alike and settings[other[0]][Report].report == "full" and where(flips, dataset=dataset, comparison=name):
            return name
    return None


def _gain(spec: Mapping[str, Any], pair: tuple[str, str] | None, effects: Sequence[Row], dataset: str) -> str | None:
    """The comparison of accuracy with and without the image: of the setting that is ranked by, else of any."""
    found = []
    for name, comparison in spec["comparisons"].items():
        first, second = comparison.get("accuracy") or ("", "")
        settings = spec["settings"]
        if first not in settings or second not in settings or not where(effects, dataset=dataset, effect=name):
            continue
        if contrast(settings[first], settings[second]) == "image":
            own = first if settings[first][Image].own else second
            found.append((pair is None or own != pair[0], settings[own][Report].shown, name))
    return min(found)[2] if found else None


def _in_words(spec: Mapping[str, Any], gain: str | None) -> str | None:
    if gain is None:
        return None
    first, second = spec["comparisons"][gain]["accuracy"]
    other = second if spec["settings"][first][Image].own else first
    return f"accuracy with the study's own image less accuracy {spec['settings'][other][Image].instead()}"


# -- its numbers -----------------------------------------------------------------------------------------------------


def _flips(rows: Sequence[Row], comparison: str | None, group: str) -> Rate | None:
    found = where(rows, comparison=comparison, group=group) if comparison is not None else []
    if not found or number(found[0]["flip_rate"]) is None:
        return None
    return Rate(Evidence.of(found[0], "flip_rate"), int(number(found[0]["pairs"]) or 0))


def _difference(rows: Sequence[Row], gain: str | None, spec: Mapping[str, Any]) -> Rate | None:
    found = where(rows, effect=gain) if gain is not None else []
    if not found or number(found[0]["estimate"]) is None:
        return None
    evidence = Evidence.of(found[0], "estimate")
    first, _ = spec["comparisons"][gain]["accuracy"]
    return Rate(evidence if spec["settings"][first][Image].own else evidence.negated(), None)


def _by(row: Ranked) -> Rate | None:
    return row.changed or row.every or row.gain


def _key(row: Ranked) -> tuple[bool, float]:
    """Those without a number come last."""
    by = _by(row)
    return (by is None, 0.0 if by is None or by.evidence.estimate is None else by.evidence.estimate)


def _lead(rows: Sequence[Ranked], swapped: bool) -> str:
    """Who comes first, and of whom that can't be told; nothing where there is no number."""
    known = [(row, one.evidence) for row in rows for one in [_by(row)] if one is not None]
    if not known:
        return ""
    evidence = known[0][1]
    if evidence.patients < FEWEST_PATIENTS:
        return f"With {count(evidence.patients, 'patient')} it cannot be told which model ignores the image most."
    first = [row.label for row, other in known if other.estimate == evidence.estimate]
    close = [
        row.label
        for row, other in known[len(first) :]
        if other.low is not None and evidence.high is not None and other.low <= evidence.high
    ]
    several = len(first) > 1
    said = f"{'ignore' if several else 'ignores'} the image most"
    if not swapped:
        said = f"{'gain' if several else 'gains'} least from the image"
    also = f"; by the intervals, {listed(close)} may be no different" if close else ""
    return f"{listed(first)} {said}{also}."


# -- one trial that shows it -----------------------------------------------------------------------------------------


def _example(catalogue: Catalogue, dataset: str, model: str, pair: tuple[str, str]) -> Example | None:
    """The first by its id of the questions of run 1 whose answer was right and stayed though the truth changed; where
    none was right, of those whose answer stayed."""
    swapped = pair[1]
    if not all(catalogue.runs(dataset, model, setting) for setting in pair):
        return None
    one, other = (catalogue.answers(dataset, model, setting, 1) for setting in pair)
    asked = catalogue.asked(dataset, swapped, 1)
    before = np.array([one.rows.get(question, -1) for question in other.question], dtype=np.int64)
    rows = np.array([asked.rows[question] for question in other.question], dtype=np.int64)
    choice = np.where(before >= 0, one.choice[before], -1) if len(one.choice) else np.full(len(before), -1)
    label, image_label = asked.label[rows], asked.image_label[rows]
    differs = np.array(
        [b is not None and a is not None and a != b for a, b in zip(label, image_label, strict=True)], bool
    )
    stayed = (other.choice >= 0) & (choice == other.choice) & differs
    right = stayed & one.correct[before] if len(one.choice) else stayed
    pool = np.flatnonzero(right if right.any() else stayed)
    if not len(pool):
        return None
    row = min(pool, key=lambda place: str(other.question[place]))
    question = catalogue.question(dataset, str(other.question[row]))
    return Example(
        setting=swapped,
        run=1,
        question=question.question,
        study=question.study,
        image_study=str(asked.image_study[rows[row]]),
        stem=question.stem,
        truth=str(label[row]),
        image_truth=str(image_label[row]),
        said=question.options[int(other.choice[row])],
    )
