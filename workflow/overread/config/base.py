"""Types of values that only the config has, beside those that every section shares (`core.section`)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, StringConstraints, Tag

from overread.core.section import (
    NAME,
    Distinct,
    FilePath,
    Name,
    NotEmpty,
    OneOrMore,
    Section,
    Weights,
    is_folder,
    text_or_list,
)

__all__ = [
    "NAME", "AllOrModels", "AllOrSettings", "Distinct", "Endpoint", "FilePath", "Name", "NotEmpty", "OneOrMore",
    "Section", "SettingName", "Weights", "is_folder",
]  # fmt: skip

SettingName = Annotated[str, StringConstraints(pattern=rf"^{NAME}(-\*)?$")]
"""A setting's name, or `<sweep>-*` for each of the settings that a sweep makes: resolved before validation."""

AllOrModels = Annotated[
    Annotated[Literal["all"], Tag("text")] | Annotated[tuple[Name, ...], NotEmpty, Distinct, Tag("list")],
    Discriminator(text_or_list),
]
AllOrSettings = Annotated[
    Annotated[Literal["all"], Tag("text")] | Annotated[tuple[SettingName, ...], NotEmpty, Distinct, Tag("list")],
    Discriminator(text_or_list),
]


def _endpoint(text: str) -> str:
    """An address that the guard can compare: one it can't read would be one it can't refuse."""
    from overread.core.errors import BadInput
    from overread.core.guard import address

    try:
        address(text)
    except BadInput as error:
        raise ValueError(str(error).removeprefix("endpoint: ")) from None
    return text


Endpoint = Annotated[str, AfterValidator(_endpoint)]
