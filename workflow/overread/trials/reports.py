"""The report that a trial shows: as it is, edited, another patient's, or whatever a template makes of it.

`full` and `substitute` are the template `report.j2` with the study's own sections and with the substitute's. Every
other name is the template `report-<name>.j2`, Overread's or the user's: an edit is one file. What a template is given
is listed in config/README.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from overread.core.records import Block, Question, Study, content_hash
from overread.settings.base import LeftOutError, ReportShown
from overread.settings.report import UNINFORMED
from overread.trials.lengths import TOLERANCE, Measure, fitted, in_words
from overread.trials.mentions import Lexicon, read_lexicon
from overread.trials.prompt import Prompts
from overread.trials.sentences import paragraphs, sentences


class Reports:
    """Makes reports from the templates of `prompts`.

    lexicon    the words by which sentences mention a finding; else Overread's own
    measure    how long a text is
    composite  for the topic of a composite question: the topics that it takes in
    """

    def __init__(
        self,
        prompts: Prompts,
        lexicon: Lexicon | None = None,
        measure: Measure = in_words,
        composite: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.prompts = prompts
        if lexicon is not None:
            self.lexicon = lexicon
        self.measure = measure
        self.composite = composite or {}
        self._prose: dict[tuple[tuple[str, ...], str, str], str] = {}

    @cached_property
    def lexicon(self) -> Lexicon:
        """Overread's own words, read where a template asks for them."""
        return read_lexicon()

    def show(
        self,
        name: str,
        question: Question,
        study: Study,
        substitute: Study | None,
        truth: Callable[[Study], str | None],
    ) -> ReportShown:
        """The report of a setting's `report: <name>`.

        truth    the right option of the question's topic in a study
        raises   LeftOutError where the study or its substitute has no report, where nothing says which sentences are
                 about the question, and where no text of the report's length can be made; BadInput for a template that
                 is not there or can't be rendered
        """
        if name == "none":
            return ReportShown(blocks=(), label=None)
        if name == "substitute":
            if substitute is None:
                raise LeftOutError("no substitute for its study")
            sections = _sections(substitute)
            if not sections:
                raise LeftOutError("its substitute has no report")
            return ReportShown(tuple(self._full(sections)), label=truth(substitute))
        sections = _sections(study)
        if not sections:
            raise LeftOutError("its study has no report")
        if name == "full":
            return ReportShown(tuple(self._full(sections)), label=truth(study))
        edit = _Edit(self, question, study)
        blocks = self.prompts.text(
            "report",
            f"report-{name}",
            sections=sections,
            question=question,
            answer=question.answer,
            study=study,
            labels=study.labels,
            attributes=study.attributes,
            substitute=_sections(substitute) if substitute is not None else {},
            **edit.functions,
        )
        if edit.fitted:
            self._check_length(blocks, self._full(sections))
        label = None if name in UNINFORMED else truth(study)
        return ReportShown(tuple(blocks), label=label, dropped=tuple(edit.dropped))

    def _full(self, sections: Mapping[str, str]) -> list[Block]:
        return self.prompts.text("report", "report", sections=dict(sections))

    def _check_length(self, blocks: Sequence[Block], full: Sequence[Block]) -> None:
        made, wanted = (sum(self.measure(block.text or "") for block in each) for each in (blocks, full))
        if abs(made - wanted) > TOLERANCE * wanted:
            raise LeftOutError("no text of its report's length")

    def prose(self, pool: Sequence[str], like: str, study: str) -> str:
        """Sentences as long as a text, from a place in `pool` that it and the study draw. Made once a study."""
        key = (tuple(pool), like, study)
        if key not in self._prose:
            start = int(content_hash(["prose", study, like]), 16)
            self._prose[key] = fitted(pool, self.measure(like), self.measure, start)
        return self._prose[key]

    def topics(self, question: Question) -> tuple[str, ...]:
        """What a question is about, and what a composite one takes in."""
        return (question.topic, *self.composite.get(question.topic, ()))


def _sections(study: Study) -> dict[str, str]:
    return {name: text for name, text in study.report.items() if text.strip()}


class _Edit:
    """What the functions of a template do for one question, and what they did."""

    def __init__(self, reports: Reports, question: Question, study: Study) -> None:
        self.reports, self.question, self.study = reports, question, study
        self.dropped: list[str] = []
        self.fitted = False

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        return {"fit": self.fit, "without_finding": self.without_finding, "sentences": sentences}

    def fit(self, pool: Sequence[str], like: str) -> str:
        """Sentences of `pool` as long as `like`; where they begin is drawn by study and text, alike in all settings."""
        self.fitted = True
        return self.reports.prose(pool, like, self.study.study)

    def without_finding(self, sections: Mapping[str, str]) -> dict[str, str]:
        """The sections less the sentences about the question; one of which nothing is left is left out."""
        topics = self.reports.topics(self.question)
        evidence = [_spoken(sentence) for sentence in sentences(self.question.evidence)]
        if not evidence and not self.reports.lexicon.knows_any(topics):
            raise LeftOutError(f"no words for its topic {self.question.topic!r} in {self.reports.lexicon.source.name}")
        kept: dict[str, str] = {}
        for name, text in sections.items():
            before = len(self.dropped)
            rest = [self._rest(paragraph, topics, evidence) for paragraph in paragraphs(text)]
            if len(self.dropped) == before:
                kept[name] = text
            elif any(rest):
                kept[name] = "\n".join(paragraph for paragraph in rest if paragraph)
        return kept

    def _rest(self, paragraph: str, topics: Sequence[str], evidence: Sequence[str]) -> str:
        kept = []
        for sentence in sentences(paragraph):
            spoken = _spoken(sentence)
            carries = any(spoken and (spoken in one or one in spoken) for one in evidence)
            if carries or self.reports.lexicon.mentions(sentence, topics):
                self.dropped.append(sentence)
            else:
                kept.append(sentence)
        return " ".join(kept)


def _spoken(text: str) -> str:
    """The words of a text, between spaces: what makes two sentences the same."""
    from overread.core.text import words

    spoken = " ".join(words(text))
    return f" {spoken} " if spoken else ""
