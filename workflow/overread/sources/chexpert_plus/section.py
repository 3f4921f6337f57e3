"""The config of CheXpert Plus."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from overread.config.base import FilePath
from overread.config.datasets import Folder, named
from overread.core.records import Modality
from overread.sources.shared.frontal_choice import FrontalChoice

if TYPE_CHECKING:
    from pathlib import Path

    from overread.core.records import Study
    from overread.sources.shared.remarks import Remarks


class ChexpertPlus(Folder):
    """Chest X-rays with reports in the layout of CheXpert Plus."""

    source: Literal["chexpert-plus"]
    title: ClassVar[str] = "CheXpert Plus"
    layout: ClassVar[tuple[str, ...]] = ("df_chexpert_plus_*.csv",)
    modality: ClassVar[Modality] = "xray"
    images: FilePath | None = Field(default=None, description="folder that path_to_image starts from; else root")
    split: str | None = Field(
        default=None, min_length=1, description="only this split, as the table calls it; else all"
    )
    labels: FilePath | None = Field(default=None, description="CSV or JSON lines with path_to_image and the findings")
    frontal: FrontalChoice = FrontalChoice()

    @property
    def has_labels(self) -> bool:
        return self.labels is not None

    @property
    def also_read(self) -> dict[str, str]:
        return named(images=self.images, labels=self.labels)

    @property
    def folders(self) -> tuple[str, ...]:
        return self.root, *([self.images] if self.images is not None else [])

    def read(self, dataset: str, folder: Path, remarks: Remarks) -> list[Study]:
        from overread.sources.chexpert_plus.reader import read

        return read(dataset, self, folder, remarks)
