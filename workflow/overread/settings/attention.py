"""Layers of the model from which the report is hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from overread.settings.base import Aspect, Dose, Draft, Misfit, Worded
from overread.settings.report import Report

if TYPE_CHECKING:
    from overread.config import Config
    from overread.settings.setting import Setting

Attention = Annotated[
    str,
    Worded(r"(none|(from|only)-(0|[1-9][0-9]*))", "none, from-L or only-L with a layer's number L, as in from-0"),
]


class Hiding(Aspect):
    """From which layers the report is hidden."""

    name = "attention"
    title = "the hiding of the report"
    rank = 30
    weight = 50
    qualifies = Report.name

    attention: Attention = Field(default="none", description="hide the report: from-L (layer L on), only-L, or none")

    @property
    def mode(self) -> str:
        """from, only or none."""
        return self.attention.partition("-")[0]

    @property
    def layer(self) -> int | None:
        return None if self.mode == "none" else int(self.attention.partition("-")[2])

    def conflict(self, setting: Setting) -> str | None:
        hidden = self.mode != "none" and not setting[Report].shown
        return "'attention' hides a report, but 'report' is none" if hidden else None

    def shows_the_study(self) -> bool:
        return False

    def words(self) -> str:
        if self.mode == "none":
            return "hidden from no layer"
        where = f"from layer {self.layer} on" if self.mode == "from" else f"in layer {self.layer} alone"
        return f"hidden from the model's attention {where}"

    def short(self) -> str:
        told = {"from": f"report hidden from layer {self.layer} on", "only": f"report hidden in layer {self.layer}"}
        return told.get(self.mode, "")

    def sort_key(self) -> tuple[Any, ...]:
        return (self.mode, self.layer or 0)

    def doses(self) -> tuple[Dose, ...]:
        return () if self.layer is None else (Dose(f"attention-{self.mode}", "attention", self.layer, "layer"),)

    def against_model(self, config: Config, model: str) -> list[Misfit]:
        takes = config.models[model].takes
        if self.layer is None:
            return []
        if not takes.attention:
            return [Misfit("never", f"a report can't be hidden from the layers of {model}")]
        # From the layer after the last one hides nothing: the baseline of a sweep.
        if takes.layers is not None and self.layer > takes.layers - (self.mode == "only"):
            return [Misfit("never", f"{model} has {takes.layers} layers (0 to {takes.layers - 1})")]
        return []

    def tell(self, draft: Draft) -> None:
        draft.attention = self.attention
