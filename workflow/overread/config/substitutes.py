"""Whose image may take the place of a study's own."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from overread.config.base import Distinct, Section


class Substitutes(Section):
    """What a substitute must be like. A study for which there is none like that has no substitute, and is counted."""

    count: int = Field(default=1, ge=1, le=50, description="how many a study; a setting's `substitute` says which")
    patient: Literal["same-if-possible", "same", "another"] = Field(
        default="same-if-possible", description="whose: of the same patient where there is one, always, or never"
    )
    same_attributes: Annotated[tuple[str, ...], Distinct] = Field(
        default=(), description="attributes of a study that must be known and equal, such as ViewPosition"
    )
    finding: Literal["any", "changed", "kept"] = Field(
        default="any", description="whether the right answer to the question must be another one, or the same"
    )
    same_other_findings: bool = Field(
        default=False, description="whether all other findings must be the same; a composite takes its parts along"
    )
    other: Annotated[tuple[str, ...], Distinct] = Field(
        default=(), description="labels that must be known and differ, such as an MRI's location"
    )

    @property
    def by_topic(self) -> bool:
        """Whether each topic has substitutes of its own."""
        return self.finding != "any" or self.same_other_findings
