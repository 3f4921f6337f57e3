"""A setting: all its aspects as one object with their fields as flat keys, and what is folded from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

from pydantic import ValidationError, create_model, model_validator

from overread.core.errors import BadInput
from overread.core.records import Question, one_line
from overread.core.section import Section
from overread.settings.base import Aspect, Dose
from overread.settings.registry import kinds

A = TypeVar("A", bound=Aspect)


class Composed(Section):
    """What a model is shown with a question, and how its answer is read. Every control is a value of one of these."""

    kinds: ClassVar[tuple[type[Aspect], ...]] = ()

    @model_validator(mode="after")
    def _possible(self) -> Self:
        for aspect in self.aspects:
            wrong = aspect.conflict(cast("Setting", self))
            if wrong is not None:
                raise ValueError(wrong)
        return self

    def __getitem__(self, kind: type[A]) -> A:
        """An aspect: `setting[Image].source`."""
        return cast(A, kind.model_construct(**{name: getattr(self, name) for name in kind.model_fields}))

    def _as_it_matters(self, kind: type[Aspect]) -> Aspect:
        """An aspect whose fields that do nothing here have their plain value."""
        aspect = self[kind]
        return aspect.model_copy(update=aspect.effective(cast("Setting", self)))

    @property
    def aspects(self) -> tuple[Aspect, ...]:
        """All aspects, by rank."""
        return tuple(self[kind] for kind in self.kinds)

    # -- what it is --------------------------------------------------------------------------------------------------

    def effective(self) -> dict[str, Any]:
        """All fields by name; one that does nothing here has its plain value."""
        this = cast("Setting", self)
        return {name: value for aspect in self.aspects for name, value in aspect.effective(this).items()}

    def changed(self) -> dict[str, Any]:
        """The fields that do not have their plain value."""
        return {name: value for name, value in self.effective().items() if value != plain_value(name)}

    def is_plain(self, *but: str) -> bool:
        """Whether every field, also one that nobody here has heard of, has its plain value; `but` for those named."""
        return set(self.changed()) <= set(but)

    def difference(self, other: Setting) -> dict[str, tuple[Any, Any]]:
        """By field in which the two do different things: both values."""
        one, two = self.effective(), other.effective()
        return {name: (one[name], two[name]) for name in one if one[name] != two[name]}

    def differing(self, other: Setting) -> tuple[type[Aspect], ...]:
        """The aspects in which the two do different things, by rank."""
        fields = self.difference(other)
        return tuple(kind for kind in self.kinds if fields.keys() & kind.model_fields.keys())

    def doses(self) -> tuple[Dose, ...]:
        """Its values on numeric axes."""
        return tuple(dose for aspect in self.aspects for dose in aspect.doses())

    def without(self, dose: Dose) -> Setting:
        """The same setting with the dose taken out: settings that are the same then lie on one curve."""
        owner = next(kind for kind in self.kinds if dose.field in kind.model_fields)
        return cast("Setting", self.model_copy(update={dose.field: self[owner].without(dose)}))

    @property
    def shows_the_study(self) -> bool:
        """Whether anything of a study is shown, its image or its report."""
        return any(aspect.shows_the_study() for aspect in self.aspects)

    # -- words -------------------------------------------------------------------------------------------------------

    def words_of(self, kind: type[Aspect]) -> str:
        """What an aspect does, with what goes on from it; of one that itself goes on from another, as a clause."""
        words = self._as_it_matters(kind).words()
        if kind.qualifies:
            base = next((one for one in self.kinds if one.name == kind.qualifies), None)
            return f"{base.title} is {words}" if base is not None else words
        changed = self.changed().keys()
        more = [
            self._as_it_matters(one).words()
            for one in self.kinds
            if one.qualifies == kind.name and changed & one.model_fields.keys()
        ]
        return ", ".join([words, *more])

    def describe(self) -> str:
        """All of it as one sentence: what is shown, and how the answer is read."""
        changed = self.changed().keys()
        parts = [
            self.words_of(kind)
            for kind in self.kinds
            if not kind.qualifies and (kind.always or changed & kind.model_fields.keys())
        ]
        text = "; ".join(parts)
        return f"{text[:1].upper()}{text[1:]}."

    def short(self, *, manner: bool | None = None) -> list[str]:
        """What it does besides what is plain, for heads of columns, by rank; of the manners only, or of the others."""
        return [
            text
            for aspect in self.aspects
            if manner in (None, aspect.manner) and (text := self._as_it_matters(type(aspect)).short())
        ]

    def sort_key(self) -> tuple[Any, ...]:
        """Sorts settings from the plainest to the most changed."""
        by_weight = sorted(self.aspects, key=lambda aspect: (-aspect.weight, aspect.name))
        return tuple(part for aspect in by_weight for part in aspect.sort_key())

    # -- the trial ---------------------------------------------------------------------------------------------------

    def ask(self, questions: Iterable[Question], seed: int) -> list[Question]:
        """The questions that are asked."""
        asked = list(questions)
        for aspect in self.aspects:
            asked = aspect.ask(asked, seed, cast("Setting", self))
        return asked

    def requests(self, questions: int | None, studies: int | None) -> int | None:
        """How many of a data set's questions are asked. None: not known."""
        for aspect in self.aspects:
            questions = aspect.requests(questions, studies)
        return questions

    def view(self, name: str) -> str:
        """What a view is called as this setting has it rendered."""
        return ".".join([name, *(ending for ending, _ in self._variants())])

    def view_section(self, section: Mapping[str, Any]) -> dict[str, Any]:
        """A view's section as this setting has it rendered."""
        return {**section, **{key: value for _, keys in self._variants() for key, value in keys.items()}}

    def _variants(self) -> list[tuple[str, dict[str, Any]]]:
        return [found for aspect in self.aspects if (found := aspect.variant()) is not None]


def _composed(found: tuple[type[Aspect], ...]) -> type[Composed]:
    fields: dict[str, Any] = {}
    for kind in found:
        for name, field in kind.model_fields.items():
            if hasattr(Composed, name) or hasattr(Aspect, name):
                raise BadInput(f"aspects of a setting: {kind.__module__}: the field {name!r} needs another name")
            if field.is_required():
                raise BadInput(f"aspects of a setting: {kind.__module__}: {name!r} has no plain value as its default")
            fields[name] = (field.annotation, copy(field))
    made: type[Composed] = create_model(
        "Setting", __base__=Composed, __module__=__name__, __doc__=Composed.__doc__, **fields
    )
    made.kinds = found
    return made


if TYPE_CHECKING:

    class Setting(Composed):
        """What a model is shown with a question. Its fields are those of the aspects: `setting[Image].source`."""

else:
    Setting = _composed(kinds())


def plain_value(name: str) -> Any:
    """What a field is in a plain setting."""
    return Setting.model_fields[name].get_default(call_default_factory=True)


def read_settings(written: Mapping[str, Any]) -> dict[str, Setting]:
    """The settings of a resolved config by name. BadInput for one that this version can't read."""
    try:
        return {name: Setting.model_validate(one) for name, one in written.items()}
    except ValidationError as error:
        raise BadInput(f"a setting of this run can't be read: {one_line(error)}; run the workflow again") from None
