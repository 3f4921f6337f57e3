"""The five nouns as typed records, and the one way to read and write each.

    Study -> Question -> Trial -> Response -> Table

Nobody else knows a file format: Study, Picture, Trial and Response are Parquet with a fixed schema, Question is one
JSON object a line. Every write goes to a temporary file first and is then renamed, so a killed job leaves no half file.
Ids come from content: the same content has the same id in whatever order it is met.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.outputs import replacing as replacing

if TYPE_CHECKING:
    import pyarrow as pa

Modality = Literal["mri", "xray"]
Role = Literal["image", "caption", "report", "question", "options", "instruction"]
Geometry = Literal["agree", "sform", "qform"]
"""Which part of a NIfTI header says how the patient lies: both where they agree, or the one that the config names."""
Readout = Literal["choice", "yes-no", "first-token", "free-text", "similarity"]
Status = Literal["answered", "unparsed", "refused", "truncated", "failed"]


def content_hash(content: object) -> str:
    """The first 16 hex digits of the SHA-256 of `content` as canonical JSON (sorted keys, no spaces)."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


class OtherColumns(BadInput):
    """A file of records that lacks columns: an older version wrote it, or something else."""


class Record(BaseModel):
    """A row. Frozen: a stage writes new records, it never edits those of the stage before."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Box(Record):
    """A part of a radiograph that somebody marked as a finding."""

    topic: str = Field(description="the finding, as the file of boxes calls it")
    left: float
    top: float
    right: float
    bottom: float
    unit: Literal["pixels", "shares"] = Field(description="pixels of the file, or shares of its width and height")


class Study(Record):
    """One examination of one patient.

    A study that can't be used is kept, with the reason in `problem`: nothing is lost between the source and the tables.
    """

    study: str
    patient: str
    dataset: str
    modality: Modality = Field(description="what kind of examination")
    images: dict[str, str] = Field(description="file by series (T1, FLAIR, tumor_segmentation) or view (frontal)")
    report: dict[str, str] = Field(description="text by section: findings, impression")
    labels: dict[str, str] = Field(
        description="truth by topic: for X-rays a finding and positive, negative or uncertain (absent: not mentioned); "
        "for MRI a question's topic and the text of its correct option"
    )
    attributes: dict[str, str] = Field(
        default_factory=dict, description="what else the source says, by its column name"
    )
    reading: dict[str, str] = Field(
        default_factory=dict,
        description="how its files are read where they don't say so themselves, by the config: `geometry` sform or "
        "qform; `label 1` and so on, what that number in the tumour mask means",
    )
    boxes: tuple[Box, ...] = Field(
        default=(), description="of X-rays: where people marked findings on the frontal image"
    )
    restricted: bool = Field(description="may not leave this machine for an endpoint that the config does not attest")
    semi_synthetic: bool = Field(default=False, description="made by the phantom source: said wherever it is shown")
    problem: str | None = Field(default=None, description="why the study can't be used")


class Question(Record):
    """A stem with its options. Its id is the hash of study, stem, options and answer."""

    question: str = ""
    study: str
    patient: str
    stem: str
    options: tuple[str, ...] = Field(min_length=2, description="as written")
    answer: str = Field(description="the text of the correct option")
    topic: str
    evidence: str = Field(default="", description="the sentence of the report that it came from")
    origin: str = Field(description="what wrote it: grammar, findings, or a model's id")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(set(self.options)) != len(self.options):
            raise ValueError(f"the options of {self.stem!r} are not distinct: {list(self.options)}")
        if self.answer not in self.options:
            raise ValueError(f"the answer {self.answer!r} of {self.stem!r} is not an option: {list(self.options)}")
        key = content_hash([self.study, self.stem, list(self.options), self.answer])
        if self.question not in ("", key):
            raise ValueError(f"question {self.question!r} has other content than its id says: it would be {key}")
        object.__setattr__(self, "question", key)
        return self

    @property
    def answer_index(self) -> int:
        """Place of the right option among the options as written, from 0."""
        return self.options.index(self.answer)


class Picture(Record):
    """One rendered image of a view of a study: a row of `images.parquet`."""

    study: str
    view: str = Field(description="the view's name in the config")
    order: int = Field(ge=0, description="place among the view's pictures")
    name: str = Field(description="what it shows, for a person: 'FLAIR, axial'")
    path: str = Field(description="PNG, or .nii.gz of a volume, relative to the dataset's folder")
    pixels: str = Field(description="SHA-256 of mode, size and pixel bytes; of a volume `images.volume_file.digest`")
    width: int = Field(ge=1, description="in pixels")
    height: int = Field(ge=1, description="in pixels")
    depth: int | None = Field(default=None, ge=1, description="slices of a volume; none for a flat picture")
    affine: tuple[float, ...] | None = Field(
        default=None,
        min_length=12,
        max_length=12,
        description="of a volume: voxel to RAS+ world, mm, the first three rows one after the other",
    )
    caption: Literal["before", "after"] = Field(
        default="before", description="where its name stands in a prompt that shows several pictures"
    )
    series: str = Field(description="the series or view of the study that it shows")
    plane: str | None = Field(default=None, description="axial, coronal or sagittal, of a slice")
    slice_index: int | None = Field(default=None, description="index on the grid that chose it")
    position_mm: float | None = Field(default=None, description="along the plane's normal, patient coordinates (LPS)")
    chosen_by: str | None = Field(default=None, description="the rule that chose the slice")
    scaling: str | None = Field(default=None, description="which values are black and white, and how they were set")
    orientation: str | None = Field(default=None, description="where the patient's sides are, in DICOM's letters")
    edit: str | None = Field(default=None, description="the edits made of it, in their order, as JSON; none: as it is")
    edit_mask: str | None = Field(
        default=None, description="SHA-256 of the lesion's mask on the image's grid, of an edit that took it"
    )
    hides: float | None = Field(
        default=None, description="of a picture with a box covered (edit `occlude`): what share of the lesion it hides"
    )
    doubt: str | None = Field(default=None, description="why a person should look at it before it is believed")


class Substitute(Record):
    """Whose image replaces a study's own: a row of `substitutes.csv`."""

    study: str
    patient: str
    substitute: str = Field(description="the study whose image replaces the study's own")
    substitute_patient: str = Field(description="that study's patient")
    why: str = Field(description="the reason")
    topic: str = ""
    number: int = Field(default=1, ge=1, description="which of a study's substitutes, from 1")

    @property
    def within_patient(self) -> bool:
        return self.patient == self.substitute_patient


class Block(Record):
    """One span of a prompt: text with a role, or an image with its pixel hash."""

    role: Role
    text: str | None = None
    image: str | None = Field(default=None, description="PNG or .nii.gz, relative to the dataset's folder")
    pixels: str | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.role == "image":
            if self.text is not None or self.image is None or self.pixels is None:
                raise ValueError("an image block has image and pixels, and no text")
        elif self.text is None or self.image is not None or self.pixels is not None:
            raise ValueError("a text block has text, and no image")
        return self


class Trial(Record):
    """A question under a setting: what is asked, in full. Its id is the hash of what reaches the model.

    Two trials with equal ids put the same request; which setting and run they belong to is dress.
    """

    trial: str = ""
    dataset: str
    setting: str
    run: int = Field(ge=1)
    question: str
    topic: str
    study: str
    patient: str
    image_study: str | None = Field(description="whose image is shown; none for black and for no image")
    image_patient: str | None = Field(description="that study's patient")
    label: str | None = Field(description="Study.labels[topic] of the study")
    image_label: str | None = Field(description="Study.labels[topic] of the image's study")
    blocks: tuple[Block, ...] = Field(
        description="the prompt in its order: texts with their role, images with their pixel hash"
    )
    options: tuple[str, ...] = Field(description="in the order shown")
    permutation: tuple[int, ...] = Field(description="place shown -> place as written")
    answer: int = Field(ge=0, description="place shown of the correct option, from 0")
    readout: Readout = Field(description="how the answer is read")
    attention: str = Field(default="none", description="none, from-L or only-L: where the report is hidden")
    report_label: str | None = Field(
        default=None,
        description="the correct option by the report as shown, which may be another study's; none where it says "
        "nothing of it, as a neutral text does. Not given: the study's own wherever there is a report",
    )
    dropped: tuple[str, ...] = Field(default=(), description="sentences that were taken out of the report")
    controls: dict[str, str] = Field(
        default_factory=dict, description="what else of the setting reaches the model beside the blocks, by name"
    )
    boxes: tuple[Box, ...] = Field(
        default=(), description="of X-rays: where people marked findings on the frontal image"
    )
    restricted: bool = Field(description="may not leave this machine for an endpoint that the config does not attest")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if sorted(self.permutation) != list(range(len(self.options))) or self.answer >= len(self.options):
            raise ValueError(f"trial of question {self.question}: permutation and options do not fit")
        blocks = [[block.role, block.text, block.pixels] for block in self.blocks]
        controls = [self.controls] if self.controls else []
        key = content_hash([blocks, list(self.options), self.readout, self.attention, *controls])
        if self.trial not in ("", key):
            raise ValueError(f"trial {self.trial!r} has other content than its id says: it would be {key}")
        object.__setattr__(self, "trial", key)
        if "report_label" not in self.model_fields_set and self.has_report:
            object.__setattr__(self, "report_label", self.label)
        return self

    @property
    def images(self) -> tuple[Block, ...]:
        return tuple(block for block in self.blocks if block.role == "image")

    @property
    def has_report(self) -> bool:
        return any(block.role == "report" for block in self.blocks)


class Response(Record):
    """What a model gave for a trial. `answer` and `logprobs` are by place shown; `choice` is by place as written."""

    request: str = Field(description="the request key")
    trial: str
    question: str
    dataset: str
    model: str
    setting: str
    run: int
    text: str = Field(description="what the model wrote, as it wrote it")
    status: Status = Field(description="what the response is: only `answered` gives an option")
    answer: int | None = Field(description="place shown of the option given, from 0; only with status answered")
    choice: int | None = Field(description="the same option's place as written")
    logprobs: tuple[float, ...] | None = Field(default=None, description="log-probability by place shown")
    finish_reason: str | None = Field(default=None, description="why the model stopped, in the back end's words")
    prompt_tokens: int | None = None
    image_tokens: int | None = Field(default=None, description="tokens of the prompt that stand for images")
    completion_tokens: int | None = None
    seconds: float | None = None
    error: str | None = Field(default=None, description="why the request failed or was not put")

    @model_validator(mode="after")
    def _never_guessed(self) -> Self:
        if (self.status == "answered") != (self.answer is not None and self.choice is not None):
            raise ValueError(f"request {self.request}: status {self.status} with answer {self.answer}")
        return self


def request_key(identity: dict[str, Any], trial: Trial, also: Sequence[str | None] = ()) -> str:
    """The key under which an answer is kept: what the model is, what the trial shows, for which question, in which run.

    The question is in it because two studies can put the same request (one black picture, one stem): a sampled answer
    to one is no answer to the other.

    identity  everything of a model that can change its answer (`Backend.identity`), never its label or its resources
    also      what else of the trial the back end looks at; only the calibrated reader does
    """
    return content_hash([identity, trial.trial, trial.question, trial.run, list(also)])


# -- reading and writing ---------------------------------------------------------------------------------------------

R = TypeVar("R", bound=Record)


class _Schemas:
    """Arrow schemas, made on first use: importing this module must not load pyarrow (the Snakefile imports it)."""

    _made: ClassVar[dict[type[Record], Any]] = {}

    @classmethod
    def of(cls, kind: type[Record]) -> pa.Schema:
        if kind not in cls._made:
            import pyarrow as pa

            text, texts = pa.string(), pa.map_(pa.string(), pa.string())
            block = pa.struct([("role", text), ("text", text), ("image", text), ("pixels", text)])
            corners = [(name, pa.float64()) for name in ("left", "top", "right", "bottom")]
            special: dict[str, pa.DataType] = {
                "boxes": pa.list_(pa.struct([("topic", text), *corners, ("unit", text)])),
                "images": texts, "report": texts, "labels": texts, "attributes": texts, "reading": texts,
                "controls": texts,
                "blocks": pa.list_(block), "options": pa.list_(text), "dropped": pa.list_(text),
                "permutation": pa.list_(pa.int16()),
                "logprobs": pa.list_(pa.float64()), "restricted": pa.bool_(), "semi_synthetic": pa.bool_(),
                "seconds": pa.float64(), "position_mm": pa.float64(), "hides": pa.float64(),
                "affine": pa.list_(pa.float64()),
            }  # fmt: skip
            whole = {"run", "order", "width", "height", "depth", "slice_index", "answer", "choice"}
            whole |= {"prompt_tokens", "image_tokens", "completion_tokens"}
            cls._made[kind] = pa.schema(
                [(name, special.get(name, pa.int32() if name in whole else text)) for name in kind.model_fields]
            )
        return cls._made[kind]


def _write_parquet(records: Iterable[R], kind: type[R], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _Schemas.of(kind)
    maps = [field.name for field in schema if pa.types.is_map(field.type)]
    rows = [record.model_dump() for record in records]
    for row in rows:
        row.update({name: sorted(row[name].items()) for name in maps})
    with replacing(path) as temporary:
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), temporary, compression="zstd")


def read_columns(path: Path, kind: type[Record], columns: Sequence[str] | None = None) -> pa.Table:
    """Columns of a Parquet file of `kind`, for vectorised work. BadInput if it is no such file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    wanted = list(columns) if columns is not None else _Schemas.of(kind).names
    try:
        with pq.ParquetFile(regular(path)) as file:
            missing = [name for name in wanted if name not in file.schema_arrow.names]
            if missing:
                raise OtherColumns(
                    f"{path}: not a {kind.__name__} table of this version: no column {', '.join(missing)}; run the "
                    "workflow again"
                )
            return file.read(wanted).select(wanted)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{path}: not a {kind.__name__} table ({' '.join(str(error).split())})") from error


def _read_parquet(path: Path, kind: type[R]) -> list[R]:
    rows = read_columns(path, kind).to_pylist(maps_as_pydicts="strict")
    try:
        return [kind.model_validate(row) for row in rows]
    except ValidationError as error:
        raise BadInput(f"{path}: {one_line(error)}") from None


def one_line(error: ValidationError) -> str:
    """The first problem of a validation error as `field: message`."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


def write_studies(studies: Iterable[Study], path: Path) -> None:
    _write_parquet(sorted(studies, key=lambda study: study.study), Study, path)


def read_studies(path: Path, *, with_problems: bool = False) -> list[Study]:
    """The studies that can be used; with `with_problems` the others too."""
    return [study for study in _read_parquet(path, Study) if with_problems or study.problem is None]


def write_pictures(pictures: Iterable[Picture], path: Path) -> None:
    _write_parquet(sorted(pictures, key=lambda one: (one.study, one.view, one.order)), Picture, path)


def read_pictures(path: Path) -> list[Picture]:
    return _read_parquet(path, Picture)


def write_trials(trials: Iterable[Trial], path: Path) -> None:
    """Trials in the order of study, then question: those that share an image and a report follow each other."""
    _write_parquet(sorted(trials, key=lambda trial: (trial.study, trial.question)), Trial, path)


def read_trials(path: Path) -> list[Trial]:
    return _read_parquet(path, Trial)


def write_responses(responses: Iterable[Response], path: Path) -> None:
    """Responses in the order given, which is that of their trials' file."""
    _write_parquet(responses, Response, path)


def read_responses(path: Path) -> list[Response]:
    return _read_parquet(path, Response)


def write_questions(questions: Iterable[Question], path: Path) -> None:
    """One JSON object a line, sorted by study and id. BadInput if two are the same question."""
    ordered = sorted(questions, key=lambda question: (question.study, question.question))
    for one, two in itertools.pairwise(ordered):
        if one.question == two.question:
            raise BadInput(f"question {one.question} of study {one.study} occurs twice: {one.stem!r}")
    with replacing(path) as temporary:
        temporary.write_text("".join(f"{question.model_dump_json()}\n" for question in ordered), encoding="utf-8")


def read_questions(path: Path) -> list[Question]:
    """The questions of a JSONL file. An absent or empty `question` is filled with the id that the content gives."""
    try:
        lines = regular(path).read_text(encoding="utf-8").split("\n")  # splitlines would also cut at U+2028
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not UTF-8 text") from None
    questions = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            questions.append(Question.model_validate_json(line))
        except ValidationError as error:
            raise BadInput(f"{path}:{number}: {one_line(error)}") from None
    return questions


def write_substitutes(substitutes: Iterable[Substitute], path: Path) -> None:
    from overread.core.csv_files import write_csv

    ordered = sorted(substitutes, key=_substitute_order)
    write_csv(path, list(Substitute.model_fields), (one.model_dump() for one in ordered))


def _substitute_order(one: Substitute) -> tuple[str, str, int]:
    return one.study, one.topic, one.number


def read_substitutes(path: Path) -> list[Substitute]:
    import csv

    try:
        with regular(path).open(newline="", encoding="utf-8") as file:
            table = csv.DictReader(file)
            columns = list(Substitute.model_fields)
            if list(table.fieldnames or ()) != columns:
                raise BadInput(f"{path}: not a table of substitutes: its columns are not {', '.join(columns)}")
            return [Substitute.model_validate(row) for row in table]
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except ValidationError as error:
        raise BadInput(f"{path}: {one_line(error)}") from None
