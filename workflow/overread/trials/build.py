"""From questions to trials: who is shown what, in which order, and what would be right."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from overread.config import Setting
from overread.errors import BadInput
from overread.records import Picture, Question, Study, Substitute, Trial, content_hash
from overread.trials.options import permutation
from overread.trials.prompt import Prompts, blocks

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
) -> tuple[list[Trial], Counter[str]]:
    """The trials of one setting and run, and how many questions were left out, by reason.

    A question is left out where the setting can't be made for its study: no report, no substitute, no picture of the
    view. BadInput if nothing remains.
    """
    by_id = {study.study: study for study in studies}
    views: dict[str, list[Picture]] = defaultdict(list)
    for picture in pictures:
        if picture.view == setting.images:
            views[picture.study].append(picture)
    partner = {one.study: one.substitute for one in substitutes}
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
        shown = study
        if setting.source == "substitute":
            if question.study not in partner:
                left_out["no substitute for its study"] += 1
                continue
            shown = by_id[partner[question.study]]
        images = sorted(views[shown.study], key=lambda picture: picture.order)
        if setting.images != "none" and not images:
            left_out[f"no picture of view {setting.images}"] += 1
            continue
        if setting.source == "black":
            images = [_black(picture) for picture in images]
        if setting.report != "none" and not study.report:
            left_out["its study has no report"] += 1
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
                blocks=blocks(
                    setting, question, options, images, study.report if setting.report != "none" else {}, prompts
                ),
                options=options,
                permutation=order,
                answer=order.index(question.answer_index),
                readout=setting.readout,
                attention=setting.attention,
                restricted=study.restricted or shown.restricted,
            )
        )
    if not trials:
        reasons = "; ".join(f"{count} questions: {reason}" for reason, count in left_out.items())
        raise BadInput(f"setting {name!r} has no trial ({reasons or 'there are no questions'})")
    return trials, left_out


def _one_per_study(questions: Sequence[Question], seed: int) -> list[Question]:
    by_study: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        by_study[question.study].append(question)
    return [
        min(those, key=lambda question: content_hash(["one per study", seed, question.question]))
        for those in by_study.values()
    ]


def _black(picture: Picture) -> Picture:
    """The black picture of the same size; `overread images index` wrote it."""
    path = f"images/black/{picture.width}x{picture.height}.png"
    return picture.model_copy(update={"path": path, "pixels": _black_pixels(picture.width, picture.height)})


@cache
def _black_pixels(width: int, height: int) -> str:
    """`overread.images.render.pixel_hash` of a grey picture of zeros, without making the picture."""
    return hashlib.sha256(f"L:{width}x{height}:".encode() + bytes(width * height)).hexdigest()
