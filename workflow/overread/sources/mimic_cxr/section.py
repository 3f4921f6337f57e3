"""The config of MIMIC-CXR-JPG."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from overread.config.base import FilePath
from overread.config.datasets import Expected, Folder, named
from overread.core.records import Modality
from overread.sources.shared.frontal_choice import FrontalChoice

if TYPE_CHECKING:
    from pathlib import Path

    from overread.core.records import Study
    from overread.sources.shared.remarks import Remarks


class MimicCxr(Folder):
    """Chest X-rays in the layout of MIMIC-CXR-JPG."""

    source: Literal["mimic-cxr"]
    title: ClassVar[str] = "MIMIC-CXR-JPG"
    layout: ClassVar[tuple[str, ...]] = ("files/p*/p*/s*/*.jpg", "p*/p*/s*/*.jpg")
    modality: ClassVar[Modality] = "xray"
    reports: FilePath | None = Field(default=None, description="the MIMIC-CXR folder with the reports; else root")
    split: Literal["train", "validate", "test"] | None = Field(default=None, description="only this split; else all")
    labels: Literal["chexpert", "negbio"] = Field(default="chexpert", description="which labeller's table is the truth")
    frontal: FrontalChoice = FrontalChoice()

    @property
    def also_read(self) -> dict[str, str]:
        return named(reports=self.reports)

    @property
    def paper(self) -> str | None:
        return "modalens" if self.split == "test" else None

    def expected(self, questions_a_study: int | None) -> Expected | None:
        if self.split != "test" or questions_a_study is None:
            return None
        return Expected(3_199, 293, 3_199 * questions_a_study, "published")

    def read(self, dataset: str, folder: Path, remarks: Remarks) -> list[Study]:
        from overread.sources.mimic_cxr.reader import read

        return read(dataset, self, folder, remarks)
