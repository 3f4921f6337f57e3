"""Models: one file each. What can change an answer is its identity; label, resources and notes are dress."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, Field, model_validator

from overread.config.base import Endpoint, Section, Weights, is_folder


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
    threads: int = Field(default=1, ge=1)


class Reliance(Section):
    """What a calibrated reader does, as probabilities. It follows the report first, then the image, then guesses."""

    report: float = Field(default=0.0, ge=0, le=1, description="uses the report where there is one")
    image: float = Field(default=0.0, ge=0, le=1, description="uses the image where there is one")
    image_beside_report: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="uses the image although there is a report; none: as `image` allows after the report",
    )
    first_option: float = Field(default=0.0, ge=0, le=1, description="a guess takes the first option")
    yes: float = Field(default=0.5, ge=0, le=1, description="a guess between yes and no says yes")
    unparsed: float = Field(default=0.0, ge=0, le=1, description="gives no readable answer")
    by_patient: float | None = Field(
        default=None,
        gt=0,
        description="concentration of a beta distribution of the image reliance over patients; none: all alike",
    )


class ModelSection(Section):
    """What every back end has. `identity` is what can change an answer; the rest is dress."""

    label: str = Field(min_length=1, description="how it is called in tables and figures")
    takes: Takes = Takes()
    resources: Resources = Resources()
    batch: int = Field(default=16, ge=1, description="trials at once, at most")
    note: str = ""

    dress: ClassVar[frozenset[str]] = frozenset({"label", "takes", "resources", "batch", "note"})

    def identity(self) -> dict[str, Any]:
        """All of the file that can change an answer, for the request key. `weights` are hashed by the back end."""
        return self.model_dump(mode="json", exclude=set(self.dress))


class CalibratedModel(ModelSection):
    """A reader of known behaviour: the instrument's calibration weight. It is told the truth; it is no model."""

    backend: Literal["calibrated"]
    reliance: Reliance
    seed: int = 0


class WeightsModel(ModelSection):
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


class TransformersModel(WeightsModel):
    """Run by the transformers library in the job itself."""

    backend: Literal["transformers"]
    attention_implementation: Literal["sdpa", "eager"] = "sdpa"
    thinking: bool = False


class VllmModel(WeightsModel):
    """Run by vLLM's offline engine in the job itself."""

    backend: Literal["vllm"]
    thinking: bool = False


class ContrastiveModel(WeightsModel):
    """Image and option texts are embedded; the nearest option is the answer. It writes no text."""

    backend: Literal["contrastive"]


class LlavaMedModel(WeightsModel):
    """LLaVA-Med with its original conversation format and image preparation."""

    backend: Literal["llava-med"]


class Med3dvlmModel(WeightsModel):
    """Med3DVLM: one 3-D volume and 512 tokens in all."""

    backend: Literal["med3dvlm"]
    trust_remote_code: bool = Field(default=False, description="runs the repository's own code; needs a revision")

    @model_validator(mode="after")
    def _pinned_code(self) -> Self:
        if self.trust_remote_code and self.revision is None and not is_folder(self.weights):
            raise ValueError("trust_remote_code runs code from the hub: pin it with 'revision'")
        return self


class OpenaiModel(ModelSection):
    """A model behind an OpenAI-compatible server. The key comes from the environment."""

    backend: Literal["openai"]
    model: str = Field(min_length=1, description="the name that the server knows it by")
    endpoint: Endpoint = "https://api.openai.com/v1"
    key_variable: str = Field(default="OPENAI_API_KEY", description="environment variable that holds the key")
    decoding: Decoding = Decoding()

    dress: ClassVar[frozenset[str]] = ModelSection.dress | {"key_variable"}


Model = Annotated[
    CalibratedModel | TransformersModel | VllmModel | OpenaiModel | ContrastiveModel | LlavaMedModel | Med3dvlmModel,
    Field(discriminator="backend"),
]


class ModelFile(BaseModel):
    """A model file's content, in a field so that a discriminated union can be validated and have a schema."""

    model: Model
