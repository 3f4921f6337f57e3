"""From candidates to questions: each is kept, or dropped by one rule that is named.

Stages in their order: the validator's tag, the code checks, the keywords, the duplicates. What is dropped is kept in
`rejected.jsonl` with the stage, the rule and the words that decided; how many came to each rule and left it is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from overread.core.cells import harmless
from overread.core.columns import QUESTION, STUDY, number, text
from overread.core.csv_files import CsvFile
from overread.core.errors import BadInput
from overread.core.records import Question, Record, Study, replacing
from overread.curation.candidates import Candidate, Wording
from overread.curation.checks import CHECKS, Check, Grounds, answer_of, evidence_in_report
from overread.curation.duplicates import duplicates
from overread.curation.rules import Keywords, Rules, hits

DUPLICATE_RULES = ("within-study", "across-studies", "near")


class Rejected(Record):
    """A candidate that was dropped, with what decided."""

    candidate: str
    study: str
    patient: str
    stem: str
    options: tuple[str, ...]
    answer: str
    stage: str
    rule: str
    evidence: str
    origin: str
    request: str


@dataclass(frozen=True)
class Count:
    """A row of the funnel: how many came to a rule, and how many it dropped."""

    stage: str
    rule: str
    came: int
    dropped: int

    @property
    def left(self) -> int:
        return self.came - self.dropped


@dataclass(frozen=True)
class Trail:
    """Where a kept question came from: the way back to the sentence of the report."""

    question: str
    candidate: str
    study: str
    origin: str
    author_request: str
    validator: str
    rewritten: bool
    sections: str
    evidence_score: float
    evidence: str


TRAIL = CsvFile(
    "<dataset>/questions/trail.csv",
    "Where each question that was kept came from.",
    (
        QUESTION,
        text("candidate", "the id of what its author wrote"),
        STUDY,
        text("origin", "what wrote it: grammar, findings, or a model's id"),
        text("author_request", "the request key under which the author's answer is kept"),
        text("validator", "the model that checked it", blank="none did"),
        text("rewritten", "whether the validator changed it", values=("True", "False")),
        text("sections", "the report's sections that its evidence stands in, joined by `+`"),
        number("evidence_score", "how well the evidence fits the report", unit="per cent", range=(0, 100)),
        text("evidence", "the sentence of the report that it came from"),
    ),
    decimals=1,
)


@dataclass(frozen=True)
class Filtered:
    questions: tuple[Question, ...]
    rejected: tuple[Rejected, ...]
    funnel: tuple[Count, ...]
    trail: tuple[Trail, ...]


def filter_candidates(candidates: Iterable[Candidate], studies: Iterable[Study], rules: Rules) -> Filtered:
    """Every rule on every candidate that the rules before it kept.

    The result does not depend on the order of the candidates: they are taken by study and place in the author's reply.
    raises   BadInput for a candidate of a study that is not there, or that occurs twice
    """
    reports = {study.study: study for study in studies}
    left = sorted(candidates, key=lambda one: (one.study, one.index, one.content))
    _fitting(left, reports)
    rejected: list[Rejected] = []
    funnel = [Count("generated", "", len(left), 0)]
    grounds: dict[str, Grounds] = {}

    def apply(stage: str, rule: str, judge: Callable[[Candidate], str | None]) -> None:
        nonlocal left
        verdicts = [(one, judge(one)) for one in left]
        rejected.extend(_rejected(one, stage, rule, why) for one, why in verdicts if why is not None)
        funnel.append(Count(stage, rule, len(left), sum(why is not None for _, why in verdicts)))
        left = [one for one, why in verdicts if why is None]

    def ground(one: Candidate) -> str | None:
        grounds[one.name] = evidence_in_report(one.evidence, one.reasoning, reports[one.study].report, rules)
        return grounds[one.name].problem

    def repeats(rule: str, one: Candidate) -> str | None:
        found, earlier = repeated.get(one.name, ("", ""))
        return f"the same as {earlier}" if found == rule else None

    apply("validation", "not-judged", _not_judged)
    apply("validation", "tagged-no", _tagged_no)
    apply("checks", "evidence", ground)
    for rule, check in CHECKS.items():
        apply("checks", rule, partial(_checked, check, rules))
    for rule, keywords in rules.keywords.items():
        apply("keywords", rule, partial(_keyword, keywords))
    asked = [(one.name, one.study, one.wording) for one in left]
    repeated = {name: (rule, earlier) for name, rule, earlier in duplicates(asked, rules.duplicates)}
    for rule in DUPLICATE_RULES:
        apply("duplicates", rule, partial(repeats, rule))
    funnel.append(Count("kept", "", len(left), 0))
    questions = [_question(one, grounds[one.name], rules) for one in left]
    trail = [_trail(one, question, grounds[one.name]) for one, question in zip(left, questions, strict=True)]
    return Filtered(tuple(questions), tuple(rejected), tuple(funnel), tuple(trail))


def problems(wording: Wording, rules: Rules) -> list[str]:
    """All that checks and keywords say against a wording, as `rule: why`: for a question that a person edited."""
    checked = [(rule, check(wording, rules)) for rule, check in CHECKS.items()]
    searched = [(rule, _keyword(keywords, wording)) for rule, keywords in rules.keywords.items()]
    return [f"{rule}: {why}" for rule, why in checked + searched if why is not None]


def topic_of(stem: str, rules: Rules) -> str:
    """The first topic one of whose terms the stem holds; `other` if there is none."""
    return next((topic for topic, terms in rules.topics.items() if hits(stem, terms)), "other")


def _not_judged(one: Candidate) -> str | None:
    return "the validator gave no verdict" if one.tag in (None, "REFUSED") else None


def _tagged_no(one: Candidate) -> str | None:
    return (one.tag_reason or "no reason given") if one.tag == "NO" else None


def _checked(check: Check, rules: Rules, one: Candidate) -> str | None:
    return check(one.wording, rules)


def _keyword(keywords: Keywords, asked: Wording) -> str | None:
    parts = {"stem": (asked.stem,), "options": asked.options, "answer": (asked.answer,)}
    for name in keywords.look_in:
        for part in parts[name]:
            if found := hits(part, keywords.terms, keywords.but):
                return f"{found[0]!r} in {part!r}"
    return None


def _fitting(candidates: Sequence[Candidate], studies: Mapping[str, Study]) -> None:
    names: set[str] = set()
    for one in candidates:
        if one.study not in studies:
            raise BadInput(f"candidate {one.name}: no study {one.study!r} among the studies")
        if one.name in names:
            raise BadInput(f"candidate {one.name} occurs twice")
        names.add(one.name)


def _rejected(one: Candidate, stage: str, rule: str, why: str) -> Rejected:
    asked = one.model_dump(include={"study", "patient", "stem", "options", "answer", "origin", "request"})
    return Rejected(candidate=one.name, stage=stage, rule=rule, evidence=why, **asked)


def _question(one: Candidate, grounds: Grounds, rules: Rules) -> Question:
    answer = answer_of(one.wording)
    assert answer is not None, "the answer check lets no other through"
    return Question(
        study=one.study,
        patient=one.patient,
        stem=one.stem,
        options=one.options,
        answer=answer,
        topic=topic_of(one.stem, rules),
        evidence=grounds.text,
        origin=one.origin,
    )


def _trail(one: Candidate, question: Question, grounds: Grounds) -> Trail:
    return Trail(
        question=question.question,
        candidate=one.name,
        study=one.study,
        origin=one.origin,
        author_request=one.request,
        validator=one.validator or "",
        rewritten=one.rewritten,
        sections="+".join(grounds.sections),
        evidence_score=round(grounds.score, 1),
        evidence=grounds.text,
    )


def write_rejected(rejected: Iterable[Rejected], path: Path) -> None:
    """One JSON object a line, sorted by candidate."""
    ordered = sorted(rejected, key=lambda one: one.candidate)
    with replacing(path) as temporary:
        temporary.write_text("".join(f"{one.model_dump_json()}\n" for one in ordered), encoding="utf-8")


def write_trail(trail: Sequence[Trail], path: Path) -> None:
    """A row a kept question, in the order of the questions' file."""
    TRAIL.write(path, (asdict(one) for one in sorted(trail, key=lambda one: (one.study, one.question))), guard=harmless)
