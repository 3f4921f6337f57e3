"""Which models can be asked about a dataset, under which settings, and why not the others.

With the study's config it is the plan that judges, as for a run. Without it only what the run itself asked can be
asked again, for study.json does not tell all that the plan looks at; nor does it tell which endpoints may receive
restricted data, so then nothing leaves this machine.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from overread.config import Config, Model, ServerModel, load
from overread.core.errors import BadInput
from overread.core.guard import is_plainly_loopback
from overread.core.records import content_hash
from overread.plan.asked import Cell
from overread.plan.judging import Judge, unguarded
from overread.settings.edit import Edits
from overread_viewer.own_question import model_of

if TYPE_CHECKING:
    from overread_viewer.catalogue import Catalogue

ROOT = Path(__file__).resolve().parents[2]


def read_config(path: Path | None, catalogue: Catalogue) -> Config | None:
    """The config that `serve --config` named. BadInput if it is not that of this run; BadConfig for a broken one."""
    if path is None:
        return None
    config = load(path)
    lacking = [name for name in catalogue.datasets if name not in config.datasets]
    if config.name != catalogue.name or lacking:
        what = f"lacks dataset {lacking[0]!r}" if lacking else f"is of the study {config.name!r}"
        raise BadInput(
            f"{path}: {what}, and the results are those of {catalogue.name!r}; give the config that made them"
        )
    return config


class Fitting:
    """Models and settings of a run, or of its config.

    config   none: the run's own models and settings only
    """

    def __init__(self, catalogue: Catalogue, config: Config | None) -> None:
        self.catalogue, self.config = catalogue, config
        if config is not None:
            self.sections: dict[str, Model] = dict(config.models)
        else:
            self.sections = {name: model_of(one, name) for name, one in catalogue.spec["models"].items()}

    def models(self, dataset: str) -> list[str]:
        """Those of the run first."""
        own = [name for name in self.catalogue.models(dataset) if name in self.sections]
        others = [] if self.config is None else sorted(set(self.sections) - set(own))
        return own + others

    def settings(self, dataset: str) -> list[str]:
        """Those of the run first, in the order of the config."""
        own = list(self.catalogue.settings(dataset))
        if self.config is None:
            return own
        there = [name for name in own if name in self.config.settings]
        return there + [name for name in self.config.settings if name not in there]

    def obstacle(self, dataset: str, model: str, setting: str, judge: Judge | None = None) -> str | None:
        """Why a model can't be asked under a setting; None if it can.

        judge   one for many pairs, each of whose names it looks at once; else a new one, which sees what is new
        """
        section = self.sections[model]
        settings = self.config.settings if self.config is not None else self.catalogue.spec["settings"]
        if settings[setting][Edits].asking is not None:
            return f"{setting} asks questions of its own, about marks that it draws on the picture"
        if self.config is not None:
            found = (judge or Judge(self.config)).obstacles(Cell(dataset, model, setting, 1))
            if found:
                return found[0].why
        elif isinstance(section, ServerModel) and not is_plainly_loopback(section.endpoint):
            return (
                f"{model} is on a server elsewhere: start the viewer with --config, which says what may be sent there"
            )
        elif (why := unguarded(section, model)) is not None and self.catalogue.restricted(dataset):
            return why
        elif not self.catalogue.runs(dataset, model, setting):
            return self._not_run(dataset, model, setting)
        if isinstance(section, ServerModel) and section.batch_api:
            return f"{model} answers in batches that take up to a day (batch_api)"
        return None

    def _not_run(self, dataset: str, model: str, setting: str) -> str:
        cell = {"dataset": dataset, "model": model, "setting": setting}
        for one in self.catalogue.spec.get("not_run", ()):
            if {name: one[name] for name in cell} == cell:
                return str(one["why"])
        return "the run did not ask this; start the viewer with --config to ask it here"

    def obstacles(self, dataset: str) -> dict[str, dict[str, str]]:
        """By model and setting: why not. What can be asked is left out."""
        judge = Judge(self.config) if self.config is not None else None
        found: dict[str, dict[str, str]] = {}
        for model in self.models(dataset):
            reasons = {setting: self.obstacle(dataset, model, setting, judge) for setting in self.settings(dataset)}
            found[model] = {setting: why for setting, why in reasons.items() if why is not None}
        return found

    def attested(self) -> tuple[str, ...]:
        """Endpoints that may receive restricted data."""
        return tuple(self.config.attested_endpoints) if self.config is not None else ()

    def python(self, model: str) -> str:
        """The interpreter that a model needs, as in a run."""
        return self.sections[model].interpreter(ROOT) or sys.executable

    def ledger(self, model: str) -> Path:
        """Where questions of one's own write down what they spend: outside the results, one file a run and model."""
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        run = content_hash(str(self.catalogue.results.resolve()))
        return state / "overread" / "asked" / run / f"{model}.jsonl"

    def study_ledger(self, model: str) -> Path:
        """Where the run wrote down what it spent: read, never written."""
        return self.catalogue.results / "work" / "spent" / f"{model}.jsonl"
