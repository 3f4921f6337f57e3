"""What a source's tables are called inside: columns, and which of a study's images is the frontal one."""

from __future__ import annotations

from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from overread.config.base import Distinct, NotEmpty, Section

ViewPosition = Literal[
    "AP", "PA", "LATERAL", "LL", "LPO", "RAO", "RPO", "LAO", "AP AXIAL", "XTABLE LATERAL", "AP LLD", "PA LLD",
    "AP RLD", "PA RLD", "L5 S1", "SWIMMERS",
]  # fmt: skip
"""All that MIMIC-CXR-JPG's metadata say, besides blank."""

VIEW_POSITIONS: tuple[str, ...] = get_args(ViewPosition)

Column = Annotated[str, StringConstraints(min_length=1)]


def _no_path(name: str) -> str:
    if not name.strip() or name != name.strip() or "/" in name or "\\" in name:
        raise ValueError(f"{name!r} is no name: blanks at its ends or a slash in it")
    return name


SeriesName = Annotated[str, StringConstraints(min_length=1), AfterValidator(_no_path)]


class FrontalChoice(Section):
    """Which of a study's images is shown as its frontal one."""

    views: Annotated[tuple[ViewPosition, ...], NotEmpty, Distinct] = Field(
        default=("AP", "PA"), description="view positions that count as frontal"
    )
    take: Literal["first", "last"] = Field(default="first", description="by date and time")
    prefer: Literal["time", "views"] = Field(
        default="time", description="time: of all of `views`; views: of the first of `views` that the study has"
    )


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


class ProjectionColumns(Section):
    """Columns of the table that says which images are frontal."""

    image: Column = Field(default="filename", description="the image's file name or id")
    view: Column = Field(default="projection", description="Frontal, Lateral, PA, ...")


class TableColumns(Section):
    """Columns of the user's own table."""

    study: Column = "study"
    patient: Column = Field(
        default="patient", description="the cluster of every interval; the study's column makes each study its own"
    )
    modality: Column | None = Field(
        default=None, description="mri or xray; rows of the other modality belong to another data set. None: all rows"
    )
    report: Column | None = Field(default=None, description="the whole report, which is cut into its sections")
    findings: Column | None = None
    impression: Column | None = None

    @model_validator(mode="after")
    def _whole_or_sections(self) -> Self:
        if self.report is not None and (self.findings is not None or self.impression is not None):
            raise ValueError("a 'report' is cut into its sections: name it, or 'findings' and 'impression'")
        return self

    @property
    def has_reports(self) -> bool:
        return (self.report or self.findings or self.impression) is not None
