"""A question of one's own: the form, and the trial that it becomes.

The trial is built by the trials stage's own code, with the run's prompts, pictures and substitutes. Whether that is so
is checked: one of the study's own questions is built again, and must give the very request that the run put.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from overread.config import Config, FindingQuestions, Model, Questions, Setting
from overread.config.study import Reports as ReportsSection
from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.records import Question, Study, Trial
from overread.settings.readout import Readout
from overread.settings.report import MADE_WITHOUT_THE_ANSWER, Report

if TYPE_CHECKING:
    from overread_viewer.catalogue import Catalogue

LONGEST_STEM = 2000
LONGEST_OPTION = 300
MOST_OPTIONS = 9
"""As many as an option order can be rotated by."""
LONGEST_NAME = 200

_CONTROL = re.compile(
    r"<\|[^<>|\n]{1,60}\|>|</?(?:s|bos|eos|pad|unk|mask|image|video|audio|think|im_patch|im_start|im_end|image_soft_token|"
    r"start_of_turn|end_of_turn|start_of_image|end_of_image|unused\d+)>|\[/?INST\]|<</?SYS>>",
    re.IGNORECASE,
)
"""Control tokens of the models of today, for those whose tokenizer is not here to be asked."""


@dataclass
class Form:
    """What was typed, as it was typed.

    answer   place of the right option, from 1, as text; empty where the asker does not say
    source   id of the study's question that this began from; empty for none
    errors   what is wrong, by field: stem, options, answer, topic, model, setting; or `form` for the whole
    """

    stem: str = ""
    options: list[str] = field(default_factory=list)
    answer: str = ""
    topic: str = ""
    source: str = ""
    model: str = ""
    setting: str = ""
    errors: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, sent: Mapping[str, Any]) -> Form:
        """From the fields of a sent form. What is no text or far too long for any field is cut: it is refused later."""

        def text(name: str, longest: int) -> str:
            value = sent.get(name, "")
            return value.replace("\r\n", "\n").strip()[: longest + 1] if isinstance(value, str) else ""

        options = [text(f"option{place}", LONGEST_OPTION) for place in range(1, MOST_OPTIONS + 1)]
        answer, topic, source, model, setting = (
            text(name, LONGEST_NAME) for name in ("answer", "topic", "source", "model", "setting")
        )
        return cls(text("stem", LONGEST_STEM), options, answer, topic, source, model, setting)

    @classmethod
    def of(cls, question: Question, model: str, setting: str) -> Form:
        """A study's question, to be asked as it is or edited. Its answer is not marked: the edit may have another."""
        return cls(
            stem=question.stem,
            options=list(question.options),
            topic=question.topic,
            source=question.question,
            model=model,
            setting=setting,
        )

    @property
    def given(self) -> list[str]:
        """The options that are filled in."""
        return [option for option in self.options if option]

    @property
    def right(self) -> int | None:
        """Place of the right option among the filled in ones, from 0; None where the asker does not say."""
        if not self.answer:
            return None
        place = int(self.answer) - 1
        return sum(1 for option in self.options[:place] if option)

    def check(self) -> None:
        """Find what is wrong with the texts."""
        self._check_text("stem", self.stem, LONGEST_STEM, lines=True)
        if not self.stem:
            self.errors["stem"] = "Write a question."
        for option in self.options:
            self._check_text("options", option, LONGEST_OPTION)
        if len(self.given) < 2:
            self.errors["options"] = "Give at least two options."
        elif len(set(self.given)) < len(self.given):
            self.errors["options"] = "Two options are alike."
        if self.answer:
            place = int(self.answer) if re.fullmatch(r"[1-9]", self.answer) else 0
            if not (1 <= place <= len(self.options) and self.options[place - 1]):
                self.errors["answer"] = "The correct answer must be one of the options."
                self.answer = ""

    def _check_text(self, where: str, text: str, longest: int, *, lines: bool = False) -> None:
        if len(text) > longest:
            self.errors[where] = f"At most {longest} characters."
        strange = next(
            (one for one in text if unicodedata.category(one) in ("Cc", "Cs") and not (lines and one == "\n")), ""
        )
        if strange:
            self.errors[where] = f"Holds a character that can't be shown (U+{ord(strange):04X}): remove it."
        elif found := _CONTROL.search(text):
            self.errors[where] = f"Holds {found[0]!r}, a control token of models, which would be obeyed: remove it."

    def check_tokens_of(self, model: Model) -> None:
        """Find control tokens of a model whose tokenizer lies in a folder."""
        tokens = [
            token for folder in model.folders for token in _special_tokens(Path(folder).expanduser() / "tokenizer.json")
        ]
        for where, text in (("stem", self.stem), *(("options", option) for option in self.options)):
            found = next((token for token in tokens if token in text), None)
            if found is not None:
                self.errors[where] = (
                    f"Holds {found!r}, a control token of this model, which would be obeyed: remove it."
                )


def _special_tokens(path: Path) -> tuple[str, ...]:
    """The special tokens of a tokenizer's file, the longest first; none where there is no such file."""
    try:
        return _read_tokens(path, path.stat().st_mtime_ns)
    except (OSError, ValueError, KeyError, TypeError):
        return ()  # the back end refuses what it can't load, and control tokens too


@lru_cache(maxsize=16)
def _read_tokens(path: Path, _changed: int) -> tuple[str, ...]:
    added = json.loads(regular(path).read_text(encoding="utf-8"))["added_tokens"]
    return tuple(sorted((one["content"] for one in added if one["special"]), key=len, reverse=True))


@dataclass(frozen=True)
class Built:
    """The trial of a form.

    right     text of the right option: the one that the asker marked, else the study's where the question is the
              study's word for word; None where neither says
    marked    whether the asker said so
    own       whether the question is not one of the study's
    as_run    whether the run's own trials are made as this one is; None where the run has none to compare with
    """

    trial: Trial
    right: str | None
    marked: bool
    own: bool
    as_run: bool | None


class Builder:
    """Makes trials as the run made them.

    config   the study's config; none: what study.json tells
    """

    def __init__(self, catalogue: Catalogue, config: Config | None) -> None:
        self.catalogue = catalogue
        spec = catalogue.spec
        if config is None:
            self.settings: dict[str, Setting] = dict(spec["settings"])
            kind: TypeAdapter[Questions] = TypeAdapter(Questions)
            sections = {name: kind.validate_python(one["questions"]) for name, one in spec["datasets"].items()}
            self.seed, self.own_prompts = int(spec.get("seed", 0)), spec.get("prompts")
            self.words = ReportsSection.model_validate(spec.get("reports", {}))
        else:
            self.seed, self.own_prompts, self.words = config.seed, config.prompts, config.reports
            self.settings = dict(config.settings)
            sections = {name: one.questions for name, one in config.datasets.items()}
        self.sections: dict[str, Questions] = sections

    def topics(self, dataset: str) -> list[str]:
        return sorted({question.topic for question in self.catalogue.questions(dataset).values()})

    def build(self, dataset: str, study: str, form: Form) -> Built | None:
        """The trial of a form that `check` found nothing wrong with; None, and an error in the form, if it can't be."""
        setting = self.settings[form.setting]
        if setting[Readout].of_yes_no and {each.lower() for each in form.given} != {"yes", "no"}:
            form.errors["options"] = f"{form.setting} reads yes or no: the options must be yes and no."
            return None
        same = self._study_question(dataset, study, form)
        marked = form.right is not None
        right = form.given[form.right] if form.right is not None else same.answer if same is not None else None
        if right is None and setting[Report].report not in MADE_WITHOUT_THE_ANSWER:
            form.errors["answer"] = f"The report of {form.setting} may state the correct answer: say which it is."
            return None
        question = self._question(dataset, study, form, right)
        try:
            trial = self._trial(dataset, question, form.setting)
        except BadInput as error:
            form.errors["setting"] = _reason(str(error))
            return None
        known = question.question in self.catalogue.questions(dataset)
        return Built(trial, right, marked, own=not known, as_run=self._as_run(dataset, study, form.setting))

    def _study_question(self, dataset: str, study: str, form: Form) -> Question | None:
        """The study's question that the form is, word for word."""
        for one in self.catalogue.questions_of(dataset, study):
            if (one.stem, list(one.options), one.topic) == (form.stem, form.given, form.topic):
                return one
        return None

    def _question(self, dataset: str, study: str, form: Form, right: str | None) -> Question:
        """With the study's own evidence where it began from the study's question.

        right    text of the right option; the first one stands for one that nobody says. Of what is shown only a
                 shuffled order depends on that: it is drawn from the question's id, of which the right option is part.
        """
        source = self.catalogue.questions(dataset).get(form.source)
        same = source is not None and source.study == study and source.topic == form.topic
        return Question(
            study=study,
            patient=self.catalogue.study(dataset, study).patient,
            stem=form.stem,
            options=tuple(form.given),
            answer=right if right is not None else form.given[0],
            topic=form.topic,
            evidence=source.evidence if same and source is not None else "",
            origin="the viewer",
        )

    def _trial(self, dataset: str, question: Question, setting: str) -> Trial:
        """As `overread trials build` makes it, in run 1.

        raises   BadInput where the setting can't be made for the study
        """
        from overread.trials.build import build_trials
        from overread.trials.prompt import OWN_PROMPTS, Prompts

        catalogue = self.catalogue
        own = [one for one in catalogue.substitutes(dataset) if one.study == question.study]
        there = catalogue.studies(dataset)
        shown = {question.study, *(one.substitute for one in own)}
        studies = [there[name] for name in sorted(shown) if name in there and there[name].problem is None]
        folders = [OWN_PROMPTS] if self.own_prompts is None else [Path(self.own_prompts), OWN_PROMPTS]
        prompts = Prompts(*folders)
        # One trial, or BadInput with the reason why there is none.
        (trial,), _ = build_trials(
            [question],
            studies,
            [picture for study in studies for picture in catalogue.pictures(dataset, study.study)],
            own,
            setting=self.settings[setting],
            name=setting,
            run=1,
            truth=self._truth(dataset),
            prompts=prompts,
            seed=self.seed,
            reports=self._reports(dataset, prompts),
        )
        if catalogue.restricted(dataset) and not trial.restricted:
            trial = trial.model_copy(update={"restricted": True})
        return trial

    def _truth(self, dataset: str) -> Callable[[Study, str], str | None]:
        from overread.questions import truth

        return partial(truth, self.sections[dataset])

    def _reports(self, dataset: str, prompts: Any) -> Any:
        from overread.questions.findings import COMPOSITE
        from overread.trials.lengths import in_tokens, in_words
        from overread.trials.mentions import OWN_FINDINGS, read_lexicon
        from overread.trials.reports import Reports

        section = self.sections[dataset]
        findings = section if isinstance(section, FindingQuestions) else FindingQuestions(origin="findings")
        words = self.words
        lexicon = OWN_FINDINGS if words.findings is None else Path(words.findings)
        measure = in_words if words.tokenizer is None else in_tokens(Path(words.tokenizer))
        return Reports(prompts, read_lexicon(lexicon), measure, {COMPOSITE: findings.composite})

    def _as_run(self, dataset: str, study: str, setting: str) -> bool | None:
        """Whether one of the study's questions, built again, is the request that the run put."""
        catalogue = self.catalogue
        if setting not in catalogue.settings(dataset):
            return None
        for question in catalogue.questions_of(dataset, study):
            put = catalogue.trial(dataset, setting, 1, question.question)
            if put is not None:
                try:
                    return self._trial(dataset, question, setting).trial == put.trial
                except BadInput:
                    return False
        return None


def model_of(section: Mapping[str, Any], name: str) -> Model:
    """A model of study.json."""
    kind: TypeAdapter[Model] = TypeAdapter(Model)
    try:
        return kind.validate_python(section)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]["msg"]
        raise BadInput(f"study.json: model {name!r}: {first}; run the workflow again") from None


def _reason(message: str) -> str:
    """Why a setting has no trial of a question, without the count of the questions."""
    found = re.search(r"has no trial \(1 questions: (.*)\)$", message)
    return f"Can't be made for this study: {found[1]}." if found else message
