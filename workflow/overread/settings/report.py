"""The report beside the question: which one, and whether a warning about it is given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field

from overread.core.errors import shown, unknown
from overread.core.section import Name
from overread.settings.base import Aspect, Draft, Misfit

if TYPE_CHECKING:
    from overread.config import Config
    from overread.settings.setting import Setting


class Kind(NamedTuple):
    """A report that comes with Overread: what it is in words, and as the head of a column."""

    words: str
    short: str


KINDS = {
    "none": Kind("no report", ""),
    "full": Kind("the whole report", "with report"),
    "neutral": Kind("neutral prose of the same length in place of the report", "with neutral prose"),
    "boilerplate": Kind("clinical boilerplate in place of the report", "with boilerplate"),
    "without-finding": Kind(
        "the report without the sentences that mention the finding", "with report less the finding"
    ),
    "with-answer": Kind("the report with a sentence that states the correct answer", "with report and the answer"),
    "substitute": Kind("another study's report", "with swapped report"),
}
UNEDITED = ("none", "full", "substitute")
"""Those that are no edit: they need no template of their own."""
UNINFORMED = ("neutral", "boilerplate", "without-finding")
"""Edits after which the text says nothing about what is asked."""
MADE_WITHOUT_THE_ANSWER = (*UNEDITED, *UNINFORMED)
"""A template of the user's own may hold it."""


class Report(Aspect):
    """Which report, and whether it is doubted."""

    name = "report"
    title = "the report"
    rank = 20
    weight = 60
    always = True

    report: Name = Field(
        default="none",
        description="none; full; substitute: the substitute's; neutral, boilerplate, without-finding, with-answer, or "
        "any other <name> with a template report-<name>.j2 in the folder `prompts`",
    )
    warning: bool = Field(default=False, description="say that the report may be wrong")

    def conflict(self, setting: Setting) -> str | None:
        return "a warning about the report needs a 'report'" if self.warning and not self.shown else None

    @property
    def shown(self) -> bool:
        return self.report != "none"

    @property
    def edited(self) -> bool:
        """Whether a template of its own makes it."""
        return self.report not in UNEDITED

    def shows_the_study(self) -> bool:
        return self.shown

    def words(self) -> str:
        kind = KINDS.get(self.report)
        text = kind.words if kind else f"the report as the template report-{self.report} makes it"
        return f"{text}, with a warning that it may be wrong" if self.warning else text

    def short(self) -> str:
        kind = KINDS.get(self.report)
        parts = [kind.short if kind else f"with report {self.report}", "warned" if self.warning else ""]
        return ", ".join(part for part in parts if part)

    def sort_key(self) -> tuple[Any, ...]:
        return ([*KINDS, self.report].index(self.report), self.warning)

    def missing(self, config: Config) -> str | None:
        there = KINDS.keys() | own_reports(config.prompts)
        if self.report in there:
            return None
        folder = config.prompts
        where = "a folder that the key 'prompts' names" if folder is None else shown(folder)
        return f"{unknown('report', self.report, there)}; or put a template report-{self.report}.j2 into {where}"

    def against_dataset(self, config: Config, dataset: str) -> list[Misfit]:
        section = config.datasets[dataset]
        if not self.shown or section.has_reports:
            return []
        return [Misfit("missing", f"datasets.{dataset} names no {section.reports_are_named_by} to show")]

    def against_model(self, config: Config, model: str) -> list[Misfit]:
        if not self.shown or config.models[model].reads_reports:
            return []
        return [Misfit("never", f"{model} compares option texts with a picture: a report does not reach it")]

    def tell(self, draft: Draft) -> None:
        shown = draft.materials.report(self.report, draft)
        draft.blocks += shown.blocks
        draft.report_label, draft.dropped = shown.label, shown.dropped
        if self.warning:
            draft.blocks += draft.materials.text("instruction", "warning")


def own_reports(folder: str | None) -> frozenset[str]:
    """The reports that the user's own templates make: `<name>` of each `report-<name>.j2` in a folder."""
    files = Path(folder).glob("report-*.j2") if folder is not None else ()
    return frozenset(file.stem.removeprefix("report-") for file in files)
