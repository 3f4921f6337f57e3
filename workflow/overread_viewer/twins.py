"""Which settings put a question otherwise, and what each changes: a trial's swapped, black and no-report twins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from overread.reporting import words
from overread_viewer.catalogue import Catalogue

ASPECTS: dict[str, tuple[str, ...]] = {
    "image": ("images", "source", "substitute"),
    "report": ("report", "warning"),
    "options": ("options",),
    "order": ("order",),
    "attention": ("attention",),
    "readout": ("readout",),
}
"""What of a trial a setting decides, and by which fields. Which questions it asks changes no trial."""


@dataclass(frozen=True)
class Twin:
    """Another setting under which the question was asked.

    aspects   what differs: keys of `ASPECTS`
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
        return self.aspects == ("image",)


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
        changes = "; ".join(_change(aspect, settings[name]) for aspect in aspects) or "nothing that reaches the model"
        found.append(Twin(name, at, aspects, changes, {setting, name} in pairs))
    return sorted(found, key=lambda twin: _order(twin, this, settings[twin.setting]))


def differing(one: Mapping[str, Any], two: Mapping[str, Any]) -> tuple[str, ...]:
    """The aspects in which two settings differ."""
    return tuple(name for name, fields in ASPECTS.items() if _of(one, fields) != _of(two, fields))


def _of(setting: Mapping[str, Any], fields: tuple[str, ...]) -> list[Any]:
    """Fields by what they do: whose substitute it is does not matter where none is shown."""
    matters = setting["source"] == "substitute" or setting["report"] == "substitute"
    return [setting[name] for name in fields if name != "substitute" or matters]


def _order(twin: Twin, this: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[object, ...]:
    wanted = "own" if this["source"] == "substitute" else "substitute"
    same_view = this["images"] == other["images"]
    return (
        not twin.swaps_the_image,
        len(twin.aspects),
        not (twin.compared and other["source"] != "black" and same_view),
        not (other["source"] == wanted and same_view),
        not twin.compared,
        twin.setting,
    )


def _change(aspect: str, setting: Mapping[str, Any]) -> str:
    says = {
        "image": words.image_of,
        "report": words.report_of,
        "options": words.options_of,
        "readout": words.readout_of,
    }
    if aspect in says:
        return says[aspect](setting)
    if aspect == "order":
        return "the text before the image" if setting["order"] == "text-first" else "the image before the text"
    return attention_of(setting["attention"])


def attention_of(attention: str) -> str:
    """`from-2` in words."""
    if attention == "none":
        return "the report is hidden from no layer"
    kind, layer = attention.split("-", 1)
    where = f"from layer {layer} on" if kind == "from" else f"in layer {layer} only"
    return f"the report is hidden {where}"


def _pairs(comparison: Mapping[str, Any]) -> list[list[str]]:
    return [list(pair) for pair in (comparison.get("flips"), comparison.get("accuracy")) if pair]


def _runs(catalogue: Catalogue, dataset: str, setting: str, run: int) -> list[int]:
    """The runs of a setting, the wanted one first."""
    most = max(catalogue.runs(dataset, model, setting) for model in catalogue.models(dataset))
    return sorted(range(1, most + 1), key=lambda one: (one != run, one))


def _asks(catalogue: Catalogue, dataset: str, setting: str, run: int, question: str) -> bool:
    return question in catalogue.asked(dataset, setting, run).rows
