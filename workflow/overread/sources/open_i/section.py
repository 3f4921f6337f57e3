"""The config of Open-I."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from overread.config.base import Distinct, FilePath, NotEmpty, Section
from overread.config.datasets import Folder, named
from overread.core.records import Modality
from overread.sources.shared.columns import Column

if TYPE_CHECKING:
    from overread.core.records import Study
    from overread.sources.shared.remarks import Remarks


OWN_MESH = Path(__file__).parent / "mesh.yaml"
"""Which MeSH terms stand for which finding."""


class ProjectionColumns(Section):
    """Columns of the table that says which images are frontal."""

    image: Column = Field(default="filename", description="the image's file name or id")
    view: Column = Field(default="projection", description="Frontal, Lateral, PA, ...")


class OpenI(Folder):
    """Indiana University chest X-rays: XML reports and PNG."""

    source: Literal["open-i"]
    title: ClassVar[str] = "Open-I"
    layout: ClassVar[tuple[str, ...]] = ("ecgen-radiology/*.xml", "*/ecgen-radiology/*.xml")
    modality: ClassVar[Modality] = "xray"
    restricted: bool = False
    projections: FilePath = Field(description="CSV that says which images are frontal: the reports do not")
    projection_columns: ProjectionColumns = ProjectionColumns()
    frontal_values: Annotated[tuple[str, ...], NotEmpty, Distinct] = Field(
        default=("frontal", "PA", "AP"), description="what the table calls a frontal image, in any case"
    )
    images: FilePath | None = Field(default=None, description="folder of the PNG files; else looked for in root")
    mesh: Literal["own"] | FilePath | None = Field(
        default=None, description="YAML that maps MeSH terms to findings; `own` is the one that comes with Overread"
    )
    labels: FilePath | None = Field(default=None, description="CSV with a study and the findings a row")

    labels_are_named_by: ClassVar[str] = "'mesh' (`own`, or a file) or 'labels'"
    blank_is_not_mentioned: ClassVar[bool] = False

    @model_validator(mode="after")
    def _one_truth(self) -> Self:
        if self.mesh is not None and self.labels is not None:
            raise ValueError("'mesh' and 'labels' both say what a study shows; name one of them")
        return self

    @property
    def has_labels(self) -> bool:
        return (self.mesh or self.labels) is not None

    @property
    def also_read(self) -> dict[str, str]:
        return named(projections=self.projections, images=self.images, mesh=self.mesh_file, labels=self.labels)

    @property
    def mesh_file(self) -> str | None:
        return str(OWN_MESH) if self.mesh == "own" else self.mesh

    @property
    def folders(self) -> tuple[str, ...]:
        return self.root, *([self.images] if self.images is not None else [])

    def read(self, dataset: str, folder: Path, remarks: Remarks) -> list[Study]:
        from overread.sources.open_i.reader import read

        return read(dataset, self, folder, remarks)
