"""A decision as a form has it: its fields, what is wrong with each, and the `Decision` that it makes."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError

from overread.core.records import Question, one_line
from overread.curation.candidates import Wording
from overread.curation.filter import problems
from overread.curation.review import Decision
from overread.curation.rules import Rules

LONGEST = {"stem": 1000, "option": 400, "reason": 1000, "name": 60}
"""Characters."""

REASONS = (
    "Ambiguous: more than one option fits",
    "The answer is not what the report says",
    "Can't be answered from the images",
    "Needs earlier studies or the history",
    "Not clinically relevant",
    "Can be answered without looking",
)
"""What is often wrong with a generated question; any other words do as well."""


@dataclass
class Form:
    """What was typed about a question. An error stands beside its field, and the text stays.

    options    one text an option, in the order as written
    answer     place of the right option
    despite    whether an edit is meant though the rules would drop it
    objections what the rules have against the edit
    """

    stem: str
    options: list[str]
    answer: int
    reason: str = ""
    despite: bool = False
    decision: str = ""
    errors: dict[str, str] = field(default_factory=dict)
    objections: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, question: Question, decided: Decision | None) -> Form:
        """The question as it is, with what was decided about it before."""
        edited = decided.edited(question) if decided is not None and decided.decision == "edit" else question
        return cls(
            edited.stem, list(edited.options), edited.answer_index, decided.reason if decided is not None else "",
            decision=decided.decision if decided is not None else "",
        )  # fmt: skip

    @classmethod
    def read(cls, fields: Mapping[str, object], question: Question) -> Form:
        """What a browser sent. Fields that are not there are the question's own."""
        form = cls.of(question, None)
        form.decision = _text(fields.get("decision"))
        form.reason = _text(fields.get("reason"))
        form.despite = _text(fields.get("despite")) == "yes"
        form.stem = _text(fields.get("stem"), form.stem)
        form.options = [_text(fields.get(f"option_{k}"), own) for k, own in enumerate(form.options, start=1)]
        answer = _text(fields.get("answer"), str(form.answer + 1))
        if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= len(form.options):
            form.answer = int(answer) - 1
        else:
            form.errors["answer"] = "Say which option is correct."
        return form

    @property
    def wording(self) -> Wording:
        return Wording(stem=self.stem, options=tuple(self.options), answer=self.options[self.answer])

    def check_edit(self, question: Question, rules: Rules) -> None:
        """Fill in what is wrong with the wording, and what the rules have against it."""
        for name, text, kind in (("stem", self.stem, "stem"), *self._named_options()):
            if not text:
                self.errors[name] = "Is empty." if kind == "stem" else "An option is empty."
            else:
                self._check_text(name, text, kind)
        seen: dict[str, int] = {}
        for place, option in enumerate(self.options, start=1):
            if option and seen.setdefault(option, place) != place:
                self.errors[f"option_{place}"] = f"Is the same as option {seen[option]}."
        if not self.errors:
            self.objections = problems(self.wording, rules)
            if not self._changes(question):
                self.errors["edit"] = "Nothing is changed. Change something, or accept the question."

    def make(self, question: Question, reviewer: str, rules: Rules) -> Decision | None:
        """The decision; None with `errors`, or with `objections` that were not overruled."""
        if self.decision not in ("accept", "edit", "reject"):
            self.errors["decision"] = "Accept, edit or reject."
        if self.decision != "accept":
            self._check_text("reason", self.reason, "reason")
        if self.decision == "reject" and not self.reason:
            self.errors["reason"] = "A rejection needs a reason."
        if self.decision == "edit":
            self.check_edit(question, rules)
        else:
            self.errors.pop("answer", None)
        if self.errors or (self.objections and not self.despite):
            return None
        try:
            decision = Decision(
                question=question.question,
                reviewer=reviewer,
                decision=self.decision,
                reason="" if self.decision == "accept" else self.reason,
                **(self._changes(question) if self.decision == "edit" else {}),
            )
            decision.edited(question)
        except ValidationError as error:
            self.errors["edit"] = one_line(error)
            return None
        return decision

    def _changes(self, question: Question) -> dict[str, object]:
        """The parts of a `Decision` that an edit names: those that differ. Empty if nothing does."""
        changed: dict[str, object] = {}
        if self.stem != _text(question.stem):  # spaces alone are no edit: a form changes them
            changed["stem"] = self.stem
        pairs = [(new, _text(old)) for new, old in zip(self.options, question.options, strict=True)]
        if any(new != old for new, old in pairs):
            changed["options"] = tuple(new if new != old else None for new, old in pairs)
        if self.answer != question.answer_index:
            changed["answer"] = self.options[self.answer]
        return changed

    def _named_options(self) -> list[tuple[str, str, str]]:
        return [(f"option_{place}", text, "option") for place, text in enumerate(self.options, start=1)]

    def _check_text(self, name: str, text: str, kind: str) -> None:
        if wrong := wrong_text(text, LONGEST[kind]):
            self.errors[name] = wrong


def wrong_text(text: str, longest: int) -> str:
    """What is wrong with a text that somebody typed, or nothing."""
    if len(text) > longest:
        return f"Is {len(text)} characters long; at most {longest} are taken."
    if any(unicodedata.category(sign) in ("Cc", "Cs", "Co", "Cn") for sign in text):
        return "Holds a character that can't be shown."
    return ""


def _text(value: object, otherwise: str = "") -> str:
    """One line, without spaces at its ends: what a CSV sheet gives back as it was."""
    return " ".join(value.split()) if isinstance(value, str) else otherwise
