"""What becomes of generated questions after the rules: how people look through them, and how they are released."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from overread.config.base import FilePath, Name, Section


class Review(Section):
    """The samples that people look through, and what their decisions do."""

    look_through: int = Field(default=200, ge=1, description="questions to accept, edit or reject")
    readers: int = Field(default=75, ge=1, description="questions that readers answer")
    seed: int = Field(default=1, description="of both samples")
    rule: Literal["any", "majority", "all"] = Field(
        default="majority", description="who must reject a question for it to be dropped"
    )
    decisions: tuple[FilePath, ...] = Field(default=(), description="the sheets that people filled in")


class Release(Section):
    """A released dataset. Text of reports is in it only if `with_report` says so."""

    title: str = Field(min_length=1)
    name: Name = Field(description="short name: of files and tasks")
    version: Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+$")] = "1.0.0"
    description: str = ""
    license: str = Field(default="", description="address or SPDX id of the licence; without one, the card says so")
    url: str = Field(default="", description="where the release will be found")
    citation: str = ""
    published: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = Field(
        default=None, description="the day of the release; never taken from the clock"
    )
    seed: int = Field(default=1, description="of the shuffled options")
    with_report: bool = Field(default=False, description="whether Findings, Impression and evidence are in the release")
    view: Name | None = Field(default=None, description="the view whose pictures are in the release; else none are")
