"""Whose image takes the place of a study's own.

Another study of the same patient where there is one, else of another patient; one with other findings where there is
one. Among equals a hash of the pair decides (rendezvous hashing): the choice does not depend on the order of the
studies, a study that is added or taken away changes only the pairs that it wins or leaves, and each study is taken as
often as any of its equals but for chance.

What a substitute must be like beyond that is the config's: of the same view, with the same other findings, with the
answer to the question changed or kept. The last two give each topic substitutes of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from overread.config import FindingQuestions, Questions, Substitutes
from overread.core.records import Picture, Study, Substitute, content_hash
from overread.images.black import is_black


def choose_substitutes(
    studies: Sequence[Study],
    pictures: Iterable[Picture],
    seed: int,
    wanted: Substitutes | None = None,
    questions: Questions | None = None,
) -> list[Substitute]:
    """The substitutes of each study that has pictures; a study for which there is none is left out.

    A substitute is never the study itself and never shows the same pixels in any view, black pictures aside: slices
    above the head are alike in all studies.

    wanted      what they must be like, and how many there are; else one of any kind
    questions   what is asked: says which answer is right for a study, where each topic has substitutes of its own
    raises      ValueError if each topic is to have its own and `questions` is not given
    """
    return list(_Choice(studies, pictures, seed, wanted or Substitutes(), questions).all())


class _Choice:
    def __init__(
        self,
        studies: Sequence[Study],
        pictures: Iterable[Picture],
        seed: int,
        wanted: Substitutes,
        questions: Questions | None,
    ) -> None:
        if wanted.by_topic and questions is None:
            raise ValueError("substitutes for each topic need the questions that are asked")
        self.seed, self.wanted, self.questions = seed, wanted, questions
        self.pixels: dict[str, set[str]] = defaultdict(set)
        for picture in pictures:
            self.pixels[picture.study].update(() if is_black(picture) else (picture.pixels,))
        self.shown = sorted((study for study in studies if study.study in self.pixels), key=lambda study: study.study)
        self.findings = {study.study: _findings(study) for study in self.shown}
        self.by_patient: dict[str, list[Study]] = defaultdict(list)
        for study in self.shown:
            self.by_patient[study.patient].append(study)

    def all(self) -> Iterator[Substitute]:
        for study in self.shown:
            candidates = self._ranked(study)
            for topic in self.topics:
                fitting = (one for one in candidates if self._fits(study, one, topic))
                for number, one in zip(range(1, self.wanted.count + 1), fitting, strict=False):
                    yield Substitute(
                        study=study.study,
                        patient=study.patient,
                        substitute=one.study,
                        substitute_patient=one.patient,
                        why=self._why(study, one),
                        topic=topic,
                        number=number,
                    )

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """The topics that have substitutes of their own; one empty name if all share them."""
        if not self.wanted.by_topic:
            return ("",)
        if isinstance(self.questions, FindingQuestions):
            from overread.questions.findings import topics

            return tuple(topics(self.questions))
        return tuple(sorted({topic for study in self.shown for topic in study.labels}))

    def _ranked(self, study: Study) -> _Lazily:
        """The best first: of the same patient with other findings, with the same ones, then of other patients."""
        whose = {"same-if-possible": (True, False), "same": (True,), "another": (False,)}[self.wanted.patient]
        return _Lazily(self._tier(study, same_patient, other) for same_patient in whose for other in (True, False))

    def _tier(self, study: Study, same_patient: bool, other: bool) -> list[Study]:
        """Equals, in an order that is drawn by each pair."""
        own = self.by_patient[study.patient]
        pool = own if same_patient else (one for one in self.shown if one.patient != study.patient)
        mine = self.findings[study.study]
        equals = [one for one in pool if (self.findings[one.study] != mine) == other]
        return sorted(equals, key=lambda one: content_hash(["substitute", self.seed, study.study, one.study]))

    def _fits(self, study: Study, one: Study, topic: str) -> bool:
        if one.study == study.study or not self.pixels[one.study].isdisjoint(self.pixels[study.study]):
            return False
        for name in self.wanted.same_attributes:
            if not study.attributes.get(name) or study.attributes.get(name) != one.attributes.get(name):
                return False
        for name in self.wanted.other:
            if not study.labels.get(name) or not one.labels.get(name) or study.labels[name] == one.labels[name]:
                return False
        if self.wanted.finding != "any":
            mine, others = self._truth(study, topic), self._truth(one, topic)
            if mine is None or others is None or (mine == others) != (self.wanted.finding == "kept"):
                return False
        if self.wanted.same_other_findings:
            asked = self._parts(topic)
            mine_, others_ = ({f for f in self.findings[each.study] if f[0] not in asked} for each in (study, one))
            return mine_ == others_
        return True

    def _truth(self, study: Study, topic: str) -> str | None:
        from overread.questions import truth

        assert self.questions is not None
        return truth(self.questions, study, topic)

    def _parts(self, topic: str) -> frozenset[str]:
        from overread.questions.findings import COMPOSITE

        if topic == COMPOSITE and isinstance(self.questions, FindingQuestions):
            return frozenset(self.questions.composite)
        return frozenset({topic})

    def _why(self, study: Study, one: Study) -> str:
        patient = "same patient" if one.patient == study.patient else "another patient"
        return f"{patient}, {'other' if self.findings[one.study] != self.findings[study.study] else 'same'} findings"


class _Lazily:
    """Studies tier by tier, as often as asked. A tier is made when it is reached: few studies look beyond the first."""

    def __init__(self, tiers: Iterable[list[Study]]) -> None:
        self._tiers, self._made = iter(tiers), list[list[Study]]()

    def __iter__(self) -> Iterator[Study]:
        place = 0
        while True:
            if place == len(self._made):
                tier = next(self._tiers, None)
                if tier is None:
                    return
                self._made.append(tier)
            yield from self._made[place]
            place += 1


def _findings(study: Study) -> frozenset[tuple[str, str]]:
    """What is there: an X-ray's positive findings, an MRI's facts."""
    return frozenset(item for item in study.labels.items() if item[1] not in ("negative", "uncertain"))
