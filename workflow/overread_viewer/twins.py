"""Which settings put a question otherwise, and what each changes: a trial's swapped, black and no-report twins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from overread.config import Setting
from overread.settings.base import Aspect
from overread.settings.image import Image
from overread_viewer.catalogue import Catalogue


@dataclass(frozen=True)
class Twin:
    """Another setting under which the question was asked.

    aspects   the names of the aspects of a setting that differ
    changes   the same in words: what the twin has
    compared  whether a comparison of the study pairs the two
    """

    setting: str
    run: int
    aspects: tuple[str, ...]
    changes: str
    compared: bool

    @property
    def swaps_the_image(self) -> bool:
        """Whether only the image differs."""
        return self.aspects == (Image.name,)


def twins(catalogue: Catalogue, dataset: str, setting: str, run: int, question: str) -> list[Twin]:
    """The other settings under which a question was asked, those first that differ in the image alone.

    Among these a pair that the study compares comes first, then the one with another study's image (of a swapped trial:
    its own), then black and no image; after them all that differ in one other thing, and so on.
    """
    settings = catalogue.spec["settings"]
    this = settings[setting]
    pairs = [set(pair) for one in catalogue.spec.get("comparisons", {}).values() for pair in _pairs(one)]
    found = []
    for name in catalogue.settings(dataset):
        if name == setting:
            continue
        at = next(
            (one for one in _runs(catalogue, dataset, name, run) if _asks(catalogue, dataset, name, one, question)),
            None,
        )
        if at is None:
            continue
        aspects = differing(this, settings[name])
        changes = "; ".join(settings[name].words_of(aspect) for aspect in aspects) or "nothing that reaches the model"
        found.append(Twin(name, at, tuple(one.name for one in aspects), changes, {setting, name} in pairs))
    return sorted(found, key=lambda twin: _order(twin, this, settings[twin.setting]))


def differing(one: Setting, two: Setting) -> tuple[type[Aspect], ...]:
    """The aspects in which two settings put a question otherwise. Which questions are asked changes no trial."""
    return tuple(kind for kind in one.differing(two) if kind.changes_trials)


def _order(twin: Twin, this: Setting, other: Setting) -> tuple[object, ...]:
    one, two = this[Image], other[Image]
    wanted = "own" if one.source == "substitute" else "substitute"
    same_view = one.images == two.images
    return (
        not twin.swaps_the_image,
        len(twin.aspects),
        not (twin.compared and two.source != "black" and same_view),
        not (two.source == wanted and same_view),
        not twin.compared,
        twin.setting,
    )


def _pairs(comparison: Mapping[str, Any]) -> list[list[str]]:
    return [list(pair) for pair in (comparison.get("flips"), comparison.get("accuracy")) if pair]


def _runs(catalogue: Catalogue, dataset: str, setting: str, run: int) -> list[int]:
    """The runs of a setting, the wanted one first."""
    most = max(catalogue.runs(dataset, model, setting) for model in catalogue.models(dataset))
    return sorted(range(1, most + 1), key=lambda one: (one != run, one))


def _asks(catalogue: Catalogue, dataset: str, setting: str, run: int, question: str) -> bool:
    return question in catalogue.asked(dataset, setting, run).rows
