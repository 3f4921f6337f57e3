"""What the columns of a source's tables are called in the config."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from overread.config.base import Section

Column = Annotated[str, StringConstraints(min_length=1)]


def _no_path(name: str) -> str:
    if not name.strip() or name != name.strip() or "/" in name or "\\" in name:
        raise ValueError(f"{name!r} is no name: blanks at its ends or a slash in it")
    return name


SeriesName = Annotated[str, StringConstraints(min_length=1), AfterValidator(_no_path)]


class ReportColumns(Section):
    """Columns of a CSV of reports: the whole report, which is cut, or its sections."""

    study: Column | None = Field(default=None, description="else study, id, study_id or patient, in any case")
    report: Column | None = Field(default=None, description="the whole report; else `report`, if there is one")
    findings: Column | None = Field(default=None, description="else `findings`, if there is one")
    impression: Column | None = Field(default=None, description="else `impression`, if there is one")

    @model_validator(mode="after")
    def _whole_or_sections(self) -> Self:
        if self.report is not None and (self.findings is not None or self.impression is not None):
            raise ValueError("a 'report' is cut into its sections: name it, or 'findings' and 'impression'")
        return self
