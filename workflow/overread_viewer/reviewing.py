"""What there is to review in a run: the generated questions that passed the rules, with what was said about each."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.datastructures import QueryParams

from overread.config import GeneratedQuestions
from overread.core.cells import row_as_it_was
from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.records import Question, read_questions
from overread.curation.candidates import Candidate, read_candidates
from overread.curation.review import Decision, sample
from overread.curation.rules import OWN_RULES, Rules, read_rules
from overread_viewer.catalogue import Catalogue
from overread_viewer.decided import Decided, disagreements
from overread_viewer.errors import BadRequest
from overread_viewer.kept import Kept

SHOWS = {"sample": "The sample", "all": "All questions"}
STATES = {
    "open": "Not decided by you",
    "any": "Any",
    "accept": "Accepted by you",
    "edit": "Edited by you",
    "reject": "Rejected by you",
    "reworded": "Reworded by the validator",
    "disputed": "Edited in different ways",
}
LONGEST_SEARCH = 200


@dataclass(frozen=True)
class Material:
    """The questions of a dataset that people can decide about.

    questions   by id, in the order of study and id: the ids that `apply-review` knows
    sampled     those that are drawn for people to look through
    trail       by question: where it came from, a row of trail.csv
    candidates  by name: as the validator left them
    rules       what code checks
    """

    section: GeneratedQuestions
    questions: Mapping[str, Question]
    sampled: frozenset[str]
    trail: Mapping[str, Mapping[str, str]]
    candidates: Mapping[str, Candidate]
    rules: Rules

    @property
    def topics(self) -> list[str]:
        return sorted({one.topic for one in self.questions.values()})

    def candidate(self, question: str) -> Candidate | None:
        """What a question was made of, if the files of the run still say so."""
        return self.candidates.get(self.trail.get(question, {}).get("candidate", ""))


class Reviewing:
    """The review of a run: its material, and what was decided. Made once for an app."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._kept = Kept()
        self._decided: dict[str, Decided] = {}
        self.folder = catalogue.results / "review"

    def nothing(self, dataset: str) -> str:
        """Why a dataset has nothing to review; empty where it has.

        raises  NotThere for a dataset that the run does not have
        """
        self._catalogue.folder(dataset)
        section = self._section(dataset)
        origin = section.get("origin", "")
        if origin != "generated":
            return WHY_NOT.get(origin, f"its questions are of origin {origin!r}, which no model wrote")
        if not self._path(dataset, "kept.jsonl").is_file():
            return (
                "its generated questions have not been through the rules yet; run the workflow, or "
                "`snakemake sheets`, first"
            )
        return ""

    def material(self, dataset: str) -> Material:
        """The questions of a dataset to be reviewed: only where `nothing` is empty.

        raises  BadInput for a file of the run that is missing or damaged
        """
        kept, trail, validated = (self._path(dataset, name) for name in ("kept.jsonl", "trail.csv", "validated.jsonl"))
        section = GeneratedQuestions.model_validate(self._section(dataset))
        rules = Path(section.rules) if section.rules else OWN_RULES

        def made() -> Material:
            questions = read_questions(kept)
            drawn = sample(questions, section.review.look_through, section.review.seed)
            return Material(
                section=section,
                questions={one.question: one for one in questions},
                sampled=frozenset(one.question for one in drawn),
                trail={row["question"]: row for row in _rows(trail)},
                candidates={one.name: one for one in read_candidates(validated)} if validated.is_file() else {},
                rules=read_rules(rules),
            )

        material: Material = self._kept.get(kept, made, also=(trail, validated, rules))
        return material

    def decided(self, dataset: str) -> Decided:
        """What was decided about a dataset's questions."""
        self._catalogue.folder(dataset)
        return self._decided.setdefault(dataset, Decided(self.folder / f"{dataset}.jsonl"))

    def sheet(self, dataset: str) -> Path:
        """Where the sheet for `apply-review` is written."""
        return self.folder / f"{dataset}.csv"

    def _section(self, dataset: str) -> dict[str, Any]:
        section: dict[str, Any] = self._catalogue.spec["datasets"].get(dataset, {}).get("questions", {})
        return section

    def _path(self, dataset: str, name: str) -> Path:
        return self._catalogue.folder(dataset) / "questions" / name


WHY_NOT = {
    "grammar": "its questions were written by the grammar that wrote its reports: question, options and answer follow "
    "from what was planted, and no model had a hand in them",
    "findings": "its questions are one fixed wording for each finding, and the answers are the labels of the data set; "
    "no model had a hand in them",
    "file": "its questions come from a file of yours and are taken as they stand there",
}
"""By origin of the questions."""


@dataclass(frozen=True)
class Filters:
    """Which questions are gone through, from the query of a page."""

    show: str = "sample"
    state: str = "open"
    topic: str = ""
    text: str = ""

    @classmethod
    def read(cls, query: QueryParams | Mapping[str, str]) -> Filters:
        """BadRequest for a value that there is not."""
        made = cls(
            query.get("show") or "sample", query.get("state") or "open", query.get("topic") or "",
            (query.get("text") or "").strip(),
        )  # fmt: skip
        for name, value, known in (("show", made.show, SHOWS), ("state", made.state, STATES)):
            if value not in known:
                raise BadRequest(f"{name}: no {value!r}; there are: {', '.join(known)}")
        if len(made.text) > LONGEST_SEARCH:
            raise BadRequest(f"text: longer than {LONGEST_SEARCH} characters")
        return made

    @property
    def items(self) -> dict[str, str]:
        """What a link must carry to keep them: all that is not the default."""
        values = {"show": self.show, "state": self.state, "topic": self.topic, "text": self.text}
        usual = {"show": "sample", "state": "open", "topic": "", "text": ""}
        return {name: value for name, value in values.items() if value != usual[name]}

    def fits(self, material: Material, one: Question) -> bool:
        """Whether a question is among those gone through, whatever was decided about it."""
        if self.show == "sample" and one.question not in material.sampled:
            return False
        if self.topic and one.topic != self.topic:
            return False
        wanted = self.text.casefold()
        texts = (one.stem, one.study, one.question, one.evidence, *one.options)
        return not wanted or any(wanted in text.casefold() for text in texts)


@dataclass(frozen=True)
class Standing:
    """Where the review of a dataset stands, for one reviewer (or nobody in particular)."""

    reviewer: str
    decisions: Mapping[str, Mapping[str, Decision]]
    disputed: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, decided: Decided, reviewer: str) -> Standing:
        decisions = decided.by_reviewer()
        return cls(reviewer, decisions, disagreements(decisions))

    @property
    def own(self) -> Mapping[str, Decision]:
        return self.decisions.get(self.reviewer, {})

    def others(self, question: str) -> list[Decision]:
        """What others decided about a question, by name. Told only to somebody who has decided it too."""
        if question not in self.own:
            return []
        return [of[question] for name, of in sorted(self.decisions.items()) if name != self.reviewer and question in of]

    def has(self, state: str, material: Material, question: str) -> bool:
        """Whether a question is in a state of `STATES`."""
        if state == "open":
            return question not in self.own
        if state == "disputed":
            return question in self.disputed
        if state == "reworded":
            return material.trail.get(question, {}).get("rewritten") == "True"
        return state == "any" or (question in self.own and self.own[question].decision == state)


def listed(material: Material, standing: Standing, filters: Filters) -> list[Question]:
    """The questions that fit filters and state, in order."""
    return [
        one
        for one in material.questions.values()
        if filters.fits(material, one) and standing.has(filters.state, material, one.question)
    ]


def neighbours(
    material: Material, standing: Standing, filters: Filters, question: str
) -> tuple[Question | None, Question | None]:
    """The questions before and after one that fit filters and state; after the last comes the first again.

    The question itself need not fit: once it is decided, it is not open any more.
    """
    order = list(material.questions.values())
    at = next((place for place, one in enumerate(order) if one.question == question), 0)
    fitting = {one.question for one in listed(material, standing, filters)} - {question}
    around = [one for one in order[at + 1 :] + order[:at] if one.question in fitting]
    return (around[-1], around[0]) if around else (None, None)


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with regular(path).open(newline="", encoding="utf-8") as file:
            return [row_as_it_was(row) for row in csv.DictReader(file)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path}: can't be read: {error}; run the workflow again") from None
