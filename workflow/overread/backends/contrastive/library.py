"""CLIP and SigLIP through the transformers library.

Texts are padded as the model was trained: SigLIP's always to its whole context, CLIP's only to the longest of a batch,
which its causal text part does not see. At load a picture and a few texts go through the model's own forward pass
and through its two parts apart, and the similarities must agree but for a constant: a family that compares in another
way stops there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overread.backends.contrastive.encoder import PROBE_TEXTS, Encoder, probe_picture, unit
from overread.backends.contrastive.section import ContrastiveModel
from overread.backends.transformers.network import quiet_transformers
from overread.backends.weights import check_folder
from overread.config import is_folder
from overread.core.errors import BadInput

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

_TOLERANCE = {"torch.float32": 1e-3, "torch.bfloat16": 5e-2, "torch.float16": 1e-2}
"""How far the probe's cosines may differ, by the precision that the model's own forward pass rounds to."""


class LibraryEncoder(Encoder):
    """AutoModel with `get_image_features`, `get_text_features` and `logit_scale`.

    raises   BadInput if it can't be loaded, or not faithfully
    """

    def __init__(self, model: ContrastiveModel, model_id: str) -> None:
        import torch

        transformers = quiet_transformers()
        self.place = f"model {model_id!r}: {model.weights}"
        where = model.weights
        if is_folder(where):
            where = str(Path(where).expanduser())
            check_folder(Path(where), model_id)
        common: dict[str, Any] = {"revision": model.revision, "trust_remote_code": False}
        try:
            config = transformers.AutoConfig.from_pretrained(where, **common)
            # The torchvision processors resize a little differently: one is used everywhere.
            self.processor = transformers.AutoProcessor.from_pretrained(where, backend="pil", **common)
            network, loading = transformers.AutoModel.from_pretrained(
                where, config=config, dtype=model.dtype, use_safetensors=True, output_loading_info=True, **common
            )
        except (OSError, ValueError, RuntimeError, ImportError, KeyError) as error:
            raise BadInput(f"{self.place}: can't be loaded: {str(error).strip().splitlines()[0]}") from None
        lacking = sorted({*loading["missing_keys"], *(str(each) for each in loading["mismatched_keys"])})
        if lacking:
            raise BadInput(f"{self.place}: the weights have no fitting {lacking[0]} ({len(lacking)} tensors in all)")
        if not all(hasattr(network, part) for part in ("get_image_features", "get_text_features", "logit_scale")):
            raise BadInput(
                f"{self.place}: {type(network).__name__} does not compare pictures with texts; the contrastive back "
                "end takes CLIP, SigLIP, and MedImageInsight with its own 'loader'"
            )
        if not all(hasattr(self.processor, part) for part in ("image_processor", "tokenizer")):
            raise BadInput(f"{self.place}: no processor for pictures and texts; the folder needs its configuration")
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.network = network.eval().to(self.device)
        self.context = int(config.text_config.max_position_embeddings)
        self.scale = float(network.logit_scale.detach().float().exp())
        fixed = config.model_type.startswith("siglip")
        self._padding: dict[str, Any] = (
            {"padding": "max_length", "max_length": self.context} if fixed else {"padding": True}
        )
        self._check_against_forward()

    def images(self, pictures: Sequence[Image]) -> torch.Tensor:
        import torch

        with torch.inference_mode():
            features: torch.Tensor = self.network.get_image_features(**self._pixels(pictures)).pooler_output
        return features

    def texts(self, texts: Sequence[str]) -> torch.Tensor:
        import torch

        with torch.inference_mode():
            features: torch.Tensor = self.network.get_text_features(**self._words(texts)).pooler_output
        return features

    def tokens(self, text: str) -> list[int]:
        return list(self.processor(text=[text], padding=False, truncation=False)["input_ids"][0])

    def ends_early(self, tokens: list[int]) -> bool:
        """CLIP has no other token for what its tokenizer does not know, and reads up to the first end token."""
        return tokens.count(self.processor.tokenizer.eos_token_id) > 1

    def _pixels(self, pictures: Sequence[Image]) -> dict[str, Any]:
        packed = self.processor(images=list(pictures), return_tensors="pt")
        return dict(packed.to(self.device, self.network.dtype))

    def _words(self, texts: Sequence[str]) -> dict[str, Any]:
        packed = self.processor(text=list(texts), **self._padding, truncation=False, return_tensors="pt")
        return dict(packed.to(self.device))

    def _check_against_forward(self) -> None:
        import torch

        picture = probe_picture()
        with torch.inference_mode():
            whole = self.network(**self._words(PROBE_TEXTS), **self._pixels([picture])).logits_per_image[0].float()
        cosines = unit(self.texts(PROBE_TEXTS), self.place) @ unit(self.images([picture]), self.place)[0]
        own, apart = (whole - whole.mean()).cpu() / self.scale, cosines - cosines.mean()
        furthest = float((own - apart).abs().max())
        if not furthest < _TOLERANCE[str(self.network.dtype)]:
            raise BadInput(
                f"{self.place}: {type(self.network).__name__} compares a picture with texts in another way than by the "
                f"cosines of its vectors (they differ by {furthest:.4f}); this back end can't be used"
            )
