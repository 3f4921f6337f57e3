"""Data sets: where studies come from, and which questions are asked about them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from overread.config.base import FilePath, Name, Section
from overread.config.curation import Release, Review
from overread.errors import unknown
from overread.records import Modality

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

    questions: Questions
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
        return self


class Phantom(DatasetSection):
    """The semi-synthetic demo: findings planted in real anatomy, written in the layout of the real data sets."""

    source: Literal["phantom"]
    modality: Modality
    studies: int | None = Field(default=None, ge=1, description="MRI: how many studies, one a patient")
    patients: int | None = Field(default=None, ge=1, description="X-ray: how many patients, with 1 to 4 studies each")
    seed: int = 1
    restricted: bool = False

    @model_validator(mode="after")
    def _size(self) -> Self:
        wanted, other = ("studies", "patients") if self.modality == "mri" else ("patients", "studies")
        if getattr(self, wanted) is None or getattr(self, other) is not None:
            raise ValueError(f"a phantom of modality {self.modality} takes {wanted!r} and not {other!r}")
        return self


class Folder(DatasetSection):
    """A data set that lies in a folder."""

    root: FilePath


class UcsfPdgm(Folder):
    """Glioma MRI in the layout of the UCSF-PDGM release."""

    source: Literal["ucsf-pdgm"]
    modality: ClassVar[Modality] = "mri"
    metadata: FilePath | None = Field(default=None, description="UCSF-PDGM-metadata_v5.csv; else looked for in root")
    reports: FilePath | None = Field(default=None, description="CSV or folder of text files; not in the public release")
    segmentation: Literal["provided", "swin-unetr", "segresnet"] = Field(
        default="provided", description="whose tumour mask chooses the slices: the data set's own, or a network's"
    )
    checkpoint: FilePath | None = Field(default=None, description="weights of the network that segments")
    checkpoint_sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None

    @model_validator(mode="after")
    def _has_checkpoint(self) -> Self:
        if (self.segmentation == "provided") != (self.checkpoint is None):
            need = "takes no" if self.segmentation == "provided" else "needs a"
            raise ValueError(f"segmentation {self.segmentation!r} {need} 'checkpoint'")
        return self


class MimicCxr(Folder):
    """Chest X-rays in the layout of MIMIC-CXR-JPG."""

    source: Literal["mimic-cxr"]
    modality: ClassVar[Modality] = "xray"
    reports: FilePath | None = Field(default=None, description="the MIMIC-CXR folder with the reports; else root")
    split: Literal["train", "validate", "test"] | None = Field(default=None, description="only this split; else all")


class OpenI(Folder):
    """Indiana University chest X-rays: XML reports and PNG."""

    source: Literal["open-i"]
    modality: ClassVar[Modality] = "xray"
    restricted: bool = False


class ChexpertPlus(Folder):
    """Chest X-rays with reports in the layout of CheXpert Plus."""

    source: Literal["chexpert-plus"]
    modality: ClassVar[Modality] = "xray"


class Table(DatasetSection):
    """The user's own CSV."""

    source: Literal["table"]
    path: FilePath
    modality: Modality


Dataset = Annotated[Phantom | UcsfPdgm | MimicCxr | OpenI | ChexpertPlus | Table, Field(discriminator="source")]
