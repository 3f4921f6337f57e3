"""What an aspect of a setting is: its fields, and what the rest of the program needs to know of them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from overread.core.records import Block, Picture, Question, Role, Study
from overread.core.section import Section

if TYPE_CHECKING:
    from overread.config import Config
    from overread.settings.setting import Setting


class LeftOutError(Exception):
    """A setting can't be made for a question; its message says why."""


class Dose(NamedTuple):
    """How much of something a setting has: `value` on the axis `name`, by its field `field`; `what` is it in words."""

    name: str
    field: str
    value: float
    what: str


class Misfit(NamedTuple):
    """Why a setting can't be asked: never (they don't go together), or because something is missing here."""

    when: Literal["never", "missing"]
    why: str


@dataclass(frozen=True)
class ReportShown:
    """A report as shown.

    label    the truth that it speaks of: the study's, the substitute's, or None where it says nothing about it
    dropped  the sentences that were taken out
    """

    blocks: tuple[Block, ...]
    label: str | None
    dropped: tuple[str, ...] = ()


class Materials(Protocol):
    """What trials are made of, as the trials stage gives it to the aspects."""

    seed: int

    def substitute(self, question: Question, number: int) -> Study | None:
        """The study that takes the place of a question's own."""

    def pictures(self, study: Study, view: str) -> list[Picture]:
        """The rendered pictures of a view of a study, in order."""

    def black(self, picture: Picture) -> Picture:
        """A black picture of the same size."""

    def text(self, role: Role, template: str, **values: Any) -> list[Block]:
        """A block from a prompt template; none if it renders to nothing. BadInput if it can't be rendered."""

    def option_texts(self, question: Question, options: Sequence[str]) -> list[Block]:
        """A block for each option: the texts that a picture is compared with."""

    def report(self, name: str, draft: Draft) -> ReportShown:
        """The report called `name`. LeftOutError where it can't be made for the question."""


@dataclass
class Draft:
    """A trial while the aspects make it, each in the order of its rank: first all `show`, then `tell`, then `arrange`.

    view         name of the view whose pictures are shown
    substitute   the study that may take the place of the question's own
    image_of     whose image is shown; None for none and for a black one
    pictures     as shown; from them come the image blocks, each with its caption
    blocks       after `tell` the text; for `arrange` the images come first
    images       how many of the blocks, from the first, are pictures and their captions
    controls     what else of the setting reaches the model beside the blocks: part of the trial's identity
    """

    question: Question
    study: Study
    materials: Materials
    view: str
    substitute: Study | None = None
    image_of: Study | None = None
    pictures: list[Picture] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    images: int = 0
    options: tuple[str, ...] = ()
    permutation: tuple[int, ...] = ()
    readout: Any = "choice"
    attention: str = "none"
    report_label: str | None = None
    dropped: tuple[str, ...] = ()
    controls: dict[str, str] = field(default_factory=dict)


class Aspect(Section):
    """One aspect of a setting: a class with a `name`, whose fields are keys of a setting, each with its plain value as
    its default. A subclass registers itself. What it does not override goes without saying.

    A check of one field belongs to the field's type; a check against other fields to `conflict`.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    """What it is about, as a noun with its article: `the image`."""
    rank: ClassVar[int]
    """Where it stands when a setting is described, and where its text stands in a prompt."""
    weight: ClassVar[int] = 100
    """How far back a change of it puts a setting among a table's columns. What is not said goes last."""
    qualifies: ClassVar[str] = ""
    """Name of another aspect whose words its own continue after a comma: they are then a participle phrase."""
    always: ClassVar[bool] = False
    """Whether it is told of a setting where it is plain, too."""
    manner: ClassVar[bool] = False
    """Whether it is how a question is put: in the papers' layout it then makes a row of its own, and never a cell."""
    changes_trials: ClassVar[bool] = True
    """Whether one question under two values of it may be two trials."""

    @classmethod
    def __pydantic_init_subclass__(cls, **more: Any) -> None:
        super().__pydantic_init_subclass__(**more)
        if "name" in vars(cls):
            from overread.settings.registry import register

            register(cls)

    # -- the config --------------------------------------------------------------------------------------------------

    def conflict(self, setting: Setting) -> str | None:
        """What is wrong with it beside the other fields of the setting."""
        return None

    def missing(self, config: Config) -> str | None:
        """What it needs that is not there."""
        return None

    def against_dataset(self, config: Config, dataset: str) -> list[Misfit]:
        """Why it can't be asked of a data set."""
        return []

    def against_model(self, config: Config, model: str) -> list[Misfit]:
        """Why it can't be put to a model."""
        return []

    def requests(self, questions: int | None, studies: int | None) -> int | None:
        """How many of `questions` it asks, of so many studies. None: not known."""
        return questions

    # -- words and tables --------------------------------------------------------------------------------------------

    def effective(self, setting: Setting) -> dict[str, Any]:
        """Its fields by name; one that does nothing in this setting has its plain value."""
        return {name: getattr(self, name) for name in type(self).model_fields}

    def words(self) -> str:
        """What it does, as part of a sentence. It says something of each value."""
        return f"{self.name} {self._values(list(type(self).model_fields))}"

    def short(self) -> str:
        """The same for the head of a column; empty exactly where it is plain."""
        changed = [name for name, value in self if value != type(self).model_fields[name].default]
        return f"{self.name} {self._values(changed)}" if changed else ""

    def _values(self, names: Sequence[str]) -> str:
        told = [f"{'' if name == self.name else f'{name} '}{_shown(getattr(self, name))}" for name in names]
        return " and ".join(told)

    def sort_key(self) -> tuple[Any, ...]:
        """Sorts its values, within a table's columns."""
        return tuple(
            part
            for _, value in self
            for part in ((0, value, "") if isinstance(value, int | float) else (1, 0, str(value)))
        )

    def doses(self) -> tuple[Dose, ...]:
        """Its values on numeric axes: settings that differ in one dose alone are a curve."""
        return tuple(
            Dose(name, name, float(value), name.replace("_", " "))
            for name, value in self
            if isinstance(value, int | float) and not isinstance(value, bool)
        )

    def without(self, dose: Dose) -> Any:
        """What its field is once a dose of it is taken out: the same for all points of a curve."""
        return type(self).model_fields[dose.field].get_default(call_default_factory=True)

    def shows_the_study(self) -> bool:
        """Whether something of a study reaches the model by it. Of what is not known and not plain, it is assumed."""
        return any(value != type(self).model_fields[name].default for name, value in self)

    # -- the trial ---------------------------------------------------------------------------------------------------

    def ask(self, questions: list[Question], seed: int, setting: Setting) -> list[Question]:
        """Which of the questions are asked; or others of its own about the same studies."""
        return questions

    def variant(self) -> tuple[str, dict[str, Any]] | None:
        """Another rendering of the view: an ending of its name, and the keys of its section that differ."""
        return None

    def show(self, draft: Draft) -> None:
        """Choose or change the pictures. LeftOutError where that can't be done."""

    def tell(self, draft: Draft) -> None:
        """Add or change text blocks, options, readout and controls. LeftOutError where that can't be done."""

    def arrange(self, draft: Draft) -> None:
        """Change the order of all blocks."""


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Worded:
    """Text of a pattern, whose error says in words what it must be: `Annotated[str, Worded(pattern, words)]`."""

    pattern: str
    words: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "pattern": f"^{self.pattern}$"}

    def _checked(self, value: str) -> str:
        if not re.fullmatch(self.pattern, value):
            raise ValueError(
                f"must be {self.words} (it is {json.dumps(value, ensure_ascii=False) if value else 'empty'})"
            )
        return value
