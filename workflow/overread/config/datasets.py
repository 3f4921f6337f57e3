"""What every data set has: where its studies come from, and which questions are asked about them.

Each source is one module or folder of `overread.sources`, with its section beside its reader.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, field_validator, model_validator

from overread.config.base import FilePath, Name, Section
from overread.config.curation import Release, Review
from overread.config.substitutes import Substitutes
from overread.core.errors import BadInput, unknown
from overread.core.records import Modality

if TYPE_CHECKING:
    from pathlib import Path

    from overread.core.records import Study
    from overread.sources.shared.remarks import Remarks

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
                raise ValueError(f"duplicate {name!r}")
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
        default=None, description="YAML with the checks and keywords; else Overread's own filter.yaml"
    )
    review: Review = Review()
    release: Release | None = Field(default=None, description="how the questions are released; none: they are not")


Questions = Annotated[
    FindingQuestions | FileQuestions | GrammarQuestions | GeneratedQuestions, Field(discriminator="origin")
]


class Boxes(Section):
    """A file of boxes around findings on chest X-rays, in a published layout."""

    path: FilePath
    layout: Literal["vindr-cxr", "padchest-gr"] = Field(
        description="vindr-cxr: annotations_*.csv, in pixels; padchest-gr: grounded_reports_*.json, in shares"
    )


class Expected(NamedTuple):
    """How large a data set is said to be."""

    studies: int
    patients: int | None
    questions: int
    basis: Literal["published", "from the config"]


class DatasetSection(Section):
    """What every source has: what the rest of the program asks of a data set."""

    title: ClassVar[str]
    """What it is called in the methods: `UCSF-PDGM`."""
    layout: ClassVar[tuple[str, ...]] = ()
    """Where studies lie in its folder, as patterns, the layout as distributed first; empty: nothing is looked for."""
    labels_are_named_by: ClassVar[str] = "'labels'"
    reports_are_named_by: ClassVar[str] = "'reports'"
    blank_is_not_mentioned: ClassVar[bool] = True
    """Whether a blank label is that of the CheXpert labeller: a finding that the report does not mention."""

    if TYPE_CHECKING:

        @property
        @abstractmethod
        def source(self) -> str: ...

        @property
        @abstractmethod
        def modality(self) -> Modality: ...

    questions: Questions
    substitutes: Substitutes = Substitutes()
    boxes: Boxes | None = Field(
        default=None, description="of chest X-rays: where findings lie, for edits of the lesion"
    )
    restricted: bool = Field(
        default=True, description="reports and images may go only to loopback or to an attested endpoint"
    )

    @model_validator(mode="after")
    def _questions_fit(self) -> Self:
        if isinstance(self.questions, GrammarQuestions) and not self.has_grammar:
            raise ValueError("questions of origin 'grammar' come with a phantom of modality mri only")
        if self.boxes is not None and self.modality == "mri":
            raise ValueError("boxes: are of chest X-rays; on MRI the tumour mask says where the lesion is")
        if isinstance(self.questions, FindingQuestions) and self.modality == "mri":
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

    @property
    def all_read(self) -> dict[str, str]:
        """`also_read`, and the file of boxes."""
        return {**self.also_read, **({} if self.boxes is None else {"boxes": self.boxes.path})}

    @property
    def reading(self) -> dict[str, str]:
        """`Study.reading` of its studies: what the config says of files that don't say it themselves."""
        found = {}
        if (geometry := getattr(self, "geometry", "agree")) != "agree":
            found["geometry"] = str(geometry)
        meanings = getattr(getattr(self, "segmentation", None), "meanings", None) or {}
        return found | {f"label {number}": meaning for number, meaning in sorted(meanings.items())}

    @property
    def has_grammar(self) -> bool:
        """Whether the data come with questions of origin `grammar`."""
        return False

    @property
    @abstractmethod
    def place(self) -> str | None:
        """The folder or file that it is read from; none if a job makes it (`make`)."""

    @property
    def places(self) -> dict[str, str]:
        """All that must be there before it can be read, by key."""
        return self.all_read

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders that files of its studies may lie in."""
        return () if self.place is None else (self.place,)

    @property
    def paper(self) -> str | None:
        """Whose published counts stand beside its cohort's, as `trials cohort --paper` calls it."""
        return None

    def expected(self, questions_a_study: int | None) -> Expected | None:
        """How large it is before it has been read; none where nobody knows.

        questions_a_study   how many are asked about each, where the config says so
        """
        return None

    def make(self, folder: Path, workers: int) -> None:
        """Write the data to a new or empty folder. BadInput for a source that is read where it lies."""
        raise BadInput(f"source {self.source!r} is not made but read")

    @abstractmethod
    def read(self, dataset: str, folder: Path, remarks: Remarks) -> list[Study]:
        """One row per study, also those that can't be used, with the reason in `problem`.

        dataset  its name in the config
        folder   `place`, or the folder that `make` wrote
        remarks  takes rows and files that had to be left out, and counts
        raises   BadInput if nothing can be read at all
        """


class Folder(DatasetSection):
    """A data set that lies in a folder."""

    root: FilePath
    follow_links: bool = Field(
        default=False, description="take files that a symbolic link places outside the data set's folders"
    )

    @property
    def place(self) -> str:
        return self.root

    @property
    def places(self) -> dict[str, str]:
        return {"root": self.root, **self.all_read}


def named(**paths: str | None) -> dict[str, str]:
    return {key: path for key, path in paths.items() if path is not None}
