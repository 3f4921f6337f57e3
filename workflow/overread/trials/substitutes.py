"""Whose image takes the place of a study's own.

Another study of the same patient where there is one, else of another patient; one with other findings where there is
one. Among equals a hash of the pair decides (rendezvous hashing): the choice does not depend on the order of the
studies, and a study that is added or taken away changes only the pairs that it wins or leaves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from overread.records import Picture, Study, Substitute, content_hash


def choose_substitutes(studies: Sequence[Study], pictures: Iterable[Picture], seed: int) -> list[Substitute]:
    """One substitute a study that has pictures; a study for which there is none is left out.

    A substitute is never the study itself and never shows the same pixels in any view.
    """
    pixels: dict[str, set[str]] = defaultdict(set)
    for picture in pictures:
        pixels[picture.study].add(picture.pixels)
    shown = sorted((study for study in studies if study.study in pixels), key=lambda study: study.study)
    by_patient: dict[str, list[Study]] = defaultdict(list)
    for study in shown:
        by_patient[study.patient].append(study)
    findings = {study.study: _findings(study) for study in shown}

    chosen = []
    for study in shown:

        def usable(candidates: Iterable[Study], own: Study = study) -> list[Study]:
            return [one for one in candidates if one.study != own.study and not pixels[one.study] & pixels[own.study]]

        candidates = usable(by_patient[study.patient])
        patient = "same patient"
        if not candidates:
            candidates = usable(one for one in shown if one.patient != study.patient)
            patient = "another patient"
        if not candidates:
            continue
        other = [one for one in candidates if findings[one.study] != findings[study.study]]
        best = min(other or candidates, key=lambda one: content_hash(["substitute", seed, study.study, one.study]))
        chosen.append(
            Substitute(
                study=study.study,
                patient=study.patient,
                substitute=best.study,
                substitute_patient=best.patient,
                why=f"{patient}, {'other' if other else 'same'} findings",
            )
        )
    return chosen


def _findings(study: Study) -> frozenset[tuple[str, str]]:
    """What is there: an X-ray's positive findings, an MRI's facts."""
    return frozenset(item for item in study.labels.items() if item[1] not in ("negative", "uncertain"))
