"""Which questions are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from overread.core.records import Question, content_hash
from overread.settings.base import Aspect

if TYPE_CHECKING:
    from overread.settings.setting import Setting


class Questions(Aspect):
    """All of a study's questions, or one."""

    name = "questions"
    title = "which questions are asked"
    rank = 70
    weight = 30
    manner = True
    changes_trials = False

    questions: Literal["all", "one-per-study"] = "all"

    def shows_the_study(self) -> bool:
        return False

    def words(self) -> str:
        return "one question per study" if self.questions == "one-per-study" else "all questions"

    def short(self) -> str:
        return "one question a study" if self.questions == "one-per-study" else ""

    def requests(self, questions: int | None, studies: int | None) -> int | None:
        return studies if self.questions == "one-per-study" else questions

    def ask(self, questions: list[Question], seed: int, setting: Setting) -> list[Question]:
        if self.questions == "all":
            return questions
        by_study: dict[str, list[Question]] = {}
        for question in questions:
            by_study.setdefault(question.study, []).append(question)
        return [
            min(those, key=lambda question: content_hash(["one per study", seed, question.question]))
            for those in by_study.values()
        ]
