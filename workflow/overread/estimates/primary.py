"""Which comparisons a verdict rests on: those that the config names, else those that follow from what there is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from overread.config import Comparison, Statistics
from overread.settings.image import Image
from overread.settings.report import Report
from overread.settings.setting import Setting


def is_swap(comparison: Comparison, settings: Mapping[str, Setting]) -> bool:
    """Whether a flip comparison changes the study's own picture for another study's and nothing else."""
    a, b = (settings.get(name) for name in comparison.settings)
    if comparison.flips is None or comparison.kind is not None or a is None or b is None:
        return False
    swaps = a[Image].own and b[Image].shown and b[Image].source == "substitute"
    # Which of a study's substitutes it is does not make it another kind of swap.
    return swaps and a.difference(b).keys() <= {"source", "substitute"}


def primary_family(
    names: Iterable[str], statistics: Statistics, comparisons: Mapping[str, Comparison], settings: Mapping[str, Setting]
) -> tuple[str, ...]:
    """The comparisons that the verdict on a model rests on, of those that it has cells for (`names`), sorted.

    Those that the config names under `statistics.primary`; else the first of these kinds that it has any of:
    swaps without a report; swaps beside the full report; accuracy with the own image over none or a black one, without
    a report. The image stands first, all questions are asked, nothing is hidden and no warning given.
    """
    there = sorted(names)
    if statistics.primary:
        return tuple(name for name in there if name in statistics.primary)
    for report in ("none", "full"):
        found = tuple(
            name
            for name in there
            if is_swap(comparisons[name], settings) and _plain(settings[comparisons[name].settings[0]], report)
        )
        if found:
            return found
    return tuple(name for name in there if _is_gain(comparisons[name], settings))


def _plain(setting: Setting, report: str) -> bool:
    """Whether nothing but the view, the report and the readout is out of the ordinary, and the report is this one."""
    return setting[Report].report == report and setting.is_plain("images", "report", "readout")


def _is_gain(comparison: Comparison, settings: Mapping[str, Setting]) -> bool:
    if comparison.accuracy is None:
        return False
    a, b = (settings[name] for name in comparison.settings)
    blind = not b.shows_the_study and a.difference(b).keys() <= {"images", "source"}
    return a[Image].own and _plain(a, "none") and blind
