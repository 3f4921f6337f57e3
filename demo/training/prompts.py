"""What the readers are asked in training: the very prompts of the trials stage, in a mixture of settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from demo.training.pictures import Pictures, Studies

from overread.backends.base import content
from overread.config import Config, FindingQuestions, Setting, load
from overread.core.records import Block, Picture, Question, Readout, Study
from overread.questions import findings
from overread.trials.build import build_trials
from overread.trials.prompt import Prompts
from overread_phantom import grammar

DEMO = Path(__file__).resolve().parents[2] / "config" / "demo.yaml"

Shown = Literal["own", "other", "black", "none"]
Order = Literal["image-first", "text-first"]
Part = Literal["none", "impression", "full"]
"""Of the report. An X-ray's impression names every finding that is there: it answers each question too."""


@dataclass(frozen=True)
class Turn:
    """A question with its answer, one of WORDS. Its weight makes up for the other answer being rarer."""

    question: Question
    answer: str
    weight: float = 1.0


@dataclass(frozen=True)
class Example:
    """A conversation: one picture or none, then questions with their answers, the first of them as a trial has it.

    text      as the chat template makes it, answers included
    weights   of the answers, in order
    right     the number of the right option, where options are listed and something tells which it is
    """

    text: str
    picture: Pictures | None
    weights: tuple[float, ...]
    right: str | None = None


class Asker:
    """Draws examples. Every draw comes from `rng`."""

    def __init__(self, xray: Studies, mri: Studies, processor: Any, rng: np.random.Generator) -> None:
        self.xray, self.mri, self.processor, self.rng = xray, mri, processor, rng
        self.prompts = Prompts()
        self.black = np.zeros_like(xray.pictures[0])
        self.section = demo_questions(load(DEMO))
        planted = list(xray.truth[0])
        acute = [finding for finding in self.section.composite if finding in planted]
        self.positive = {topic: np.array([one[topic] == "yes" for one in xray.truth]) for topic in planted}
        if acute:
            self.positive[findings.COMPOSITE] = np.any([self.positive[finding] for finding in acute], axis=0)

    def yes_no(
        self, shown: Shown, report: Part, *, questions: int = 1, balanced: bool = True, readout: Readout | None = None
    ) -> Example:
        """Findings of one study. With a report they are right about the report's study, whatever picture is beside it.

        balanced   each finding's yes and no weigh alike; else as often as they are
        """
        study = int(self.rng.integers(len(self.xray.truth)))
        other = int(self.rng.integers(len(self.xray.truth)))
        turns = []
        for topic in self.rng.permutation(list(self.positive))[:questions].tolist():
            yes = bool(self.positive[topic][study])
            share = float(self.positive[topic].mean()) if yes else 1 - float(self.positive[topic].mean())
            question = Question(
                study="s", patient="p", stem=findings.stem(self.section, topic), options=findings.YES_NO,
                answer="yes" if yes else "no", topic=topic, origin="findings",
            )  # fmt: skip
            turns.append(Turn(question, question.answer, 0.5 / share if balanced else 1.0))
        pictures = {
            "own": self.xray.pictures[study],
            "other": self.xray.pictures[other],
            "black": self.black,
            "none": None,
        }
        chosen = self._one(["yes-no", "first-token"]) if readout is None else readout
        return self._example(turns, pictures[shown], _part(self.xray.reports[study], report), chosen)

    def choice(
        self,
        shown: Literal["own", "black", "none"],
        report: Part,
        *,
        topics: Sequence[str] = tuple(grammar.TOPICS),
        options: int = 4,
        as_written: bool = False,
        order: Order | None = None,
    ) -> Example:
        """A question with options in random order, or with the right one where the grammar puts it.

        options   how many; trials have four, and fewer are for the beginning
        """
        study = int(self.rng.integers(len(self.mri.truth)))
        shares = np.array(grammar.POSITION_SHARES if as_written else [1.0] * options)
        topic = self._one(list(topics))
        answer = self.mri.truth[study][topic]
        others = [value for value in grammar.TOPICS[topic].values if value != answer]
        shown_options = [others[place] for place in self.rng.permutation(len(others))[: options - 1]]
        shown_options.insert(int(self.rng.choice(options, p=shares / shares.sum())), answer)
        question = Question(
            study="s", patient="p", stem=self._one(list(grammar.TOPICS[topic].stems)), options=tuple(shown_options),
            answer=answer, topic=topic, origin="grammar",
        )  # fmt: skip
        turn = Turn(question, str(shown_options.index(answer) + 1))
        picture = {"own": self.mri.pictures[study], "black": self.black, "none": None}[shown]
        return self._example([turn], picture, _part(self.mri.reports[study], report), "choice", order)

    def _example(
        self,
        turns: list[Turn],
        picture: Pictures | None,
        report: dict[str, str],
        readout: Readout,
        order: Order | None = None,
    ) -> Example:
        setting = Setting(
            images="none" if picture is None else "view",
            report="full" if report else "none",
            order=self._one(["image-first", "image-first", "text-first"]) if order is None else order,
            readout=readout,
        )
        conversation: list[dict[str, Any]] = []
        for number, turn in enumerate(turns):
            asked = setting if number == 0 else Setting(readout=readout)
            parts = [
                {"type": "image"} if isinstance(part, Path) else {"type": "text", "text": part}
                for part in content(self._blocks(asked, turn.question, report))
            ]
            conversation.append({"role": "user", "content": parts})
            conversation.append({"role": "assistant", "content": [{"type": "text", "text": turn.answer}]})
        text = str(self.processor.apply_chat_template(conversation, tokenize=False))
        told = bool(report) or (picture is not None and picture is not self.black)
        right = turns[0].answer if readout == "choice" and told else None
        return Example(text, picture, tuple(turn.weight for turn in turns), right)

    def _blocks(self, setting: Setting, question: Question, report: dict[str, str]) -> tuple[Block, ...]:
        study = Study(
            study=question.study, patient=question.patient, dataset="training", modality="xray", images={},
            report=report, labels={}, restricted=False,
        )  # fmt: skip
        trials, _ = build_trials(
            [question], [study], [_PICTURE], [], setting=setting, name="training", run=1,
            truth=lambda study, topic: None, prompts=self.prompts, seed=0,
        )  # fmt: skip
        return trials[0].blocks

    def _one(self, choices: list[Any]) -> Any:
        return choices[int(self.rng.integers(len(choices)))]


def _part(report: dict[str, str], part: Part) -> dict[str, str]:
    if part == "none":
        return {}
    return report if part == "full" else {"impression": report["impression"]}


_PICTURE = Picture(
    study="s", view="view", order=0, name="picture", path="picture.png", pixels="0", width=64, height=64, series="s"
)


def demo_questions(config: Config) -> FindingQuestions:
    """The questions section of the demo's X-rays, which the composite's wording comes from."""
    section = config.datasets["phantom-xray"].questions
    assert isinstance(section, FindingQuestions)
    return section


def corpus(xray: Studies, mri: Studies, processor: Any) -> list[str]:
    """Texts that the tokenizer is learnt from."""
    asker = Asker(xray, mri, processor, np.random.default_rng(0))
    texts = [asker.yes_no("none", "full", questions=2).text for _ in range(1000)]
    return texts + [asker.choice("none", "full").text for _ in range(1000)]
