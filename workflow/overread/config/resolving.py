"""Shorthand of a config carried out before it is checked: `extends`, `sweep`, ranges, and `<sweep>-*`.

    hidden:          {extends: report, sweep: {attention: [from-0..2]}}    hidden-from-0, hidden-from-1, hidden-from-2
    hidden-swapped:  {extends: hidden, source: substitute}                 the same sweep, other pictures
    settings:        [hidden-*]                                            all three, in an evaluation
    hiding:          {flips: [hidden-*, hidden-swapped-*]}                 hiding-from-0 ..., a comparison a value

It remembers where each value was written, so that a mistake is told once, where it stands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from overread.config.messages import Problem
from overread.core.errors import unknown
from overread.settings.setting import Setting

_KEYS = (*Setting.model_fields, "extends", "sweep")
_RANGE = re.compile(r"(.*?)(\d+)\.\.(\d+)")
_LONGEST_SWEEP = 1000


class UnresolvableError(Exception):
    """A setting that can't be resolved."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(where, what)
        self.problem: Problem = (where, what)


@dataclass
class Settings:
    """The settings of a config with `extends` and `sweep` carried out.

    fields    by setting: its own and its inherited keys
    sweeps    by swept setting as written: the names that it makes, by value
    written   by `settings.<name>.<key>`: the place where that value stands
    parents   by setting: the one it extends, or the sweep that makes it
    """

    fields: dict[str, dict[str, Any]] = field(default_factory=dict)
    sweeps: dict[str, dict[str, str]] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    def once(self, problems: list[Problem]) -> list[Problem]:
        """`problems` moved to where the value was written, and none that a setting merely inherits."""
        told: dict[Problem, None] = {}
        for where, what in problems:
            setting = where.removeprefix("settings.")
            if where in self.written:
                told[(self.written[where], what)] = None
            elif where == setting or setting not in self.parents:
                told[(where, what)] = None
            elif setting in self._made_by_a_sweep:
                told[(f"settings.{self.parents[setting]}", what)] = None
            else:
                told[(where, what)] = None
        return [(where, what) for where, what in told if not self._inherited(where, what, told)]

    @property
    def _made_by_a_sweep(self) -> set[str]:
        return {name for made in self.sweeps.values() for name in made.values()}

    def _inherited(self, where: str, what: str, told: Mapping[Problem, None]) -> bool:
        name = where.removeprefix("settings.")
        while name in self.parents:
            name = self.parents[name]
            if (f"settings.{name}", what) in told:
                return True
        return False


def resolve(written: Mapping[str, Any]) -> Settings:
    """Carry out `extends` and `sweep`. A setting that can't be resolved is left out and told of in `problems`."""
    settings = Settings()
    known: dict[str, Mapping[str, Any]] = {}
    for name, own in written.items():
        name = str(name)
        if own is None or isinstance(own, Mapping):
            known[name] = _own_keys(name, own or {}, settings)
        else:
            settings.problems.append((f"settings.{name}", "must be a mapping of keys to values"))
            settings.broken.add(name)
    for name in known:
        try:
            _resolve_one(name, known, settings)
        except UnresolvableError as wrong:
            settings.broken.add(name)
            if wrong.problem not in settings.problems:
                settings.problems.append(wrong.problem)
    return settings


def _own_keys(name: str, own: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """The keys that a setting may have; the others are told of here, so that what extends it stays quiet."""
    for key in own:
        if key not in _KEYS:
            settings.problems.append((f"settings.{name}", unknown("key", str(key), _KEYS)))
    return {key: value for key, value in own.items() if key in _KEYS}


def _fields(
    name: str, known: Mapping[str, Mapping[str, Any]], settings: Settings, trail: tuple[str, ...]
) -> dict[str, tuple[Any, str]]:
    """By key: the value, and the setting in which it is written."""
    own = known[name]
    inherited: dict[str, tuple[Any, str]] = {}
    base = own.get("extends")
    if base is not None:
        where = f"settings.{name}.extends"
        if not isinstance(base, str):
            raise UnresolvableError(where, "must be the name of one setting")
        if base in trail:
            ring = trail[trail.index(base) :]
            start = ring.index(min(ring))  # told once, whichever of them was met first
            ring = (*ring[start:], *ring[: start + 1])
            raise UnresolvableError(
                f"settings.{ring[0]}.extends", f"{' -> '.join(ring)} comes back to itself; remove one `extends`"
            )
        if base not in known and base not in settings.broken:
            raise UnresolvableError(where, unknown("setting", base, known))
        if base not in known:
            raise UnresolvableError(f"settings.{base}", "must be a mapping of keys to values")
        inherited = _fields(base, known, settings, (*trail, base))
    return {**inherited, **{key: (value, name) for key, value in own.items() if key != "extends"}}


def _resolve_one(name: str, known: Mapping[str, Mapping[str, Any]], settings: Settings) -> None:
    whole = _fields(name, known, settings, (name,))
    if isinstance(known[name].get("extends"), str):
        settings.parents[name] = known[name]["extends"]
    sweep, sweep_in = whole.pop("sweep", (None, name))
    values = {key: value for key, (value, _) in whole.items()}
    places = {key: f"settings.{origin}.{key}" for key, (_, origin) in whole.items()}
    if sweep is None:
        settings.fields[name] = values
        settings.written.update({f"settings.{name}.{key}": place for key, place in places.items()})
        return
    key, swept = _sweep(sweep, f"settings.{sweep_in}.sweep")
    settings.sweeps[name] = {}
    for value in swept:
        short = value_in_name(value)
        made = f"{name}-{short}"
        if made in known or made in settings.fields:
            raise UnresolvableError(
                f"settings.{name}.sweep", f"makes {made!r}, which is there already; rename one of them"
            )
        settings.fields[made] = {**values, key: value}
        settings.sweeps[name][short] = made
        settings.parents[made] = name
        settings.written.update({f"settings.{made}.{each}": place for each, place in places.items()})
        settings.written[f"settings.{made}.{key}"] = f"settings.{sweep_in}.sweep.{key}"


def _sweep(sweep: Any, where: str) -> tuple[str, list[Any]]:
    """The key and the values of a sweep, its ranges written out."""
    if not (isinstance(sweep, Mapping) and len(sweep) == 1 and isinstance(next(iter(sweep.values())), list | tuple)):
        raise UnresolvableError(where, "must be one key with a list of values, as in {options: [rotated-1, rotated-2]}")
    key, written = next(iter(sweep.items()))
    if key not in Setting.model_fields:
        raise UnresolvableError(where, unknown("key", str(key), Setting.model_fields))
    values: list[Any] = []
    for value in written:
        if isinstance(value, Mapping) and (spans := [key for key, one in value.items() if _is_range(one)]):
            # `{kind: occlude, grid: 4, cell: 0..15}`: one for each number
            if len(spans) > 1:
                raise UnresolvableError(where, f"{value!r} has two ranges; give one")
            values.extend({**value, spans[0]: number} for number in _numbers(str(value[spans[0]]), where))
            continue
        span = _RANGE.fullmatch(value) if isinstance(value, str) else None
        if span is None:
            values.append(value)
            continue
        values.extend(f"{span[1]}{number}" for number in _numbers(value, where))
    if not values:
        raise UnresolvableError(where, "the list is empty; give at least one value")
    names = [value_in_name(value) for value in values]
    twice = next((value for value, name in zip(values, names, strict=True) if names.count(name) > 1), None)
    if twice is not None:
        raise UnresolvableError(where, f"duplicate {twice!r}")
    return str(key), values


def _is_range(value: Any) -> bool:
    span = _RANGE.fullmatch(value) if isinstance(value, str) else None
    return span is not None and not span[1]


def _numbers(value: str, where: str) -> range:
    """The numbers that `0..15` or `from-0..62` stands for."""
    span = _RANGE.fullmatch(value)
    assert span is not None
    first, last = int(span[2]), int(span[3])
    if not first <= last < first + _LONGEST_SWEEP:
        raise UnresolvableError(where, f"{value!r} must run upwards, over at most {_LONGEST_SWEEP} values")
    return range(first, last + 1)


def value_in_name(value: Any) -> str:
    """A swept value as the end of a setting's name: `from-0`, `0.5`, `minus-2`, `true`; of a list or a mapping its
    parts.
    """
    if isinstance(value, Mapping):
        parts = (
            value_in_name(one) if key == "kind" else f"{value_in_name(key)}-{value_in_name(one)}"
            for key, one in value.items()
        )
        return "-".join(parts) or "none"
    if isinstance(value, list | tuple):
        return "-".join(map(value_in_name, value)) or "none"
    if isinstance(value, float):
        value = f"{value:.12g}"
    text = re.sub(r"^-(?=[\d.])", "minus-", str(value).lower())
    return re.sub(r"[^a-z0-9.]+|[.](?![a-z0-9])", "-", text).strip("-.") or "none"


def name_settings(evaluations: Any, settings: Settings) -> tuple[Any, list[Problem]]:
    """Evaluations with each `<sweep>-*` replaced by the settings that the sweep makes."""
    problems: list[Problem] = []
    if not isinstance(evaluations, list | tuple):
        return evaluations, problems
    resolved: list[Any] = []
    for number, evaluation in enumerate(evaluations):
        names = evaluation.get("settings") if isinstance(evaluation, Mapping) else None
        if isinstance(names, list | tuple):
            where = f"evaluations[{number}].settings"
            whole = [made for name in names for made in _starred(name, settings, where, problems)]
            # Emptied by a mistake that has been told: keep what was written, so that "empty" is not told as well.
            evaluation = {**evaluation, "settings": whole}
            if names and not whole:
                evaluation = {**evaluation, "settings": "all"}
        resolved.append(evaluation)
    return resolved, problems


def _starred(name: Any, settings: Settings, where: str, problems: list[Problem]) -> list[Any]:
    if not isinstance(name, str):
        return [name]
    if name.endswith("-*"):
        sweep = name.removesuffix("-*")
        if sweep in settings.sweeps:
            return list(settings.sweeps[sweep].values())
        if sweep not in settings.broken:
            problems.append((where, f"{name!r}: {unknown('sweep', sweep, settings.sweeps)}"))
        return []
    if name in settings.sweeps:
        problems.append((where, f"{name!r} is a sweep: write '{name}-*' for all that it makes, or name one of them"))
        return []
    return [name]


def sweep_comparisons(comparisons: Any, settings: Settings) -> tuple[Any, list[Problem]]:
    """Comparisons with each pair of `<sweep>-*` replaced by a comparison for each value that both sweeps take."""
    problems: list[Problem] = []
    if not isinstance(comparisons, Mapping):
        return comparisons, problems
    resolved: dict[str, Any] = {}
    for name, comparison in comparisons.items():
        pairs = comparison if isinstance(comparison, Mapping) else {}
        swept = {
            kind: pair
            for kind, pair in pairs.items()
            if isinstance(pair, list | tuple) and any(str(each).endswith("-*") for each in pair)
        }
        if not swept:
            resolved[name] = comparison
            continue
        kind, pair = next(iter(swept.items()))
        where = f"comparisons.{name}.{kind}"
        made = _pairs(pair, settings, where, problems)
        for value, both in made.items():
            if f"{name}-{value}" in comparisons:
                problems.append((where, f"makes '{name}-{value}', which is there already; rename one of them"))
            resolved[f"{name}-{value}"] = {**pairs, kind: both}
    return resolved, problems


def _pairs(pair: Any, settings: Settings, where: str, problems: list[Problem]) -> dict[str, list[str]]:
    """By value of the sweeps: the two settings. One of the two may be a plain setting."""
    if len(pair) != 2:
        problems.append((where, "must have 2 values"))
        return {}
    sides: list[dict[str, str] | str] = []
    for each in map(str, pair):
        sweep = each.removesuffix("-*")
        if sweep == each:
            sides.append(each)
        elif sweep in settings.sweeps:
            sides.append(settings.sweeps[sweep])
        else:
            if sweep not in settings.broken:
                problems.append((where, f"{each!r}: {unknown('sweep', sweep, settings.sweeps)}"))
            return {}
    values = [list(side) for side in sides if isinstance(side, dict)]
    if any(set(other) != set(values[0]) for other in values):
        problems.append((where, f"{pair[0]!r} and {pair[1]!r} sweep over different values"))
        return {}
    return {value: [side if isinstance(side, str) else side[value] for side in sides] for value in values[0]}
