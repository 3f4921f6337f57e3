"""What an effect says of a model, in words: one flip comparison against another, or one effect against another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from overread.reporting.contrasts import (
    SENSIBLE,
    Statement,
    Tables,
    cautions,
    contrast,
    difference_of,
    signed,
    title_of,
)
from overread.reporting.evidence import Answer, Evidence
from overread.reporting.rows import Row, number, where
from overread.reporting.words import capital, percent
from overread.settings.order import Order
from overread.settings.report import Report


def effects(own: Tables, spec: Mapping[str, Any]) -> list[Statement]:
    """A statement for each effect that the model has."""
    statements = []
    for name, effect in spec["effects"].items():
        for row in where(own.effects, effect=name):
            statements.append(_effect(name, row, tuple(effect["minus"]), own, spec))
    return statements


def _effect(name: str, row: Row, minus: tuple[str, str], own: Tables, spec: Mapping[str, Any]) -> Statement:
    first, second = minus
    evidence = Evidence.of(row, "estimate")
    orders = tuple(_order_of_report_effect(one, spec) for one in minus)
    if orders == ("text-first", "image-first"):
        first, second, evidence, orders = second, first, evidence.negated(), ("image-first", "text-first")
    if _swap_with_report(first, spec) is True and _swap_with_report(second, spec) is False:
        first, second, evidence = second, first, evidence.negated()
    about_report = _swap_with_report(first, spec) is False and _swap_with_report(second, spec) is True
    answer = evidence.against()
    rates = [next(iter(where(own.flips, comparison=one, group="all")), None) for one in (first, second)]
    values = [percent(number(one["flip_rate"])) for one in rates if one is not None]
    if about_report:
        titles = ("With the report beside it, its answers follow the image less",
                  "With the report beside it, its answers move with the image more")  # fmt: skip
        matter = "the report changes how much its answers move with the image"
        arms = ("without the report", "with it")
    elif orders == ("image-first", "text-first"):
        titles = ("The report takes more away where the image comes first than where the text does",
                  "The report takes more away where the text comes first than where the image does")  # fmt: skip
        matter, arms = "the order of image and text changes what the report takes away", ("", "")
    else:
        titles = (f"More under {first} than under {second}", f"Less under {first} than under {second}")
        matter, arms = f"{first} and {second} differ", (f"under {first}", f"under {second}")
    told = f"{values[0]} of its answers change {arms[0]} and {values[1]} {arms[1]}: " if len(values) == 2 else ""
    text = capital(f"{told}a difference of {difference_of(evidence)}.")
    if answer is Answer.CANNOT_TELL:
        text += f" {evidence.why_not()}"
    caveats: tuple[str, ...] = (SENSIBLE,) if about_report and answer is Answer.MORE else ()
    aspect = "report-effect" if about_report else "other"
    title, caveats = title_of(answer, titles, matter), (*caveats, *cautions(evidence))
    return Statement(aspect, name, answer, title, text, caveats, number=signed(evidence))


def _order_of_report_effect(name: str, spec: Mapping[str, Any]) -> str | None:
    """What comes first, image or text, in an effect of image swaps without and with the report; else none."""
    effect = spec["effects"].get(name) if name not in spec["comparisons"] else None
    if effect is None or [_swap_with_report(one, spec) for one in effect["minus"]] != [False, True]:
        return None
    orders = {spec["settings"][spec["comparisons"][one]["flips"][0]][Order].order for one in effect["minus"]}
    return orders.pop() if len(orders) == 1 else None


def _swap_with_report(name: str, spec: Mapping[str, Any]) -> bool | None:
    """Whether a comparison swaps images beside a report; none if it is no flip comparison of images."""
    pair = spec["comparisons"].get(name, {}).get("flips")
    if not pair:
        return None
    a, b = (spec["settings"][one] for one in pair)
    return a[Report].shown if contrast(a, b) == "image" else None
