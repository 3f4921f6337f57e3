"""The source `phantom`: its config, how it is made, and how it is read: as the layout that it is written in."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from overread.config.datasets import DatasetSection, Expected, FileQuestions
from overread.core.records import Modality

if TYPE_CHECKING:
    from pathlib import Path

    from overread.core.records import Study
    from overread.sources.shared.remarks import Remarks

STUDIES_A_PATIENT = 2.4
QUESTIONS_A_STUDY = 5


class Phantom(DatasetSection):
    """The semi-synthetic demo: findings planted in real anatomy, written in the layout of the real data sets."""

    source: Literal["phantom"]
    title: ClassVar[str] = "semi-synthetic studies"
    modality: Modality
    studies: int | None = Field(default=None, ge=1, description="MRI: how many studies, one a patient")
    patients: int | None = Field(default=None, ge=1, description="X-ray: how many patients, with 1 to 4 studies each")
    series: Literal["main", "all"] = Field(
        default="main", description="MRI: seven series and two masks a study, or all 23 files of UCSF-PDGM"
    )
    seed: int = 1
    restricted: bool = False

    @model_validator(mode="after")
    def _series(self) -> Self:
        if self.modality != "mri" and self.series != "main":
            raise ValueError(f"a phantom of modality {self.modality} takes no 'series'")
        return self

    @model_validator(mode="after")
    def _size(self) -> Self:
        wanted, other = ("studies", "patients") if self.modality == "mri" else ("patients", "studies")
        if getattr(self, wanted) is None or getattr(self, other) is not None:
            raise ValueError(f"a phantom of modality {self.modality} takes {wanted!r} and not {other!r}")
        return self

    @property
    def place(self) -> None:
        return None

    @property
    def has_grammar(self) -> bool:
        return self.modality == "mri"

    def expected(self, questions_a_study: int | None) -> Expected:
        studies = self.studies or round((self.patients or 0) * STUDIES_A_PATIENT)
        questions = studies * (questions_a_study or QUESTIONS_A_STUDY)
        return Expected(studies, self.patients or studies, questions, "from the config")

    def make(self, folder: Path, workers: int) -> None:
        if self.modality == "mri":
            from overread_phantom.mri import make as make_mri

            make_mri(self, folder, workers)
        else:
            from overread_phantom.xray_folder import make as make_xray

            make_xray(self, folder, workers)

    def read(self, dataset: str, folder: Path, remarks: Remarks) -> list[Study]:
        # What is asked does not change what is read.
        written = {
            "root": str(folder),
            "restricted": self.restricted,
            "questions": FileQuestions(origin="file", path="not-read"),
        }
        if self.modality == "mri":
            from overread.sources.ucsf_pdgm.section import UcsfPdgm

            return UcsfPdgm.model_validate({"source": "ucsf-pdgm", **written}).read(dataset, folder, remarks)
        from overread.sources.mimic_cxr.section import MimicCxr

        return MimicCxr.model_validate({"source": "mimic-cxr", **written}).read(dataset, folder, remarks)
