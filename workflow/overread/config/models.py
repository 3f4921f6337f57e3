"""Models: one file each. What can change an answer is its identity; label, resources and notes are dress."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, Field, model_validator

from overread.config.base import Endpoint, FilePath, Section, Weights, is_folder


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


class GalleryReader(Section):
    """A reader of the gallery, put to a real study as a calibration weight."""

    name: str = Field(min_length=1, description="one of `overread gallery --list`")
    prevalence: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(
        default_factory=dict, description="share of yes by finding, for readers that answer by it"
    )
    usual: float = Field(default=0.3, ge=0, le=1, description="share of yes of a finding that `prevalence` leaves out")
    finding: str | None = Field(default=None, description="the finding that `one-finding` reads")


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
    reliance: Reliance = Reliance()
    reader: GalleryReader | None = Field(default=None, description="a reader of the gallery, in place of `reliance`")
    seed: int = 0

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if ("reliance" in self.model_fields_set) == (self.reader is not None):
            raise ValueError("give either 'reliance' or 'reader'")
        return self


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
    share_prefix: bool = Field(default=True, description="what prompts begin with alike goes through the model once")
    batch: int = Field(default=64, ge=1, description="trials at once, at most; memory may allow fewer")


class VllmModel(WeightsModel):
    """Run by vLLM's offline engine in the job itself."""

    backend: Literal["vllm"]
    thinking: bool = False
    structured: Literal["none", "choice", "json"] = Field(
        default="none",
        description="holds the answers of the readouts yes-no and free-text to an option's text, or to JSON with one",
    )
    batch: int = Field(default=256, ge=1, description="trials at once, at most")
    context: int | None = Field(
        default=None, ge=1, description="tokens of the longest prompt and answer; none: as many as the memory allows"
    )
    gpu_memory: float = Field(default=0.9, gt=0, le=1, description="share of a GPU's memory that vLLM takes")
    parity: int = Field(
        default=8, ge=0, description="trials that transformers answers too before a job begins; 0: none"
    )
    python: FilePath | None = Field(
        default=None, description="interpreter with vLLM, for jobs without conda; none: .venv-vllm, where it is there"
    )

    dress: ClassVar[frozenset[str]] = ModelSection.dress | {"gpu_memory", "parity", "python"}


class OwnCodeModel(WeightsModel):
    """A model that may come with code of its own, which is run only from a folder or a pinned revision."""

    trust_remote_code: bool = Field(default=False, description="runs the repository's own code; needs a revision")

    @property
    def untrusted(self) -> bool:
        """Whether it can't run without code that this file does not allow to be run."""
        return not self.trust_remote_code

    @model_validator(mode="after")
    def _pinned_code(self) -> Self:
        if self.trust_remote_code and self.revision is None and not is_folder(self.weights):
            raise ValueError("trust_remote_code runs code from the hub: pin it with 'revision'")
        return self

    def _refuse_other_than_default(self, *names: str) -> None:
        """For keys that a back end has no use for: ValueError if one holds anything but its default."""
        for name in names:
            if getattr(self, name) != type(self).model_fields[name].get_default():
                raise ValueError(f"a model of back end {self.backend} takes no {name!r}; remove it")  # type: ignore[attr-defined]


class MedImageInsightCode(Section):
    """What the class `MedImageInsight` of that model's own repository is made with."""

    module: str = Field(default="medimageinsightmodel", description="the repository's module that holds the class")
    model_dir: str = Field(default="2024.09.27", description="folder of the weights, from the repository's root")
    vision_model: str = "medimageinsigt-v1.0.0.pt"
    language_model: str = "language_model.pth"


class ContrastiveModel(OwnCodeModel):
    """Image and option texts are embedded; the nearest option is the answer. It writes no text."""

    backend: Literal["contrastive"]
    takes: Takes = Takes(text_only=False)
    loader: MedImageInsightCode | None = Field(
        default=None, description="for MedImageInsight, which runs its own code; none: CLIP or SigLIP in transformers"
    )

    @property
    def untrusted(self) -> bool:
        return self.loader is not None and not self.trust_remote_code

    @model_validator(mode="after")
    def _compares_a_picture(self) -> Self:
        self._refuse_other_than_default("decoding", "min_pixels", "max_pixels")
        if self.takes.images != 1 or self.takes.volumes or self.takes.text_only:
            raise ValueError("it compares texts with one picture: takes must say images 1, volumes and text_only false")
        if self.loader is None and self.trust_remote_code:
            raise ValueError("trust_remote_code is for a model with a 'loader'; transformers needs none for this one")
        if self.loader is not None and self.dtype != "float32":
            raise ValueError("MedImageInsight's own code computes in float32: set dtype to float32")
        return self


class LlavaMedModel(WeightsModel):
    """LLaVA-Med with its original conversation format and image preparation."""

    share_prefix: ClassVar[bool] = True
    thinking: ClassVar[bool] = False
    attention_implementation: ClassVar[str] = "sdpa"

    backend: Literal["llava-med"]
    vision_tower: Weights | None = Field(
        default=None,
        description="hub id or folder of the CLIP whose configuration (and, where the checkpoint lacks them, whose "
        "weights) the image part has; none: the one that the checkpoint's config.json names",
    )
    vision_tower_revision: str | None = Field(default=None, description="commit of the CLIP's hub repository")
    padding: Literal["drawn", "centred"] = Field(
        default="drawn", description="where a picture stands in its square: drawn by the seed, or in the middle"
    )

    @model_validator(mode="after")
    def _fixed_size(self) -> Self:
        for name in ("min_pixels", "max_pixels"):
            if getattr(self, name) is not None:
                raise ValueError(f"every picture is made as large as the image part wants it: remove {name!r}")
        return self


class Med3dvlmModel(OwnCodeModel):
    """Med3DVLM: one 3-D volume and 512 tokens in all."""

    share_prefix: ClassVar[bool] = True
    thinking: ClassVar[bool] = False
    attention_implementation: ClassVar[str] = "sdpa"

    backend: Literal["med3dvlm"]

    @model_validator(mode="after")
    def _fixed_size(self) -> Self:
        self._refuse_other_than_default("min_pixels", "max_pixels")
        return self


class Prices(Section):
    """Dollars for a million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached_input: float | None = Field(
        default=None, ge=0, description="of a prompt's tokens that the server had read before; none: as input"
    )


class OpenaiModel(ModelSection):
    """A model behind an OpenAI-compatible server. The key comes from the environment."""

    backend: Literal["openai"]
    model: str = Field(min_length=1, description="the name that the server knows it by; on Azure the deployment's")
    endpoint: Endpoint = "https://api.openai.com/v1"
    server: Literal["openai", "azure", "vllm"] = Field(
        default="openai", description="vllm: log-probabilities and constraints are asked for in that server's own way"
    )
    api_version: str | None = Field(
        default=None, pattern=r"^\d{4}-\d{2}-\d{2}(-preview)?$", description="of Azure, as in 2024-10-21"
    )
    key_variable: str = Field(default="OPENAI_API_KEY", description="environment variable that holds the key")
    decoding: Decoding = Decoding()
    thinking: bool = Field(default=False, description="vllm: whether the chat template lets the model think first")
    image_detail: Literal["auto", "low", "high"] | None = Field(
        default=None, description="how closely the server looks at images; none: as it does by itself"
    )
    top_logprobs: int = Field(default=20, ge=1, description="log-probabilities asked for; servers give 20, old ones 5")
    extra: dict[str, Any] = Field(default_factory=dict, description="parameters of each request besides, as they are")
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
    optional: ClassVar[frozenset[str]] = frozenset(
        {"server", "api_version", "thinking", "image_detail", "top_logprobs", "extra"}
    )
    """Part of the identity only where a file says something else than is so by itself."""

    @property
    def reasons(self) -> bool:
        """Whether it thinks before it answers, as the models do that take no temperature."""
        return self.server != "vllm" and (
            self.decoding.temperature is None or self.decoding.reasoning_effort is not None
        )

    def identity(self) -> dict[str, Any]:
        fields = type(self).model_fields
        usual = {
            name for name in self.optional if getattr(self, name) == fields[name].get_default(call_default_factory=True)
        }
        return {name: value for name, value in super().identity().items() if name not in usual}

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        azure, deployment = self.server == "azure", "/deployments/" in self.endpoint
        if self.server != "openai" and "endpoint" not in self.model_fields_set:
            raise ValueError(f"server {self.server} needs its endpoint")
        if azure and self.api_version is None and not self.endpoint.rstrip("/").endswith("/v1"):
            raise ValueError("Azure needs an api_version, as in 2024-10-21, unless the endpoint ends with /openai/v1")
        if not azure and self.api_version is not None:
            raise ValueError("api_version is for Azure: set server to azure, or remove it")
        if self.thinking and self.server != "vllm":
            raise ValueError("thinking is for a vllm server; other models reason by decoding.reasoning_effort")
        if self.batch_api and self.server == "vllm":
            raise ValueError("a vllm server has no batch API: remove batch_api")
        if self.batch_api and deployment:
            raise ValueError("for the batch API the endpoint must end with /openai, and model name the deployment")
        if self.budget_dollars is not None and self.prices is None:
            raise ValueError("budget_dollars needs prices: dollars for a million tokens of input and of output")
        if self.reasons and self.decoding.reasoning_effort is not None and self.takes.logprobs:
            raise ValueError("a model that reasons gives no log-probabilities: set takes.logprobs to false")
        own = sorted(OWN_PARAMETERS & set(self.extra))
        if own:
            raise ValueError(f"extra must not hold {own[0]!r}: the other keys of this file say it")
        return self


OWN_PARAMETERS = frozenset(
    {
        "model", "messages", "max_tokens", "max_completion_tokens", "temperature", "top_p", "seed", "n", "stream",
        "reasoning_effort", "logprobs", "top_logprobs", "response_format", "structured_outputs",
    }
)  # fmt: skip
"""Of a request: what `OpenaiModel.extra` may not hold."""


Model = Annotated[
    CalibratedModel | TransformersModel | VllmModel | OpenaiModel | ContrastiveModel | LlavaMedModel | Med3dvlmModel,
    Field(discriminator="backend"),
]


class ModelFile(BaseModel):
    """A model file's content, in a field so that a discriminated union can be validated and have a schema."""

    model: Model
