"""The network: the library's LLaVA with LLaVA-Med's tensors, the original's tokenizer, CLIP's picture preparation."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from overread.backends.llava_med.checkpoint import library_config, read_config, read_tensors
from overread.backends.llava_med.section import LlavaMedModel
from overread.backends.transformers.network import Network, first_line, quiet_transformers
from overread.backends.weights import check_folder
from overread.config import is_folder
from overread.core.errors import BadInput

PICTURE = -200
"""Stands for a picture's tokens, as in the original: no token of the vocabulary."""


class LlavaMedNetwork(Network):
    """As `Network`, from the original's files.

    pixels   CLIP's picture preparation
    raises   BadInput if it can't be loaded, or not faithfully
    """

    model: LlavaMedModel  # type: ignore[assignment]

    def __init__(self, model: LlavaMedModel, model_id: str) -> None:
        import torch

        transformers = quiet_transformers()
        self.model, self.place = model, f"model {model_id!r}: {model.weights}"
        folder = self._had(model.weights, model.revision, ["*.json", "*.safetensors", "tokenizer.model"])
        check_folder(folder, model_id)
        raw = read_config(folder)
        self._check_tokenizer(folder)
        tower = self._tower(str(model.vision_tower or raw.get("mm_vision_tower")))
        try:
            vision = transformers.CLIPVisionConfig.from_pretrained(tower)
            self.pixels = transformers.AutoImageProcessor.from_pretrained(tower, backend="pil")
            config = library_config(raw, vision, folder / "config.json")
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, config=config.text_config)
        except (OSError, ValueError, ImportError, KeyError) as error:
            raise BadInput(f"{self.place}: can't be loaded: {first_line(error)}") from None
        if self.tokenizer.bos_token_id is None or not self.tokenizer.is_fast:
            raise BadInput(f"{self.place}: its tokenizer is not Mistral's; download the weights again")
        with torch.device("meta"):
            expected = transformers.LlavaForConditionalGeneration(config).state_dict().keys()
        tensors = read_tensors(folder, expected, None if model.vision_tower is None else Path(tower))
        try:
            network, loading = transformers.LlavaForConditionalGeneration.from_pretrained(
                None, config=config, state_dict=tensors, dtype=model.dtype, attn_implementation="sdpa",
                output_loading_info=True,
            )  # fmt: skip
        except (OSError, ValueError, RuntimeError) as error:
            raise BadInput(f"{self.place}: can't be loaded: {first_line(error)}") from None
        wrong = sorted(str(each) for names in loading.values() for each in names)
        if wrong:
            raise BadInput(f"{self.place}: the weights have no fitting {wrong[0]} ({len(wrong)} tensors in all)")
        self._put_on_device(network)
        self.processor, self.sees = None, True
        self._settle(self.network.config, self.network.generation_config)
        self.image_token, self.suppressed = PICTURE, []

    def _check_tokenizer(self, folder: Path) -> None:
        """The library names another package than the one that is missing."""
        if (folder / "tokenizer.json").is_file():
            return
        if not (folder / "tokenizer.model").is_file():
            raise BadInput(f"{self.place}: no tokenizer.json and no tokenizer.model; download the weights again")
        lacking = [name for name in ("sentencepiece", "google.protobuf") if not _installed(name)]
        if lacking:
            raise BadInput(
                f"{self.place}: its tokenizer is a tokenizer.model, which sentencepiece and protobuf read: install "
                "both, or put a tokenizer.json beside it"
            )

    def _tower(self, named: str) -> str:
        """The folder of the CLIP. Its weights are fetched only where the model file names it."""
        files = ["*.json"] if self.model.vision_tower is None else ["*.json", "*.safetensors"]
        return str(self._had(named, self.model.vision_tower_revision, files))

    def _had(self, where: str, revision: str | None, files: list[str]) -> Path:
        """A folder, or the files of a hub repository that match one of the patterns."""
        if is_folder(where):
            folder = Path(where).expanduser()
            if not folder.is_dir():
                raise BadInput(f"{self.place}: no folder {folder}; put it there, or correct the model file")
            return folder
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError

        try:
            return Path(snapshot_download(where, revision=revision, allow_patterns=files))
        except (OSError, HfHubHTTPError, HFValidationError) as error:
            raise BadInput(f"{self.place}: {where} can't be had: {first_line(error)}") from None


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # its parent is not there
        return False
