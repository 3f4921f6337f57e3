"""The calibrated reader: the instrument's calibration weight.

It is no model. It is told the truth of the report's study (`Trial.label`) and of the image's study
(`Trial.image_label`), and answers with set probabilities (`config.Reliance`), so that tables can be checked against
figures known beforehand. Every draw is a hash of the reader's seed and the question, the same in every setting and
run: arms are paired, and two arms differ only through what is shown.

For a question, in this order, with r = report, i = image, b = image_beside_report, u = unparsed:

1. gives no readable answer, with probability u;
2. where there is a report, with b set: follows the image with probability b, whatever the report says;
3. where there is a report: follows it with probability r (the answer is `label`);
4. where a study's picture is shown, and no report or b unset: follows it with probability i (the answer is
   `image_label`);
5. guesses: the first option shown with probability first_option; else, between yes and no, yes with probability yes;
   else one of the places shown, all alike.

Evidence that does not name an option shown (an image_label of another study's options) falls through to the guess.

What follows, for own against substitute picture, among answered pairs whose two labels differ and are both options:

    flip rate without a report    i
    flip rate with a report       b if set, else (1 - r) * i

and 0 where the labels agree, where no picture is shown, or with i = 0 (b = 0). With `by_patient` = c each patient has
its own i from Beta(i*c, (1-i)*c), mean i; b likewise. If the substitute's label is no option, the flip rate is the
same times the probability that the guess is another option than `label`. Accuracy with an own picture and no report is
(1 - u) * (i + (1 - i) * g), where g is the accuracy of the guess: with n options in an order that hides the answer
g = 1/n whatever first_option is; with the answer first g = first_option + (1 - first_option)/n.

With `reader` in place of `reliance` it answers as that reader of the gallery does (`gallery.readers`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from overread.backends.base import Answer, LocalBackend
from overread.backends.calibrated.section import CalibratedModel, GalleryReader
from overread.core.errors import BadInput, unknown
from overread.core.records import Trial
from overread.core.stopping import until_warned
from overread.gallery.asking import asked, hashed
from overread.gallery.readers import GALLERY

CONFIDENCE = {"report": 0.95, "image": 0.85, "guess": 0.6}
"""Probability of its answer in the log-probabilities, by what the answer rests on; the other options share the rest."""

REFUSAL = "I am unable to answer that."
UNREADABLE = "The study shows several structures that deserve attention."


class CalibratedBackend(LocalBackend):
    """Answers as `config.Reliance` says."""

    def __init__(self, model: CalibratedModel, model_id: str) -> None:
        self.model = model
        self.reliance = model.reliance
        if model.reader is not None and model.reader.name not in GALLERY:
            raise BadInput(f"{model_id}: {unknown('reader of the gallery', model.reader.name, GALLERY)}")

    def identity(self) -> dict[str, Any]:
        return {**self.model.identity(), "version": self.version}

    def also(self, trial: Trial) -> Sequence[str | None]:
        """The truth that it is told, the patient whose reliance it takes, and whether a study's picture is shown."""
        if self.model.reader is not None:
            places = [str(place) for place in trial.permutation]
            told = [trial.label, trial.image_label, trial.report_label, trial.topic, trial.study, trial.image_study]
            return [*told, trial.setting, *places]
        shown = None if trial.image_study is None else "shown"
        return [trial.label, trial.image_label, shown, trial.patient if self.reliance.by_patient else None]

    def answer(self, trials: Sequence[Trial], folder: Path) -> Iterator[Answer]:
        for trial in until_warned(trials):
            yield self._answer(trial)

    def _answer(self, trial: Trial) -> Answer:
        if self.model.reader is not None:
            return _of_gallery(trial, self.model.reader, self.model.seed)
        if self._draw(trial, "unparsed") < self.reliance.unparsed:
            return Answer(text=UNREADABLE, finish_reason="stop")
        place, ground = self._decide(trial)
        return _saying(trial, place, CONFIDENCE[ground])

    def _decide(self, trial: Trial) -> tuple[int, str]:
        """Place shown of its answer, and what that rests on."""
        beside = self.reliance.image_beside_report if trial.has_report else None
        image = trial.image_label if trial.images and trial.image_study is not None else None
        follows_image = image in trial.options and self._draw(trial, "image") < self._image_reliance(trial, beside)
        told = trial.report_label if trial.has_report else None
        follows_report = told in trial.options
        follows_report = follows_report and self._draw(trial, "report") < self.reliance.report
        if image is not None and follows_image and (beside is not None or not follows_report):
            return trial.options.index(image), "image"
        if told is not None and follows_report:
            return trial.options.index(told), "report"
        return self._guess(trial), "guess"

    def _guess(self, trial: Trial) -> int:
        if self._draw(trial, "first option") < self.reliance.first_option:
            return 0
        free = self._draw(trial, "guess")
        options = [option.casefold() for option in trial.options]
        if sorted(options) == ["no", "yes"]:
            return options.index("yes" if free < self.reliance.yes else "no")
        return int(free * len(options))

    def _image_reliance(self, trial: Trial, beside: float | None) -> float:
        mean = self.reliance.image if beside is None else beside
        concentration = self.reliance.by_patient
        if concentration is None or mean in (0.0, 1.0):
            return mean
        import numpy as np

        which = "image" if beside is None else "image beside report"
        patient = np.random.default_rng(hashed(["patient", self.model.seed, trial.dataset, trial.patient, which]))
        return float(patient.beta(mean * concentration, (1 - mean) * concentration))

    def _draw(self, trial: Trial, what: str) -> float:
        """Uniform in [0, 1), the same for a question in every setting and run."""
        return hashed([what, self.model.seed, trial.question]) / 2**64


def _saying(trial: Trial, place: int, confidence: float) -> Answer:
    """The option at a place shown, with `confidence` in it; the other options share the rest."""
    others = (1 - confidence) / (len(trial.options) - 1)
    logprobs = [math.log(confidence if each == place else others) for each in range(len(trial.options))]
    option = trial.options[place]
    text = f"{place + 1}. {option}" if trial.readout == "choice" else option
    return Answer(text=text, logprobs=tuple(logprobs), finish_reason="stop")


def _of_gallery(trial: Trial, reader: GalleryReader, seed: int) -> Answer:
    one = asked(trial, seed=seed, prevalence=reader.prevalence, usual=reader.usual, finding=reader.finding)
    given = GALLERY[reader.name].answer(one)
    if not given.answered[0]:
        return Answer(text=REFUSAL, finish_reason="refusal")
    choice, lean = int(given.choice[0]), float(given.lean[0])
    # The lean is the log-odds of yes, or of the option chosen against all others together.
    towards = -lean if one.yes_no[0] and choice == 1 else lean
    return _saying(trial, trial.permutation.index(choice), 1 / (1 + math.exp(-towards)))
