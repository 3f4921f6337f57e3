"""What every section of the config shares: how it refuses a key that it does not know, and the types of its values.

It stands below the config, so that what registers a section of its own (a setting's field, a source, a view, a back
end) imports nothing that needs the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    StringConstraints,
    Tag,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticCustomError

from overread.core.errors import unknown

NAME = r"[a-z0-9]+([.-][a-z0-9]+)*"
Name = Annotated[str, StringConstraints(pattern=rf"^{NAME}$")]


def _resolved(path: str, info: ValidationInfo) -> str:
    """`path` made absolute against the folder of the file that names it (`context["folder"]`)."""
    folder = (info.context or {}).get("folder")
    whole = Path(path).expanduser()
    return str(whole if folder is None or whole.is_absolute() else Path(folder, whole).resolve())


def _weights(where: str, info: ValidationInfo) -> str:
    return _resolved(where, info) if is_folder(where) else where


def is_folder(weights: str) -> bool:
    """Whether a model's weights are a folder: it begins with `.`, `/` or `~`. Anything else is a hub id."""
    return weights.startswith((".", "/", "~"))


FilePath = Annotated[str, StringConstraints(min_length=1), AfterValidator(_resolved)]
Weights = Annotated[str, StringConstraints(min_length=1), AfterValidator(_weights)]


def text_or_list(value: Any) -> str:
    return "text" if isinstance(value, str) else "list"


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"duplicate {name!r}")
    return names


def _not_empty(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise ValueError("the list is empty; name at least one")
    return names


Distinct = AfterValidator(_distinct)
NotEmpty = AfterValidator(_not_empty)
# The discriminator keeps a wrong value to one message: a plain union would report it once for each of its members.
OneOrMore = Annotated[
    Annotated[str, Tag("text")] | Annotated[tuple[str, ...], NotEmpty, Distinct, Tag("list")],
    Discriminator(text_or_list),
]


class Section(BaseModel):
    """A part of the config. A key that it does not know is an error that names the keys it knows."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    filled_in: ClassVar[frozenset[str]] = frozenset()
    """Fields that no file may hold: they are not named among the known keys."""

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            strange = [key for key in value if key not in cls.model_fields]
            if strange:
                known = set(cls.model_fields) - cls.filled_in
                lines = [unknown("key", str(key), known) for key in strange]
                raise PydanticCustomError("unknown_keys", "{problem}", {"problem": "\n".join(lines)})
        return value
