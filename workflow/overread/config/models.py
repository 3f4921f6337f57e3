"""What every model file has. What can change an answer is its identity; label, resources and notes are dress.

Each back end is a folder of `overread.backends`, with its section beside its code. A section extends `LocalModel` or
`ServerModel`: one that says neither where its trials go gets no restricted one.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from overread.config.base import Endpoint, Section, Weights, is_folder
from overread.core import guard
from overread.core.errors import shown
from overread.core.records import Readout


class Takes(Section):
    """What a model can be given, and what can be read from it."""

    images: int = Field(default=1, ge=0, description="how many images at once")
    volumes: bool = False
    text_only: bool = Field(default=True, description="whether it answers without an image")
    logprobs: bool = True
    attention: bool = Field(default=False, description="whether the report can be hidden from its layers")
    layers: int | None = Field(default=None, ge=1, description="decoder layers: hiding from a layer beyond is refused")
    image_tokens: int | None = Field(default=None, ge=1, description="tokens an image costs, for the plan's estimate")


class Decoding(Section):
    """How an answer is drawn. What is none is left to the back end."""

    temperature: float | None = Field(default=0.0, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int = Field(default=512, ge=1)
    seed: int = 0
    reasoning_effort: Literal["minimal", "low", "medium", "high"] | None = None


class Resources(Section):
    """What a job of this model asks of the cluster."""

    gpu: int = Field(default=0, ge=0)
    mem_mb: int = Field(default=4000, ge=500)
    runtime: int = Field(default=60, ge=1, description="minutes")
    loading: float = Field(default=0.0, ge=0, description="minutes to load the weights, for the plan's estimate")
    threads: int = Field(default=1, ge=1)


class ModelSection(Section):
    """What every back end has, and what the rest of the program asks of it."""

    title: ClassVar[str]
    """What runs it, as the methods say: `vLLM`."""
    implementation: ClassVar[str]
    """The class that answers, as module:class. It is imported only where a model of its kind is asked."""
    stays_here: ClassVar[bool] = False
    """Whether no trial leaves this machine. `LocalModel` says so; a model that neither says so nor names its server
    gets no restricted trial."""
    readouts: ClassVar[frozenset[Readout]] = frozenset({"choice", "yes-no", "first-token", "free-text"})
    reads_reports: ClassVar[bool] = True
    told_the_truth: ClassVar[bool] = False
    """Whether it is no model, but a reader that is told the truth."""
    environment: ClassVar[str] = "models"
    """The conda environment that it runs in: the name of a file of envs/, or the path of one."""

    if TYPE_CHECKING:

        @property
        @abstractmethod
        def backend(self) -> str: ...

    label: str = Field(min_length=1, description="how it is called in tables and figures")
    takes: Takes = Takes()
    resources: Resources = Resources()
    batch: int = Field(default=16, ge=1, description="trials at once, at most")
    note: str = ""

    dress: ClassVar[frozenset[str]] = frozenset({"label", "takes", "resources", "batch", "note"})

    @property
    def draws(self) -> Literal["greedy", "sampled", "unknown"]:
        """How it draws its answers. A temperature that is left to the back end is unknown, not greedy."""
        decoding = getattr(self, "decoding", None)
        if not isinstance(decoding, Decoding):
            return "greedy"
        return "unknown" if decoding.temperature is None else "sampled" if decoding.temperature > 0 else "greedy"

    def identity(self) -> dict[str, Any]:
        """All of the file that can change an answer, for the request key. `weights` are hashed by the back end."""
        return self.model_dump(mode="json", exclude=set(self.dress))

    def lacks(self, model_id: str) -> list[str]:
        """What it needs and what is not on this machine: weights, keys. A sentence each."""
        return []

    @property
    def unpinned(self) -> bool:
        """Whether tomorrow it may be another model under the same name."""
        return False

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders with its files: what is new in them is asked anew."""
        return ()

    def interpreter(self, root: Path) -> str | None:
        """The Python that it runs in where there is no conda; none for the one that runs Overread.

        root  the repository
        """
        return None

    def for_one_question(self) -> Self:
        """As it is put a single question by a person who waits."""
        return self


class LocalModel(ModelSection):
    """A model that answers in the job itself: its trials stay on this machine."""

    stays_here: ClassVar[bool] = True


class Prices(Section):
    """Dollars for a million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached_input: float | None = Field(
        default=None, ge=0, description="of a prompt's tokens that the server had read before; none: as input"
    )


class ServerModel(ModelSection):
    """A model behind a server. The guard decides by its endpoint which trials it may get."""

    endpoint: Endpoint = Field(description="address that trials are sent to")
    key_variable: str = Field(default="", description="environment variable that holds the key; empty: none is needed")
    timeout: float = Field(default=600, gt=0, description="seconds that one request may take")
    batch_api: bool = Field(default=False, description="requests go up as files and come back within a day, cheaper")
    prices: Prices | None = Field(default=None, description="dollars for a million tokens")
    budget_dollars: float | None = Field(
        default=None, gt=0, description="the most that all jobs of this model in a study may spend; needs prices"
    )
    budget_tokens: int | None = Field(default=None, ge=1, description="the same in tokens of prompts and answers")

    dress: ClassVar[frozenset[str]] = ModelSection.dress | {
        "key_variable", "timeout", "batch_api", "prices", "budget_dollars", "budget_tokens",
    }  # fmt: skip

    def lacks(self, model_id: str) -> list[str]:
        if not self.key_variable or os.environ.get(self.key_variable) or guard.is_plainly_loopback(self.endpoint):
            return []
        return [f"the environment variable {self.key_variable} holds no key"]

    @model_validator(mode="after")
    def _priced(self) -> Self:
        if self.budget_dollars is not None and self.prices is None:
            raise ValueError("budget_dollars needs prices: dollars for a million tokens of input and of output")
        return self


class WeightsModel(LocalModel):
    """A model whose weights lie on the hub or in a folder."""

    weights: Weights = Field(description="hub id, or a folder that begins with . or / or ~")
    revision: str | None = Field(default=None, description="commit of the hub repository")
    dtype: Literal["bfloat16", "float16", "float32", "auto"] = "bfloat16"
    decoding: Decoding = Decoding()
    min_pixels: int | None = Field(default=None, ge=1)
    max_pixels: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _pixels(self) -> Self:
        if self.min_pixels is not None and self.max_pixels is not None and self.min_pixels > self.max_pixels:
            raise ValueError(f"min_pixels {self.min_pixels} is more than max_pixels {self.max_pixels}")
        return self

    def lacks(self, model_id: str) -> list[str]:
        if is_folder(self.weights) and not Path(self.weights).is_dir():
            return [f"no folder of weights for {model_id} at {shown(self.weights)}"]
        return []

    @property
    def unpinned(self) -> bool:
        return not is_folder(self.weights) and self.revision is None

    @property
    def folders(self) -> tuple[str, ...]:
        return (self.weights,) if is_folder(self.weights) else ()


class OwnCodeModel(WeightsModel):
    """A model that may come with code of its own, which is run only from a folder or a pinned revision."""

    trust_remote_code: bool = Field(default=False, description="runs the repository's own code; needs a revision")

    @property
    def untrusted(self) -> bool:
        """Whether it can't run without code that this file does not allow to be run."""
        return not self.trust_remote_code

    def lacks(self, model_id: str) -> list[str]:
        found = super().lacks(model_id)
        if self.untrusted:
            found.append("its repository's own code may not run yet: trust_remote_code is false")
        return found

    @model_validator(mode="after")
    def _pinned_code(self) -> Self:
        if self.trust_remote_code and self.revision is None and not is_folder(self.weights):
            raise ValueError("trust_remote_code runs code from the hub: pin it with 'revision'")
        return self

    def _refuse_other_than_default(self, *names: str) -> None:
        """For keys that a back end has no use for: ValueError if one holds anything but its default."""
        for name in names:
            if getattr(self, name) != type(self).model_fields[name].get_default():
                raise ValueError(f"a model of back end {self.backend} takes no {name!r}; remove it")
