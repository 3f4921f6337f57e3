"""What there is of a kind: sources, views, back ends. Each is found where it lies; no list names them.

Overread's own are modules of one package (`overread/sources/table.py`), or folders of it with a light `section.py`
beside the code. Another package registers its own by an entry point of the same group (`overread.sources`) that names
the config section's class. A section is light: what is heavy is imported by the functions that need it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import entry_points
from inspect import isabstract
from pathlib import Path
from typing import Any, Generic, TypeVar, Union, get_args

from overread.core.errors import BadInput, unknown

T = TypeVar("T")

PACKAGES = Path(__file__).resolve().parents[2]

NOT_ONE = frozenset({"__init__", "base", "commands"})
"""Modules of a package of sources or views that are none."""


class Registry(Generic[T]):
    """The sections of one kind by name: the name is the value of the section's discriminator.

    package    with Overread's own, and the group of the entry points
    kind       what one is called in an error
    by         the discriminator, a field that is a literal
    base       what every section of the kind extends, as module:class
    only_folders   whether its own are folders all: the modules beside them are what they share
    """

    def __init__(self, package: str, *, kind: str, by: str, base: str, only_folders: bool = False) -> None:
        self.package, self.kind, self.by = package, kind, by
        self._base, self._only_folders = base, only_folders

    @cached_property
    def places(self) -> dict[str, str]:
        """Where each lies, by name: `module` or `module:class`. Nothing of them is imported.

        raises  BadInput for two of one name
        """
        found = dict(self._own())
        for name, value in _entry_points(self.package).items():
            if name in found:
                raise BadInput(f"{self.kind} {name!r} is registered twice: {found[name]} and {value}")
            found[name] = value
        return dict(sorted(found.items()))

    def _own(self) -> Iterator[tuple[str, str]]:
        for path in sorted((PACKAGES / self.package.replace(".", "/")).iterdir()):
            name = path.stem.replace("_", "-")
            if (path / "section.py").is_file():
                yield name, f"{self.package}.{path.name}.section"
            elif not self._only_folders and path.suffix == ".py" and path.stem not in NOT_ONE:
                yield name, f"{self.package}.{path.stem}"

    def __contains__(self, name: object) -> bool:
        return name in self.places

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __getitem__(self, name: str) -> type[T]:
        """The section. BadInput, with the names that there are, for another; and for one that can't be used."""
        if name not in self.places:
            raise BadInput(unknown(self.kind, name, self.places))
        return self.sections[name]

    @cached_property
    def sections(self) -> dict[str, type[T]]:
        """All sections by name. BadInput for one that can't be imported or is none: which, and of which package."""
        return {name: self._section(name, place) for name, place in self.places.items()}

    def union(self) -> Any:
        """The type of a value that is one of them, for pydantic."""
        from typing import Annotated

        from pydantic import Field

        return Annotated[Union[tuple(self.sections.values())], Field(discriminator=self.by)]  # noqa: UP007

    def _section(self, name: str, place: str) -> type[T]:
        where = f"{self.kind} {name!r} ({place})"
        module, _, attribute = place.partition(":")
        try:
            found = import_module(module)
        except Exception as error:  # it may be anybody's code
            raise BadInput(
                f"{where}: can't be imported ({type(error).__name__}: {error}); mend or remove its package"
            ) from error
        base: Any = _named(self._base)
        classes: list[Any] = [getattr(found, attribute, None)] if attribute else list(vars(found).values())
        own = [one for one in classes if isinstance(one, type) and (attribute or one.__module__ == module)]
        concrete: list[Any] = [one for one in own if issubclass(one, base) and not isabstract(one)]
        fitting = [one for one in concrete if name in get_args(one.model_fields[self.by].annotation)]
        if len(fitting) != 1:
            raise BadInput(
                f"{where}: there must be one class with all that {self._base} asks for and {self.by} {name!r}"
            )
        section: type[T] = fitting[0]
        return section


def _named(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def _entry_points(group: str) -> dict[str, str]:
    """Value by name, of all installed packages and of the checkout that this file lies in.

    A job's environment has the checkout on its path without having it installed, and an installed one may be older.
    """
    return {one.name: one.value for one in _installed().select(group=group)} | _checkout().get(group, {})


@cache
def _installed() -> Any:
    """All entry points there are: the packages of the environment are looked through once."""
    return entry_points()


@cache
def _checkout() -> dict[str, dict[str, str]]:
    file = PACKAGES.parent / "pyproject.toml"
    project = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {}) if file.is_file() else {}
    groups: dict[str, dict[str, str]] = project.get("entry-points", {}) if project.get("name") == "overread" else {}
    return groups
