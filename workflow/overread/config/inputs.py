"""Settings, which are what a model is shown of a study."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from overread.config.base import Name, Section
from overread.core.records import Readout

OptionOrder = Annotated[str, StringConstraints(pattern=r"^(as-written|shuffled|rotated-[1-9])$")]
Attention = Annotated[str, StringConstraints(pattern=r"^(none|(from|only)-(0|[1-9][0-9]*))$")]


class Setting(Section):
    """What a model is shown with a question, and how its answer is read. Every control is a value of one of these."""

    images: Name = Field(default="none", description="a view's name, or none")
    source: Literal["own", "substitute", "black"] = Field(default="own", description="whose image")
    substitute: int = Field(default=1, ge=1, description="which of a study's substitutes, from 1")
    report: Name = Field(
        default="none",
        description="none; full; substitute: the substitute's; neutral, boilerplate, without-finding, with-answer, or "
        "any other <name> with a template report-<name>.j2 in the folder `prompts`",
    )
    warning: bool = Field(default=False, description="say that the report may be wrong")
    order: Literal["image-first", "text-first"] = "image-first"
    options: OptionOrder = Field(default="as-written", description="as-written, shuffled or rotated-k")
    readout: Readout = Field(default="choice", description="how the answer is asked for and read")
    attention: Attention = Field(default="none", description="hide the report: from-L (layer L on), only-L, or none")
    questions: Literal["all", "one-per-study"] = "all"

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.images == "none" and self.source != "own":
            raise ValueError(f"source {self.source!r} needs a view under 'images'")
        if self.report == "none" and self.attention != "none":
            raise ValueError("'attention' hides a report, but 'report' is none")
        if self.report == "none" and self.warning:
            raise ValueError("a warning about the report needs a 'report'")
        return self

    @property
    def shows_the_study(self) -> bool:
        """Whether a picture of some study, not a black one, is shown."""
        return self.images != "none" and self.source != "black"
