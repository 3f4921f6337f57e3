"""From questions to trials: who is shown what, in which order, and what would be correct.

What a setting does to a trial its aspects do, each in its own module of `overread.settings`; here they are given what
trials are made of.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from overread.config import Setting
from overread.core.errors import BadInput
from overread.core.records import Block, Picture, Question, Role, Study, Substitute, Trial
from overread.edits.shared.controls import ORIGIN
from overread.images.black import black_twin
from overread.settings.base import Aspect, Draft, LeftOutError, ReportShown
from overread.settings.image import Image
from overread.trials.prompt import Prompts, image_blocks, option_texts
from overread.trials.reports import Reports

Truth = Callable[[Study, str], str | None]
"""The text of the option that is correct for a study and a topic; None where it is not known."""


def build_trials(
    questions: Iterable[Question],
    studies: Sequence[Study],
    pictures: Iterable[Picture],
    substitutes: Iterable[Substitute],
    *,
    setting: Setting,
    name: str,
    run: int,
    truth: Truth,
    prompts: Prompts,
    seed: int,
    reports: Reports | None = None,
    not_shown: Mapping[tuple[str, str], str] | None = None,
) -> tuple[list[Trial], Counter[str]]:
    """The trials of one setting and run, and how many questions were left out, by reason.

    A question is left out where the setting can't be made for its study: no report, no substitute, no picture of the
    view. BadInput if nothing remains.

    reports   makes the reports that are shown; else with Overread's own words and lengths in words
    not_shown by study and view, why there is no picture of it
    """
    by_id = {study.study: study for study in studies}
    view, aspects = setting.view(setting[Image].images), setting.aspects
    reports = reports or Reports(prompts)
    materials = Materials(by_id, pictures, view, substitutes, truth, prompts, reports, seed, not_shown)
    trials: list[Trial] = []
    left_out: Counter[str] = Counter()
    for question in setting.ask(sorted(questions, key=lambda question: question.question), seed):
        study = by_id.get(question.study)
        if study is None:
            left_out["its study was rejected"] += 1
            continue
        draft = Draft(question, study, materials, view)
        try:
            _fill(draft, aspects, prompts)
        except LeftOutError as reason:
            left_out[str(reason)] += 1
            continue
        trials.append(_trial(draft, name, run, truth))
    if not trials:
        reasons = "; ".join(f"{count} questions: {reason}" for reason, count in left_out.items())
        raise BadInput(f"setting {name!r} has no trial ({reasons or 'there are no questions'})")
    return trials, left_out


def _fill(draft: Draft, aspects: Sequence[Aspect], prompts: Prompts) -> None:
    """What the aspects make of a draft. LeftOutError where one of them can't."""
    for aspect in aspects:
        aspect.show(draft)
    for aspect in aspects:
        aspect.tell(draft)
    images = image_blocks(draft.pictures, prompts)
    draft.blocks, draft.images = images + draft.blocks, len(images)
    for aspect in aspects:
        aspect.arrange(draft)


def _trial(draft: Draft, name: str, run: int, truth: Truth) -> Trial:
    question, study, shown = draft.question, draft.study, draft.image_of
    own = question.origin == ORIGIN  # what an edit of the very picture shown makes true
    return Trial(
        dataset=study.dataset,
        setting=name,
        run=run,
        question=question.question,
        topic=question.topic,
        study=study.study,
        patient=study.patient,
        image_study=shown.study if shown else None,
        image_patient=shown.patient if shown else None,
        label=question.answer if own else truth(study, question.topic),
        image_label=question.answer if own else truth(shown, question.topic) if shown else None,
        blocks=tuple(draft.blocks),
        options=draft.options,
        permutation=draft.permutation,
        answer=draft.permutation.index(question.answer_index),
        readout=draft.readout,
        attention=draft.attention,
        controls=draft.controls,
        report_label=draft.report_label,
        dropped=draft.dropped,
        restricted=study.restricted or (draft.substitute is not None and draft.substitute.restricted),
    )


class Materials:
    """What the trials of one setting are made of."""

    def __init__(
        self,
        studies: dict[str, Study],
        pictures: Iterable[Picture],
        view: str,
        substitutes: Iterable[Substitute],
        truth: Truth,
        prompts: Prompts,
        reports: Reports,
        seed: int,
        not_shown: Mapping[tuple[str, str], str] | None = None,
    ) -> None:
        self.seed, self._not_shown = seed, not_shown or {}
        self._studies, self._truth, self._prompts, self._reports = studies, truth, prompts, reports
        self._pictures: dict[str, list[Picture]] = defaultdict(list)
        for picture in pictures:
            if picture.view == view:
                self._pictures[picture.study].append(picture)
        self._partners = {(one.study, one.topic, one.number): one.substitute for one in substitutes}

    def substitute(self, question: Question, number: int) -> Study | None:
        partners, study = self._partners, question.study
        of_all = partners.get((study, "", number), "")
        return self._studies.get(partners.get((study, question.topic, number), of_all))

    def pictures(self, study: Study, view: str) -> list[Picture]:
        found = sorted((one for one in self._pictures[study.study] if one.view == view), key=lambda one: one.order)
        if not found and (study.study, view) in self._not_shown:
            raise LeftOutError(self._not_shown[study.study, view])
        return found

    def black(self, picture: Picture) -> Picture:
        return black_twin(picture)

    def text(self, role: Role, template: str, **values: Any) -> list[Block]:
        return self._prompts.text(role, template, **values)

    def option_texts(self, question: Question, options: Sequence[str]) -> list[Block]:
        return option_texts(question, options, self._prompts)

    def report(self, name: str, draft: Draft) -> ReportShown:
        truth = partial(_truth, self._truth, draft.question.topic)
        return self._reports.show(name, draft.question, draft.study, draft.substitute, truth)


def _truth(truth: Truth, topic: str, study: Study) -> str | None:
    return truth(study, topic)
