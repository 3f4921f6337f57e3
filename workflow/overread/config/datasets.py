"""Data sets: where studies come from, and which questions are asked about them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from overread.config.base import Distinct, FilePath, Name, NotEmpty, Section
from overread.config.columns import (
    Column,
    FrontalChoice,
    ProjectionColumns,
    ReportColumns,
    SeriesName,
    TableColumns,
)
from overread.config.curation import Release, Review
from overread.config.segmentation import NETWORK_SERIES, Provided, Segmentation
from overread.config.substitutes import Substitutes
from overread.core.errors import unknown
from overread.core.records import Modality

FINDINGS = (
    "Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Enlarged Cardiomediastinum", "Fracture", "Lung Lesion",
    "Lung Opacity", "Pleural Effusion", "Pleural Other", "Pneumonia", "Pneumothorax", "Support Devices",
)  # fmt: skip
"""The CheXpert labeller's findings without No Finding: the 13 that ModaLens asks about."""


class FindingQuestions(Section):
    """A yes/no question for each finding, and one for any acute cardiopulmonary finding."""

    origin: Literal["findings"]
    findings: tuple[str, ...] = FINDINGS
    composite: tuple[str, ...] = Field(
        default=(
            "Atelectasis",
            "Consolidation",
            "Edema",
            "Lung Opacity",
            "Pleural Effusion",
            "Pneumonia",
            "Pneumothorax",
        ),
        description="findings any of which makes the composite positive; none asked with an empty list",
    )
    uncertain: Literal["positive", "negative", "leave-out"] = Field(
        default="negative", description="what a label of -1 counts as"
    )
    not_mentioned: Literal["negative", "leave-out"] = Field(
        default="negative", description="what a blank label counts as"
    )

    @field_validator("findings", "composite")
    @classmethod
    def _are_findings(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        """Known, distinct, and in one order whatever the file's: it changes no question."""
        for name in names:
            if name not in FINDINGS:
                raise ValueError(unknown("finding", name, FINDINGS))
            if names.count(name) > 1:
                raise ValueError(f"{name!r} stands twice")
        return tuple(sorted(names))

    @model_validator(mode="after")
    def _something_asked(self) -> Self:
        if not self.findings and not self.composite:
            raise ValueError("findings and composite are both empty: nothing would be asked")
        return self


class FileQuestions(Section):
    """Questions from a JSONL file in the form of `records.Question`."""

    origin: Literal["file"]
    path: FilePath


class GrammarQuestions(Section):
    """The questions that the phantom source wrote beside its reports."""

    origin: Literal["grammar"]


class GeneratedQuestions(Section):
    """Questions that one model writes from the reports and a second one validates (UCSF-PDGM-VQA)."""

    origin: Literal["generated"]
    author: Name = Field(description="id of the model that writes the questions")
    validator: Name = Field(description="id of the model that checks them")
    per_study: int = Field(default=20, ge=1, description="how many are asked for at most")
    temperature: float = Field(default=0.15, ge=0, description="of author and validator, where they take one")
    reasoning_effort: Literal["minimal", "low", "medium", "high"] = Field(
        default="medium", description="of the validator, where it takes one"
    )
    rules: FilePath | None = Field(
        default=None, description="YAML with the checks and keywords; else Overread's own config/filter.yaml"
    )
    review: Review = Review()
    release: Release | None = Field(default=None, description="how the questions are released; none: they are not")


Questions = Annotated[
    FindingQuestions | FileQuestions | GrammarQuestions | GeneratedQuestions, Field(discriminator="origin")
]


class DatasetSection(Section):
    """What every source has."""

    labels_are_named_by: ClassVar[str] = "'labels'"
    reports_are_named_by: ClassVar[str] = "'reports'"
    blank_is_not_mentioned: ClassVar[bool] = True
    """Whether a blank label is that of the CheXpert labeller: a finding that the report does not mention."""

    questions: Questions
    substitutes: Substitutes = Substitutes()
    restricted: bool = Field(
        default=True, description="reports and images may go only to loopback or to an attested endpoint"
    )

    @model_validator(mode="after")
    def _questions_fit(self) -> Self:
        source, modality = getattr(self, "source", None), getattr(self, "modality", None)
        if isinstance(self.questions, GrammarQuestions) and (source, modality) != ("phantom", "mri"):
            raise ValueError("questions of origin 'grammar' come with a phantom of modality mri only")
        if isinstance(self.questions, FindingQuestions) and modality == "mri":
            raise ValueError("questions of origin 'findings' are about chest X-rays; the modality here is mri")
        if isinstance(self.questions, FindingQuestions) and not self.has_labels:
            # Otherwise every finding would be one that is not mentioned, which counts as no.
            raise ValueError(f"questions of origin 'findings' need labels: name {self.labels_are_named_by}")
        if (
            isinstance(self.questions, FindingQuestions)
            and not self.blank_is_not_mentioned
            and "not_mentioned" not in self.questions.model_fields_set
        ):
            raise ValueError(
                "questions: nothing says that a finding without a label is absent; "
                "set not_mentioned to leave-out, or to negative if it is"
            )
        return self

    @property
    def has_labels(self) -> bool:
        """Whether the source says of its studies which findings they show."""
        return True

    @property
    def has_reports(self) -> bool:
        """Whether the source has reports to show, or to write questions from."""
        return True

    @property
    def also_read(self) -> dict[str, str]:
        """Files and folders that are read besides the data set's own folder or file, by key."""
        return {}


class Phantom(DatasetSection):
    """The semi-synthetic demo: findings planted in real anatomy, written in the layout of the real data sets."""

    source: Literal["phantom"]
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


class Folder(DatasetSection):
    """A data set that lies in a folder."""

    root: FilePath
    follow_links: bool = Field(
        default=False, description="take files that a symbolic link places outside the data set's folders"
    )


class UcsfPdgm(Folder):
    """Glioma MRI in the layout of the UCSF-PDGM release."""

    source: Literal["ucsf-pdgm"]
    modality: ClassVar[Modality] = "mri"
    metadata: FilePath | None = Field(default=None, description="UCSF-PDGM-metadata_v5.csv; else looked for in root")
    reports: FilePath | None = Field(default=None, description="CSV or folder of text files; not in the public release")
    report_columns: ReportColumns = Field(default=ReportColumns(), description="of a CSV of reports")
    segmentation: Segmentation = Field(
        default=Provided(), description="whose tumour mask chooses the slices: the data set's own, or a network's"
    )

    @property
    def has_reports(self) -> bool:
        return self.reports is not None

    @property
    def also_read(self) -> dict[str, str]:
        return _named(metadata=self.metadata, reports=self.reports)


class MimicCxr(Folder):
    """Chest X-rays in the layout of MIMIC-CXR-JPG."""

    source: Literal["mimic-cxr"]
    modality: ClassVar[Modality] = "xray"
    reports: FilePath | None = Field(default=None, description="the MIMIC-CXR folder with the reports; else root")
    split: Literal["train", "validate", "test"] | None = Field(default=None, description="only this split; else all")
    labels: Literal["chexpert", "negbio"] = Field(default="chexpert", description="which labeller's table is the truth")
    frontal: FrontalChoice = FrontalChoice()

    @property
    def also_read(self) -> dict[str, str]:
        return _named(reports=self.reports)


class OpenI(Folder):
    """Indiana University chest X-rays: XML reports and PNG."""

    source: Literal["open-i"]
    modality: ClassVar[Modality] = "xray"
    restricted: bool = False
    projections: FilePath = Field(description="CSV that says which images are frontal: the reports do not")
    projection_columns: ProjectionColumns = ProjectionColumns()
    frontal_values: Annotated[tuple[str, ...], NotEmpty, Distinct] = Field(
        default=("frontal", "PA", "AP"), description="what the table calls a frontal image, in any case"
    )
    images: FilePath | None = Field(default=None, description="folder of the PNG files; else looked for in root")
    mesh: FilePath | None = Field(default=None, description="YAML that maps MeSH terms to findings: open-i-mesh.yaml")
    labels: FilePath | None = Field(default=None, description="CSV with a study and the findings a row")

    labels_are_named_by: ClassVar[str] = "'mesh' (open-i-mesh.yaml) or 'labels'"
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
        return _named(projections=self.projections, images=self.images, mesh=self.mesh, labels=self.labels)


class ChexpertPlus(Folder):
    """Chest X-rays with reports in the layout of CheXpert Plus."""

    source: Literal["chexpert-plus"]
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
        return _named(images=self.images, labels=self.labels)


class Table(DatasetSection):
    """The user's own CSV or Parquet file, a row a study."""

    reports_are_named_by: ClassVar[str] = "'columns.report'"
    blank_is_not_mentioned: ClassVar[bool] = False

    source: Literal["table"]
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
        return _named(root=self.root)


def _named(**paths: str | None) -> dict[str, str]:
    return {key: path for key, path in paths.items() if path is not None}


Dataset = Annotated[Phantom | UcsfPdgm | MimicCxr | OpenI | ChexpertPlus | Table, Field(discriminator="source")]
