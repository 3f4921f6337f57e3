"""From questions to trials: who is shown what, in which order, and what would be right."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from overread.config import Setting
from overread.core.errors import BadInput
from overread.core.records import Picture, Question, Study, Substitute, Trial, content_hash
from overread.images.black import black_twin
from overread.trials.options import permutation
from overread.trials.prompt import Prompts, blocks
from overread.trials.reports import LeftOutError, Reports

Truth = Callable[[Study, str], str | None]
"""The text of the option that is right for a study and a topic; None where it is not known."""


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
) -> tuple[list[Trial], Counter[str]]:
    """The trials of one setting and run, and how many questions were left out, by reason.

    A question is left out where the setting can't be made for its study: no report, no substitute, no picture of the
    view. BadInput if nothing remains.

    reports   makes the reports that are shown; else with Overread's own words and lengths in words
    """
    reports = reports or Reports(prompts)
    by_id = {study.study: study for study in studies}
    views: dict[str, list[Picture]] = defaultdict(list)
    for picture in pictures:
        if picture.view == setting.images:
            views[picture.study].append(picture)
    partner = {(one.study, one.topic): one.substitute for one in substitutes if one.number == setting.substitute}
    asked = sorted(questions, key=lambda question: question.question)
    if setting.questions == "one-per-study":
        asked = _one_per_study(asked, seed)

    trials: list[Trial] = []
    left_out: Counter[str] = Counter()
    for question in asked:
        study = by_id.get(question.study)
        if study is None:
            left_out["its study was rejected"] += 1
            continue
        topic = question.topic
        other = by_id.get(partner.get((study.study, topic), partner.get((study.study, ""), "")))
        shown: Study | None = study
        if setting.source == "substitute":
            shown = other
        if shown is None:
            left_out["no substitute for its study"] += 1
            continue
        images = sorted(views[shown.study], key=lambda picture: picture.order)
        if setting.images != "none" and not images:
            left_out[f"no picture of view {setting.images}"] += 1
            continue
        if setting.source == "black":
            images = [black_twin(picture) for picture in images]
        try:
            report = reports.show(setting.report, question, study, other, partial(_truth, truth, topic))
        except LeftOutError as reason:
            left_out[str(reason)] += 1
            continue
        order = permutation(question, setting.options, seed)
        options = tuple(question.options[place] for place in order)
        trials.append(
            Trial(
                dataset=study.dataset,
                setting=name,
                run=run,
                question=question.question,
                topic=question.topic,
                study=study.study,
                patient=study.patient,
                image_study=shown.study if setting.shows_the_study else None,
                image_patient=shown.patient if setting.shows_the_study else None,
                label=truth(study, question.topic),
                image_label=truth(shown, question.topic) if setting.shows_the_study else None,
                blocks=blocks(setting, question, options, images, report.blocks, prompts),
                options=options,
                permutation=order,
                answer=order.index(question.answer_index),
                readout=setting.readout,
                attention=setting.attention,
                report_label=report.label,
                dropped=report.dropped,
                restricted=study.restricted or shown.restricted or (other is not None and other.restricted),
            )
        )
    if not trials:
        reasons = "; ".join(f"{count} questions: {reason}" for reason, count in left_out.items())
        raise BadInput(f"setting {name!r} has no trial ({reasons or 'there are no questions'})")
    return trials, left_out


def _truth(truth: Truth, topic: str, study: Study) -> str | None:
    return truth(study, topic)


def _one_per_study(questions: Sequence[Question], seed: int) -> list[Question]:
    by_study: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        by_study[question.study].append(question)
    return [
        min(those, key=lambda question: content_hash(["one per study", seed, question.question]))
        for those in by_study.values()
    ]
