"""Edits of the picture: what in the image is changed before it is shown."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field

from overread.core.records import Question, content_hash
from overread.edits import Edit
from overread.edits.shared.controls import PER_STUDY
from overread.settings.base import Aspect, Dose
from overread.settings.image import Image
from overread.settings.readout import Readout

if TYPE_CHECKING:
    from overread.edits.base import EditSection
    from overread.settings.setting import Setting

LONGEST_NAME = 60
AFTER_GEOMETRY = "the lesion's place is that of the unedited image: write it before"


def _listed(value: Any) -> Any:
    """One edit stands for a list of one."""
    return [value] if isinstance(value, Mapping) else value


class Edits(Aspect):
    """What is changed in the picture, in the order given."""

    name = "edit"
    title = "the edit of the image"
    rank = 12
    weight = 20
    qualifies = Image.name

    edit: Annotated[tuple[Edit, ...], BeforeValidator(_listed, json_schema_input_type=Edit | tuple[Edit, ...])] = Field(
        default=(), description="an edit of the picture, or a list of edits made in the order given"
    )

    def conflict(self, setting: Setting) -> str | None:
        moved = ""
        for one in self.edit:
            if one.family == "lesion" and moved:
                return f"{one.kind!r} stands after {moved!r}, but {AFTER_GEOMETRY}"
            moved = one.kind if one.family == "geometry" else moved
        asking = [one for one in self.edit if one.asks]
        if asking:
            wrong = _asked_apart(asking, setting)
            if wrong is not None:
                return wrong
        image = setting[Image]
        if not self.edit or (image.shown and image.source != "black"):
            return None
        return f"'edit' changes a picture, but {'no image is shown' if not image.shown else 'the image is black'}"

    @property
    def effective_edits(self) -> tuple[EditSection, ...]:
        """Those whose strength is not none: a sweep may begin with the unedited picture."""
        return tuple(one for one in self.edit if not one.nothing)

    @property
    def asking(self) -> EditSection | None:
        """The edit whose questions are asked in place of the data set's."""
        return next((one for one in self.edit if one.asks), None)

    def ask(self, questions: list[Question], seed: int, setting: Setting) -> list[Question]:
        """About the same studies, in the order of their names."""
        asking = self.asking
        if asking is None:
            return questions
        yes_no = setting[Readout].of_yes_no
        studies = sorted({(one.study, one.patient) for one in questions})
        return [one for study, patient in studies for one in asking.questions(study, patient, yes_no=yes_no)]

    def requests(self, questions: int | None, studies: int | None) -> int | None:
        if self.asking is None:
            return questions
        return None if studies is None else math.ceil(PER_STUDY * studies)

    def effective(self, setting: Setting) -> dict[str, Any]:
        return {"edit": self.effective_edits}

    def words(self) -> str:
        return ", then ".join(one.words() for one in self.edit) or "as it is"

    def short(self) -> str:
        return ", ".join(one.short() for one in self.effective_edits)

    def shows_the_study(self) -> bool:
        return False

    def sort_key(self) -> tuple[Any, ...]:
        return (
            len(self.edit),
            *(part for one in self.edit for part in (one.kind, *(s.value for s in one.strengths()))),
        )

    def doses(self) -> tuple[Dose, ...]:
        """The numbers of a single edit: of several, a curve would have to say which of them it is of."""
        if len(self.edit) != 1:
            return ()
        (one,) = self.edit
        return tuple(Dose(f"{one.kind} {name}", "edit", value, what) for name, value, what in one.strengths())

    def without(self, dose: Dose) -> Any:
        """The edit with that number as it is when nothing is said of it; its other numbers and its kind stay."""
        (one,) = self.edit
        name = dose.name.removeprefix(f"{one.kind} ")
        return (one.model_copy(update={name: type(one).model_fields[name].default}),)

    def variant(self) -> tuple[str, dict[str, Any]] | None:
        edits = [
            one.model_dump(mode="json", exclude_defaults=True) | {"kind": one.kind} for one in self.effective_edits
        ]
        return (_ending(edits), {"edit": edits}) if edits else None


def control_questions(settings: Iterable[Setting], questions: Iterable[Question]) -> list[Question]:
    """The questions of their own that settings ask about the studies of `questions`, each once, sorted by id."""
    questions = list(questions)
    found = {
        one.question: one
        for setting in settings
        if setting[Edits].asking is not None
        for one in setting[Edits].ask(questions, 0, setting)
    }
    return [found[name] for name in sorted(found)]


def _asked_apart(asking: list[EditSection], setting: Setting) -> str | None:
    """Why a setting can't ask an edit's own questions, if so."""
    kind = f"{asking[0].kind!r} asks questions of its own"
    if len(asking) > 1:
        return f"two edits ask questions of their own: {asking[0].kind!r} and {asking[1].kind!r}"
    if setting[Image].source != "own":
        return f"{kind}, so it needs the study's own picture (source: own)"
    if setting[Readout].readout == "similarity":
        return f"{kind}, which no text beside the picture says: the readout similarity can't answer them"
    return None


def _ending(edits: list[dict[str, Any]]) -> str:
    """`blur-mm-2`: the end of the name of a view; a hash of the whole makes it another where it would be long."""
    texts = [
        re.sub(r"[^a-z0-9.]+", "-", "-".join(f"{'' if key == 'kind' else key} {value}" for key, value in sorted(
            one.items(), key=lambda item: item[0] != "kind")).lower()).strip("-.")
        for one in edits
    ]  # fmt: skip
    whole = "-then-".join(texts)
    exact = content_hash(edits)[:6]
    return f"{whole}-{exact}" if len(whole) <= LONGEST_NAME else f"{whole[:LONGEST_NAME].strip('-.')}-{exact}"
