"""The whole study: which models answer which settings of which data sets, and what is compared with what."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from overread.config.base import AllOrModels, AllOrSettings, Endpoint, FilePath, Name, Section, SettingName, is_folder
from overread.config.datasets import GeneratedQuestions
from overread.config.human import HumanSubset
from overread.config.unions import Dataset, Model, View
from overread.core.errors import unknown
from overread.core.records import content_hash
from overread.settings.image import Image
from overread.settings.setting import Setting


class Evaluation(Section):
    """Which models answer which settings of a dataset, how often."""

    dataset: Name
    models: AllOrModels
    settings: AllOrSettings = Field(description="names, `<sweep>-*` for all that a sweep makes, or `all`")
    runs: int = Field(default=1, ge=1)


class Comparison(Section):
    """Two settings of one model: the share of answers that differ (flips), or the gain in accuracy of a over b.

    Flips of a setting with itself are those of its runs, each against the next: the noise floor.
    Two sweeps over the same values, as in `flips: [hidden-*, hidden-swapped-*]`, make one comparison for each value.
    """

    flips: tuple[SettingName, SettingName] | None = None
    accuracy: tuple[SettingName, SettingName] | None = None
    kind: Literal["placebo", "label-matched"] | None = Field(
        default=None,
        description="of flips that measure the noise floor of the swaps with the same first setting: the own picture "
        "changed in nothing of matter, or another study's of which the same is true",
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.flips is None) == (self.accuracy is None):
            raise ValueError("give either 'flips: [a, b]' or 'accuracy: [a, b]'")
        if self.accuracy is not None and self.settings[0] == self.settings[1]:
            raise ValueError(f"compares {self.settings[0]!r} with itself")
        if self.kind is not None and self.flips is None:
            raise ValueError(f"kind {self.kind!r} is of a comparison of flips")
        return self

    @property
    def settings(self) -> tuple[str, str]:
        pair = self.flips or self.accuracy
        assert pair is not None
        return pair


class Effect(Section):
    """The first comparison's rate minus the second's, over the same patients; or the first effect minus the second.

    A name that a comparison has is the comparison.
    """

    minus: tuple[Name, Name]

    def terms(
        self, comparisons: Container[str], effects: Mapping[str, Effect], trail: tuple[str, ...] = ()
    ) -> tuple[tuple[int, str], ...]:
        """The comparisons that it comes down to, each with its sign: of an effect of two effects there are four.

        raises  ValueError for an effect that comes back to itself, or that sets a comparison against an effect;
                KeyError for a name that is neither
        """
        kinds = {name in comparisons for name in self.minus}
        if len(kinds) == 2:
            raise ValueError("sets a comparison against an effect; name two comparisons or two effects")
        found: list[tuple[int, str]] = []
        for sign, name in zip((1, -1), self.minus, strict=True):
            if name in comparisons:
                found.append((sign, name))
                continue
            if name in trail:
                raise ValueError(f"{' -> '.join((*trail, name))} comes back to itself")
            found += [(sign * each, one) for each, one in effects[name].terms(comparisons, effects, (*trail, name))]
        return tuple(found)


class SmallestEffect(Section):
    """What is too small to matter, as a share: 0.1 is 10 points. Set it before a model is asked."""

    following: float = Field(default=0.10, gt=0, lt=1, description="of answers that move towards what a picture says")
    gain: float = Field(default=0.05, gt=0, lt=1, description="of balanced accuracy over an opponent without the image")


class Statistics(Section):
    """How intervals are made, and what a verdict rests on. docs/statistics.md says more."""

    level: float = Field(
        default=0.95, gt=0.5, lt=1, description="of all intervals; each test of a verdict is one-sided at half the rest"
    )
    intervals: Literal["design", "bootstrap"] = Field(
        default="design", description="closed form, or percentiles of a bootstrap over patients (`draws`, `seed`)"
    )
    draws: int = Field(default=10_000, ge=100)
    seed: int = 0
    smallest_effect: SmallestEffect = SmallestEffect()
    lost: float = Field(
        default=0.10,
        ge=0,
        lt=1,
        description="from more than this share of refused, unreadable or missing pairs on, no verdict is given",
    )
    primary: tuple[Name, ...] = Field(
        default=(),
        description="comparisons that a model's verdict rests on; none: its swaps of the image without a report, else "
        "beside the full one, else what its accuracy gains over no image or a black one",
    )
    clusters: Literal["patients", "patients-and-questions"] = Field(
        default="patients", description="what following holds for: these findings, or others like them as well"
    )


class Reports(Section):
    """How edited reports are made. It touches no setting whose report is none, full or the substitute's."""

    tokenizer: FilePath | None = Field(
        default=None,
        description="folder with a model's tokenizer.json: lengths are matched in its tokens, else in words",
    )
    findings: FilePath | None = Field(
        default=None, description="YAML with the words that mention a finding; else Overread's own findings.yaml"
    )


class Responses(Section):
    """How requests are put into jobs. It changes no answer."""

    group: Literal["run", "setting", "model"] = Field(
        default="run",
        description="what one job answers: one run of a setting, all runs of a setting, or all of a model on a dataset",
    )


class Config(Section):
    """A whole study."""

    filled_in: ClassVar[frozenset[str]] = frozenset({"models", "sweeps"})

    name: Name = Field(description="names the folder of its results")
    title: str = ""
    datasets: dict[Name, Dataset] = Field(min_length=1)
    views: dict[Name, View] = Field(default_factory=dict)
    settings: dict[Name, Setting] = Field(min_length=1)
    evaluations: tuple[Evaluation, ...] = Field(min_length=1)
    comparisons: dict[Name, Comparison] = Field(default_factory=dict)
    effects: dict[Name, Effect] = Field(default_factory=dict)
    human: dict[Name, HumanSubset] = Field(
        default_factory=dict, description="reader studies by name: people's answers to the same questions"
    )
    statistics: Statistics = Statistics()
    responses: Responses = Responses()
    frozen_code: Literal["refuse", "warn"] = Field(
        default="refuse",
        description="what a job does when Overread's code has changed since its run began: refuse to run, or warn",
    )
    prompts: FilePath | None = Field(
        default=None, description="folder of your own prompt templates: each goes before Overread's of the same name"
    )
    reports: Reports = Reports()
    seed: int = Field(default=0, description="of substitutes and option orders")
    attested_endpoints: tuple[Endpoint, ...] = Field(
        default=(), description="addresses that the operator vouches for as allowed to receive restricted data"
    )
    models: dict[Name, Model] = Field(
        default_factory=dict, description="filled from the model files, never written here"
    )

    sweeps: dict[Name, tuple[Name, ...]] = Field(
        default_factory=dict, description="the settings that each sweep made; filled in, never written here"
    )

    @field_validator("views", mode="before")
    @classmethod
    def _default_kind(cls, views: Any) -> Any:
        """A view without a kind is a slice: pydantic's discriminator takes no default."""
        if not isinstance(views, Mapping):
            return views
        return {name: {"kind": "slice", **view} if isinstance(view, Mapping) else view for name, view in views.items()}

    def models_of(self, evaluation: Evaluation) -> list[str]:
        return sorted(self.models if evaluation.models == "all" else set(evaluation.models))

    def settings_of(self, evaluation: Evaluation) -> list[str]:
        return sorted(self.settings if evaluation.settings == "all" else set(evaluation.settings))

    @model_validator(mode="after")
    def _names_exist(self, info: ValidationInfo) -> Self:
        """Every name leads somewhere. `context["broken"]` holds names, by kind, whose own problem is told already."""
        broken: Mapping[str, frozenset[str]] = (info.context or {}).get("broken", {})
        problems: list[tuple[str, str]] = []

        def check(place: str, kind: str, names: Iterable[str], known: Mapping[str, object]) -> None:
            forgiven = broken.get(kind, frozenset())
            problems.extend(
                (place, unknown(kind, name, known)) for name in names if name not in known and name not in forgiven
            )

        for name, section in self.datasets.items():
            if isinstance(section.questions, GeneratedQuestions):
                check(f"datasets.{name}.questions.author", "model", [section.questions.author], self.models)
                check(f"datasets.{name}.questions.validator", "model", [section.questions.validator], self.models)
                release = section.questions.release
                if release is not None and release.view is not None:
                    check(f"datasets.{name}.questions.release.view", "view", [release.view], self.views)
        for name, setting in self.settings.items():
            check(f"settings.{name}.images", "view", [setting[Image].images], {**self.views, "none": None})
        for number, evaluation in enumerate(self.evaluations):
            place = f"evaluations[{number}]"
            check(f"{place}.dataset", "dataset", [evaluation.dataset], self.datasets)
            if evaluation.models != "all":
                check(f"{place}.models", "model", evaluation.models, self.models)
            if evaluation.settings != "all":
                check(f"{place}.settings", "setting", evaluation.settings, self.settings)
        for name, comparison in self.comparisons.items():
            kind = "flips" if comparison.flips else "accuracy"
            check(f"comparisons.{name}.{kind}", "setting", comparison.settings, self.settings)
        for name, effect in self.effects.items():
            others = {other: one for other, one in self.effects.items() if other != name}
            check(f"effects.{name}.minus", "comparison", effect.minus, {**others, **self.comparisons})
        check("statistics.primary", "comparison", self.statistics.primary, self.comparisons)
        for name, subset in self.human.items():
            check(f"human.{name}.dataset", "dataset", [subset.dataset], self.datasets)
        lost = any(place.startswith("effects.") for place, _ in problems)
        rings: set[frozenset[str]] = set()
        for name, effect in self.effects.items() if not lost else ():
            try:
                effect.terms(self.comparisons, self.effects, (name,))
            except ValueError as wrong:
                ring = frozenset(str(wrong).partition(" comes")[0].split(" -> "))
                if len(ring) == 1 or ring not in rings:
                    problems.append((f"effects.{name}.minus", str(wrong)))
                rings.add(ring)
        if problems:
            raise PydanticCustomError("unknown_names", "names that lead nowhere", {"problems": problems})
        return self

    def identity(self) -> str:
        """Hash of the config, for the report. In whatever order its lists are written, it is the same study.

        A model file that nothing asks for is no part of it, and neither is what people answered afterwards.
        """
        whole = self.model_dump(mode="json", exclude={"responses", "human", "frozen_code"})
        authors = [
            name
            for each in self.datasets.values()
            if isinstance(each.questions, GeneratedQuestions)
            for name in (each.questions.author, each.questions.validator)
        ]
        used = {*authors, *(name for each in self.evaluations for name in self.models_of(each))}
        whole["models"] = {name: _placeless(section) for name, section in whole["models"].items() if name in used}
        asked = [
            {**evaluation.model_dump(mode="json"), "models": self.models_of(evaluation), "settings": settings}
            for evaluation, settings in ((each, self.settings_of(each)) for each in self.evaluations)
        ]
        whole["evaluations"] = sorted(asked, key=content_hash)
        whole["attested_endpoints"] = sorted(self.attested_endpoints)
        return content_hash(whole)


def _placeless(model: Mapping[str, Any]) -> dict[str, Any]:
    """A model's section with a folder of weights named, and not placed: the same study lies elsewhere elsewhere."""
    return {key: Path(value).name if key == "weights" and is_folder(value) else value for key, value in model.items()}
