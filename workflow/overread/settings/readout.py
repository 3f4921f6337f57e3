"""How an answer is asked for and read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from pydantic import Field

from overread.core import records
from overread.settings.base import Aspect, Draft, Misfit

if TYPE_CHECKING:
    from overread.config import Config

WORDS = {
    "choice": "the model names one of the options",
    "yes-no": "the model answers yes or no",
    "first-token": "yes against no is read from the probabilities of the first token",
    "free-text": "the model answers in its own words",
    "similarity": "the option whose text lies nearest to the image is taken",
}
GOES_WITHOUT_SAYING = ("choice", "yes-no")
"""As the questions of a data set are: no head of a column says so."""
LISTS_OPTIONS = ("choice", "free-text")


class Readout(Aspect):
    """How the answer is read."""

    name = "readout"
    title = "how the answer is read"
    rank = 60
    weight = 20
    always = True
    manner = True

    readout: records.Readout = Field(default="choice", description="how the answer is asked for and read")

    @property
    def of_yes_no(self) -> bool:
        """Whether it reads yes and no only."""
        return self.readout in ("yes-no", "first-token")

    def shows_the_study(self) -> bool:
        return False

    def words(self) -> str:
        return WORDS[self.readout]

    def short(self) -> str:
        return "" if self.readout in GOES_WITHOUT_SAYING else f"{self.readout} readout"

    def sort_key(self) -> tuple[Any, ...]:
        return (get_args(records.Readout).index(self.readout),)

    def against_dataset(self, config: Config, dataset: str) -> list[Misfit]:
        if not self.of_yes_no or config.datasets[dataset].questions.origin not in ("grammar", "generated"):
            return []
        why = f"the readout {self.readout} needs yes/no questions, and those of {dataset} have four options"
        return [Misfit("never", why)]

    def against_model(self, config: Config, model: str) -> list[Misfit]:
        asked = config.models[model]
        found = []
        if self.readout == "first-token" and not asked.takes.logprobs:
            found.append(f"{model} gives no log-probabilities, which the readout first-token needs")
        if self.readout not in asked.readouts:
            if "similarity" in asked.readouts:
                found.append(f"{model} writes no answer: it takes the readout similarity only")
            elif self.readout == "similarity":
                found.append(f"{model} writes its answers: the readout similarity is for contrastive models")
            else:
                found.append(f"{model} takes the readouts {', '.join(sorted(asked.readouts))} only")
        return [Misfit("never", why) for why in found]

    def tell(self, draft: Draft) -> None:
        """The options are listed only where one of them is to be named or told: yes and no need no list. Under
        `similarity` nothing is asked: each option, with its question, is a text that the picture is compared with.
        """
        draft.readout = self.readout
        text, question, options = draft.materials.text, draft.question, list(draft.options)
        if self.readout == "similarity":
            draft.blocks += draft.materials.option_texts(question, options)
            return
        draft.blocks += text("question", "question", question=question)
        if self.readout in LISTS_OPTIONS:
            draft.blocks += text("options", "options", options=options)
        draft.blocks += text("instruction", f"instruction-{self.readout}", question=question, options=options)
