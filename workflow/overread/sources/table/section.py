"""The config of a table of the user's own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from overread.config.base import FilePath, Section
from overread.config.datasets import DatasetSection, FindingQuestions, named
from overread.config.segmentation import NETWORK_SERIES, Provided, Segmentation
from overread.core.records import Geometry, Modality
from overread.sources.shared.columns import Column, SeriesName

if TYPE_CHECKING:
    from pathlib import Path

    from overread.core.records import Study
    from overread.sources.shared.remarks import Remarks


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


class Table(DatasetSection):
    """The user's own CSV or Parquet file, a row a study."""

    reports_are_named_by: ClassVar[str] = "'columns.report'"
    blank_is_not_mentioned: ClassVar[bool] = False

    source: Literal["table"]
    title: ClassVar[str] = "a table of our own"
    path: FilePath
    modality: Modality
    columns: TableColumns = TableColumns()
    images: dict[SeriesName, Column] = Field(
        min_length=1, description="column of the path by series (T1, FLAIR, tumor_segmentation) or view (frontal)"
    )
    labels: dict[SeriesName, Column] = Field(
        default={}, description="column by topic: of X-rays a finding, of MRI a question's topic"
    )
    root: FilePath | None = Field(
        default=None, description="folder that paths start from and may not leave; else the table's"
    )
    follow_links: bool = Field(default=False, description="take files that a symbolic link places outside that folder")
    geometry: Geometry = Field(
        default="agree",
        description="of NIfTI: which part of a header says how the patient lies. agree: a file whose sform, qform and "
        "pixdim differ is refused",
    )
    segmentation: Segmentation = Field(
        default=Provided(), description="of MRI: whose tumour mask chooses the slices, the table's own or a network's"
    )

    @model_validator(mode="after")
    def _images_fit(self) -> Self:
        if self.modality == "xray" and "frontal" not in self.images:
            raise ValueError("images: a chest X-ray is shown by its 'frontal' image; name its column")
        return self

    @model_validator(mode="after")
    def _segmentation_fits(self) -> Self:
        if self.modality == "xray" and self.segmentation.makes_masks:
            raise ValueError("segmentation: is for MRI; a chest X-ray has no tumour or brain mask")
        lacking = sorted({*NETWORK_SERIES} - set(self.images))
        if self.segmentation.method != "provided" and lacking:
            raise ValueError(f"images: {self.segmentation.method} takes {', '.join(lacking)} too; name their columns")
        return self

    @model_validator(mode="after")
    def _asked_is_labelled(self) -> Self:
        """A finding without a column would be one that no report mentions, which counts as no."""
        if isinstance(self.questions, FindingQuestions):
            asked = sorted({*self.questions.findings, *self.questions.composite} - set(self.labels))
            if asked:
                raise ValueError(
                    f"labels: the questions ask about {', '.join(asked)}: name their columns, or ask about less"
                )
        return self

    @property
    def has_labels(self) -> bool:
        return bool(self.labels)

    @property
    def has_reports(self) -> bool:
        return self.columns.has_reports

    @property
    def also_read(self) -> dict[str, str]:
        return named(root=self.root)

    @property
    def place(self) -> str:
        return self.path

    @property
    def places(self) -> dict[str, str]:
        return {**self.all_read, "path": self.path}

    @property
    def folders(self) -> tuple[str, ...]:
        return (self.root or os.path.dirname(self.path),)

    def read(self, dataset: str, folder: Path, remarks: Remarks) -> list[Study]:
        from overread.sources.table.reader import read

        return read(dataset, self, folder, remarks)
