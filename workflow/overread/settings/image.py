"""The picture: the view, whose image it shows, and which of a study's substitutes takes its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from overread.core.section import Name
from overread.settings.base import Aspect, Dose, Draft, LeftOutError, Misfit
from overread.settings.report import Report

if TYPE_CHECKING:
    from overread.config import Config
    from overread.settings.setting import Setting

SOURCES = {
    "own": "the study's own image",
    "substitute": "another study's image",
    "black": "a black image",
}
COLUMNS = {"own": "own image", "black": "black image", "substitute": "swapped image"}


class Image(Aspect):
    """What is shown, and of which study."""

    name = "image"
    title = "the image"
    rank = 10
    weight = 10
    always = True

    images: Name = Field(default="none", description="a view's name, or none")
    source: Literal["own", "substitute", "black"] = Field(default="own", description="whose image")
    substitute: int = Field(default=1, ge=1, description="which of a study's substitutes, from 1")

    def conflict(self, setting: Setting) -> str | None:
        if self.images == "none" and self.source != "own":
            return f"source {self.source!r} needs a view under 'images'"
        return None

    @property
    def shown(self) -> bool:
        """Whether any picture is shown."""
        return self.images != "none"

    @property
    def own(self) -> bool:
        """Whether the study's own image is shown."""
        return self.shown and self.source == "own"

    def shows_the_study(self) -> bool:
        return self.shown and self.source != "black"

    def effective(self, setting: Setting) -> dict[str, Any]:
        matters = self.source == "substitute" or setting[Report].report == "substitute"
        return {**super().effective(setting), "substitute": self.substitute if matters else 1}

    def words(self) -> str:
        which = f", substitute {self.substitute}" if self.substitute > 1 else ""
        if not self.shown:
            return f"no image{which}"
        return f"{SOURCES[self.source]} ({self.images}{which})"

    def short(self) -> str:
        which = f" {self.substitute}" if self.substitute > 1 else ""
        return "" if self.source == "own" and not which else f"{COLUMNS[self.source]}{which}"

    def instead(self) -> str:
        """What is shown instead of the study's own image, as the end of a sentence."""
        if not self.shown:
            return "without any image"
        return "with a black image" if self.source == "black" else "with another study's image"

    def replaced(self) -> str:
        """How the study's own image is done away with, as a clause."""
        if not self.shown:
            return "the image is left out"
        return f"the image is replaced by {'a black one' if self.source == 'black' else 'that of another study'}"

    def sort_key(self) -> tuple[Any, ...]:
        return (not self.shown, list(COLUMNS).index(self.source), self.substitute)

    def doses(self) -> tuple[Dose, ...]:
        return ()  # a substitute's number is a name

    def against_dataset(self, config: Config, dataset: str) -> list[Misfit]:
        section = config.datasets[dataset]
        view = config.views.get(self.images)
        words = {"mri": "brain MRI", "xray": "chest X-rays"}
        found = []
        if view is not None and view.modality != section.modality:
            holds = f"{dataset} holds {words[section.modality]}"
            found.append(Misfit("never", f"the view {self.images} is of {words[view.modality]}, and {holds}"))
        if self.substitute > section.substitutes.count:
            there = f"datasets.{dataset}.substitutes.count is {section.substitutes.count}"
            found.append(Misfit("never", f"it shows substitute {self.substitute}, and {there}"))
        return found

    def show(self, draft: Draft) -> None:
        draft.substitute = draft.materials.substitute(draft.question, self.substitute)
        shown = draft.substitute if self.source == "substitute" else draft.study
        if shown is None:
            raise LeftOutError("no substitute for its study")
        if not self.shown:
            return
        draft.pictures = draft.materials.pictures(shown, draft.view)
        if not draft.pictures:
            raise LeftOutError(f"no picture of view {draft.view}")
        if self.source == "black":
            draft.pictures = [draft.materials.black(picture) for picture in draft.pictures]
        else:
            draft.image_of = shown
