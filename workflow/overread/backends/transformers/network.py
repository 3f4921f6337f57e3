"""A model of the transformers library, loaded faithfully or not at all: weights, tokenizer, processor, end tokens."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from overread.backends.beside import check_beside, check_stops
from overread.backends.transformers.attention import attention_name
from overread.backends.transformers.section import TransformersModel
from overread.backends.weights import check_folder, hub_folder
from overread.config import is_folder
from overread.core.errors import BadInput

THOUGHT_OPENERS = ("<unused94>",)
"""Tokens with which MedGemma opens a thought; not generated unless `thinking` is set."""


def load_network(model: TransformersModel, model_id: str) -> Network:
    """The model of a model file, on the GPU where there is one.

    raises   BadInput if it can't be loaded, or not faithfully: pickles, missing or damaged shards, missing tensors, a
             revision that is not there, no processor, no chat template, or float16 where that overflows
    """
    return Network(model, model_id)


class Network:
    """The loaded model with its processor.

    network     the torch module
    sees        whether it takes pictures
    processor   of text and pictures; for a model of text, its tokenizer
    stops       tokens that end an answer
    suppressed  tokens that no answer may hold
    place       for messages: which model this is
    """

    network: Any
    device: str

    def __init__(self, model: TransformersModel, model_id: str) -> None:
        config = self._read(model, model_id)
        self._put_on_device(self._load(config))
        self._settle(self.network.config, self.network.generation_config)

    def _read(self, model: TransformersModel, model_id: str) -> Any:
        """Tokenizer, processor and configuration; the last is returned."""
        transformers = quiet_transformers()
        self.model, self.place = model, f"model {model_id!r}: {model.weights}"
        self.where = model.weights
        if is_folder(self.where):
            self.where = str(Path(self.where).expanduser())
            check_folder(Path(self.where), model_id)
        else:
            check_beside(hub_folder(self.where, model.revision, model_id))
        self.common: dict[str, Any] = {"revision": model.revision, "trust_remote_code": False}
        config = self._config(transformers)
        self.sees: bool = type(config) in transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
        self.processor = self._processor(transformers)
        self.tokenizer = self.processor.tokenizer if self.sees else self.processor
        return config

    def _load(self, config: Any) -> Any:
        """The torch module with its weights, every tensor of it from the files."""
        from safetensors import SafetensorError

        transformers: Any = import_module("transformers")
        kind = transformers.AutoModelForImageTextToText if self.sees else transformers.AutoModelForCausalLM
        try:
            network, loading = kind.from_pretrained(
                self.where,
                config=config,
                dtype=self.model.dtype,
                use_safetensors=True,
                attn_implementation=self.model.attention_implementation,
                output_loading_info=True,
                **self.common,
            )
        except SafetensorError as error:
            raise BadInput(f"{self.place}: damaged weights ({first_line(error)}); download them again") from None
        except (OSError, ValueError, RuntimeError) as error:
            raise BadInput(f"{self._source}: can't be loaded: {first_line(error)}") from None
        lacking = sorted({*loading["missing_keys"], *(str(each) for each in loading["mismatched_keys"])})
        if lacking:
            raise BadInput(f"{self.place}: the weights have no fitting {lacking[0]} ({len(lacking)} tensors in all)")
        return network

    def _put_on_device(self, network: Any) -> None:
        """On the GPU where there is one."""
        import torch

        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            self.network = network.eval().to(self.device)
        except torch.OutOfMemoryError:
            raise BadInput(
                f"{self.place}: out of memory: the weights do not fit on {torch.cuda.get_device_name()}; "
                "use a GPU with more memory"
            ) from None

    def _settle(self, config: Any, defaults: Any) -> None:
        """What follows from the configuration, the model's own decoding and its tokenizer."""
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        self.defaults = defaults
        self.architecture = str(config.model_type)
        self.text_config = config.get_text_config()
        self.image_token: int | None = getattr(config, "image_token_id", None) if self.sees else None
        self.stops = self._stops()
        openers = [] if self.model.thinking else self.tokenizer.convert_tokens_to_ids(list(THOUGHT_OPENERS))
        unknown = {None, self.tokenizer.unk_token_id}
        self.suppressed: list[int] = [each for each in openers if each not in unknown]

    @property
    def _source(self) -> str:
        """Which files were looked for."""
        return self.place if self.model.revision is None else f"{self.place} at revision {self.model.revision!r}"

    def _config(self, transformers: Any) -> Any:
        try:
            config = transformers.AutoConfig.from_pretrained(self.where, **self.common)
        except Exception as error:  # the library checks some values by type, and uses others as they come
            raise BadInput(f"{self._source}: can't be loaded: {first_line(error)}") from None
        if self.model.dtype == "float16" and config.model_type.startswith("gemma3"):
            raise BadInput(
                f"{self.place}: Gemma 3 overflows in float16 and gives NaN; set dtype to bfloat16 or float32"
            )
        return config

    def _processor(self, transformers: Any) -> Any:
        pixels = {name: getattr(self.model, name) for name in ("min_pixels", "max_pixels")}
        pixels = {name: value for name, value in pixels.items() if value is not None}
        if pixels and not self.sees:
            raise BadInput(f"{self.place}: this model takes text only; remove {next(iter(pixels))} from the model file")
        try:
            if not self.sees:
                processor = transformers.AutoTokenizer.from_pretrained(self.where, **self.common)
            else:
                processor = transformers.AutoProcessor.from_pretrained(self.where, **self.common)
                if hasattr(processor, "image_processor"):
                    # The torchvision processors resize a little differently: one is used everywhere.
                    processor.image_processor = transformers.AutoImageProcessor.from_pretrained(
                        self.where, backend="pil", **pixels, **self.common
                    )
        except Exception as error:  # as above
            raise BadInput(f"{self._source}: its processor can't be loaded: {first_line(error)}") from None
        if self.sees and not hasattr(processor, "image_processor"):
            raise BadInput(f"{self.place}: no processor for images; the folder needs its processor's configuration")
        takes = getattr(getattr(processor, "image_processor", None), "valid_kwargs", None)
        for name in pixels:
            if takes is None or name not in takes.__annotations__:
                raise BadInput(f"{self.place}: this model's processor takes no {name}; remove it from the model file")
        if not processor.chat_template:
            raise BadInput(f"{self.place}: no chat template; the folder needs chat_template.jinja")
        if not (processor.tokenizer if self.sees else processor).is_fast:
            raise BadInput(f"{self.place}: no tokenizer.json; the folder needs the tokenizer in that form")
        return processor

    def _stops(self) -> frozenset[int]:
        """End tokens of the model's own generation config, and the tokenizer's. BadInput for one that is no token."""
        ends = self.defaults.eos_token_id
        ends = ends if isinstance(ends, list) else [ends]
        vocabulary = max(int(getattr(self.text_config, "vocab_size", 0) or 0), len(self.tokenizer))
        return check_stops(
            self.place, [each for each in [*ends, self.tokenizer.eos_token_id] if each is not None], vocabulary
        )

    def attend_by_tiles(self) -> None:
        """From now on the language part takes tiles (`attention`); without them it computes what it did before."""
        name = attention_name(self.model.attention_implementation)
        whole = self.text_config is self.network.config
        self.network.set_attn_implementation(name if whole else {"text_config": name})

    def sampling(self) -> tuple[float, float]:
        """Temperature and top-p; what the config leaves out is the model's own default."""
        decoding, own = self.model.decoding, self.defaults
        inherited = (own.temperature if own.temperature is not None else 1.0) if own.do_sample else 0.0
        temperature = inherited if decoding.temperature is None else decoding.temperature
        top_p = decoding.top_p if decoding.top_p is not None else (own.top_p if own.do_sample else None)
        return temperature, 1.0 if top_p is None else top_p


def quiet_transformers() -> Any:
    """The library, without its remarks and progress bars."""
    transformers: Any = import_module("transformers")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


def first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
