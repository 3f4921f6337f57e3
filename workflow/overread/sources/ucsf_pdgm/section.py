"""The config of UCSF-PDGM."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from overread.config.base import FilePath
from overread.config.datasets import Expected, Folder, named
from overread.config.segmentation import Provided, Segmentation
from overread.core.records import Geometry, Modality
from overread.sources.shared.columns import ReportColumns

if TYPE_CHECKING:
    from pathlib import Path

    from overread.core.records import Study
    from overread.sources.shared.remarks import Remarks


class UcsfPdgm(Folder):
    """Glioma MRI in the layout of the UCSF-PDGM release."""

    source: Literal["ucsf-pdgm"]
    title: ClassVar[str] = "UCSF-PDGM"
    layout: ClassVar[tuple[str, ...]] = ("*_nifti", "*/*_nifti")
    modality: ClassVar[Modality] = "mri"
    metadata: FilePath | None = Field(default=None, description="UCSF-PDGM-metadata_v5.csv; else looked for in root")
    reports: FilePath | None = Field(default=None, description="CSV or folder of text files; not in the public release")
    report_columns: ReportColumns = Field(default=ReportColumns(), description="of a CSV of reports")
    geometry: Geometry = Field(
        default="agree",
        description="of NIfTI: which part of a header says how the patient lies. agree: a file whose sform, qform and "
        "pixdim differ is refused",
    )
    segmentation: Segmentation = Field(
        default=Provided(), description="whose tumour mask chooses the slices: the data set's own, or a network's"
    )

    @property
    def has_reports(self) -> bool:
        return self.reports is not None

    @property
    def also_read(self) -> dict[str, str]:
        return named(metadata=self.metadata, reports=self.reports)

    def expected(self, questions_a_study: int | None) -> Expected | None:
        if self.questions.origin != "generated":
            return None
        # Patients: 495 for the 501 studies of the release; the paper does not say how many its 473 studies have.
        return Expected(473, None, 2_387, "published")

    def read(self, dataset: str, folder: Path, remarks: Remarks) -> list[Study]:
        from overread.sources.ucsf_pdgm.reader import read

        return read(dataset, self, folder, remarks)
