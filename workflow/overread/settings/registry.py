"""Which aspects there are: the modules of this package, and what other packages name as entry points."""

from __future__ import annotations

import pkgutil
from importlib import import_module, metadata
from typing import TYPE_CHECKING

import overread.settings
from overread.core.errors import BadInput

if TYPE_CHECKING:
    from overread.settings.base import Aspect

GROUP = "overread.settings"
"""Entry point group of other packages' aspects: each names a module, or `module:Class`."""
LOADS = ("overread.settings.*",)
"""What is imported here by its place: a rule whose command reaches this module depends on it (`core.provenance`)."""
NO_ASPECTS = frozenset({"base", "registry", "setting"})
"""Modules of this package that define none."""

_KINDS: dict[str, type[Aspect]] = {}


def register(kind: type[Aspect]) -> None:
    """Take an aspect in. BadInput if another has its name or one of its fields, or if it has validators of its own."""
    decorators = kind.__pydantic_decorators__
    if (decorators.field_validators | decorators.model_validators).keys() & vars(kind).keys():
        # The setting takes over fields alone: a validator of the class would never be asked.
        raise BadInput(f"aspects of a setting: {kind.__module__}: put its checks into `conflict` or a field's type")
    for other in _KINDS.values():
        if (other.__module__, other.__qualname__) == (kind.__module__, kind.__qualname__):
            continue
        both = set(other.model_fields) & set(kind.model_fields)
        if other.name == kind.name or both:
            what = f"field {min(both)!r}" if both else f"name {kind.name!r}"
            raise BadInput(
                f"aspects of a setting: {kind.__module__} and {other.__module__} both have the {what}; rename one"
            )
    _KINDS[kind.name] = kind


def kinds() -> tuple[type[Aspect], ...]:
    """All aspects, by rank. BadInput for a module that can't be imported: which, and why."""
    for module in pkgutil.iter_modules(overread.settings.__path__):
        if module.name not in NO_ASPECTS:
            import_module(f"{overread.settings.__name__}.{module.name}")
    for point in metadata.entry_points(group=GROUP):
        try:
            point.load()
        except Exception as error:  # it may be anybody's code
            why = f"{type(error).__name__}: {error}"
            raise BadInput(
                f"aspect of a setting {point.name!r} ({point.value}): {why}; mend or remove its package"
            ) from error
    return tuple(sorted(_KINDS.values(), key=lambda kind: (kind.rank, kind.name)))
