"""MedImageInsight, through the class of that name in its own repository.

Used of it: `MedImageInsight(model_dir=, vision_model_name=, language_model_name=)`, `load_model()`,
`encode(images=, texts=)` (pictures as base64) with `image_embeddings`, `text_embeddings` and `scaling_factor`,
`predict(images, labels)`, and the tokenizer `tokenize` with `max_length`. Whatever of that is not there, or does not
behave so, stops the job. Its weights are pickles, which its code reads: allowing the one allows the other.

Whether the scaling factor multiplies the cosines as it is or is a logarithm shows in the class's own `predict`: the
one with which the cosines of a picture and a few texts give the same probabilities is taken.
"""

from __future__ import annotations

import base64
import importlib
import io
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from overread.backends.contrastive.encoder import PROBE_TEXTS, Encoder, probe_picture, unit
from overread.backends.contrastive.section import ContrastiveModel
from overread.backends.own_code import repository
from overread.core.errors import BadInput

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

_TOLERANCE = 0.02
"""How far a log-probability of the probe may differ from the class's own, absolutely and by its size."""


class MedImageInsightEncoder(Encoder):
    """The repository's own model. BadInput if it is not what this module expects, or may not be run."""

    def __init__(self, model: ContrastiveModel, model_id: str) -> None:
        assert model.loader is not None
        self.place = f"model {model_id!r}: {model.weights}"
        folder, named = repository(model, model_id), model.loader
        sys.path.insert(0, str(folder))  # its modules import each other from the repository's root
        try:
            kind = importlib.import_module(named.module).MedImageInsight
            self.own: Any = kind(
                model_dir=str(folder / named.model_dir),
                vision_model_name=named.vision_model,
                language_model_name=named.language_model,
            )
            self.own.load_model()
        except Exception as error:  # code of others may raise anything
            raise BadInput(f"{self.place}: {named.module}.MedImageInsight can't be loaded: {_told(error)}") from error
        finally:
            sys.path.remove(str(folder))
        missing = [name for name in ("encode", "predict", "tokenize", "max_length") if not hasattr(self.own, name)]
        if missing:
            raise BadInput(f"{self.place}: its class MedImageInsight has no {missing[0]!r}, which this back end needs")
        self.device = str(getattr(self.own, "device", "cpu")).partition(":")[0]
        self.context = int(self.own.max_length)
        self.scale = self._measured_scale()

    def images(self, pictures: Sequence[Image]) -> torch.Tensor:
        return self._encoded("image_embeddings", len(pictures), images=[_base64(each) for each in pictures])

    def texts(self, texts: Sequence[str]) -> torch.Tensor:
        return self._encoded("text_embeddings", len(texts), texts=list(texts))

    def tokens(self, text: str) -> list[int]:
        packed = self._called(self.own.tokenize, [text], padding=False, truncation=False)
        return list(packed["input_ids"][0])

    def ends_early(self, tokens: list[int]) -> bool:
        """Its text part reads up to the first end token, as CLIP's does."""
        end = getattr(self.own.tokenize, "eos_token_id", None)
        return end is not None and tokens.count(end) > 1

    def _encoded(self, what: str, count: int, **given: Any) -> torch.Tensor:
        import torch

        found = self._called(self.own.encode, **given)
        if what not in found:
            raise BadInput(f"{self.place}: its class's encode gives no {what!r}, but {', '.join(sorted(found))}")
        vectors = torch.as_tensor(found[what])
        if vectors.ndim != 2 or len(vectors) != count:
            raise BadInput(f"{self.place}: {count} inputs gave {what} of shape {tuple(vectors.shape)}")
        self._factor = found.get("scaling_factor")
        return vectors

    def _called(self, function: Any, *given: Any, **named: Any) -> Any:
        import torch

        try:
            with torch.inference_mode():
                return function(*given, **named)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # code of others may raise anything
            raise BadInput(f"{self.place}: its class's {function.__name__} failed: {_told(error)}") from error

    def _measured_scale(self) -> float:
        import torch

        picture = probe_picture()
        image = unit(self.images([picture]), self.place)[0]
        cosines = (unit(self.texts(PROBE_TEXTS), self.place) @ image).double()
        if self._factor is None or torch.as_tensor(self._factor).numel() != 1:
            raise BadInput(f"{self.place}: its class's encode gives no single 'scaling_factor'")
        factor = float(torch.as_tensor(self._factor).item())
        (chances,) = self._called(self.own.predict, [_base64(picture)], list(PROBE_TEXTS))
        own = torch.tensor([float(chances[text]) for text in PROBE_TEXTS], dtype=torch.float64).log()
        fitting = []
        for scale in (factor, math.exp(min(factor, 50.0))):
            expected = (scale * cosines).log_softmax(0)
            if bool(((own - expected).abs() <= _TOLERANCE * (1 + expected.abs())).all()):
                fitting.append(scale)
        if len(fitting) != 1:
            raise BadInput(
                f"{self.place}: its class's predict gives {chances}, which is not the softmax of the cosines "
                f"{cosines.tolist()} scaled by {factor} or by its exponential; this version of its code can't be used"
            )
        return fitting[0]


def _base64(picture: Image) -> str:
    file = io.BytesIO()
    picture.save(file, format="PNG", compress_level=1)
    return base64.b64encode(file.getvalue()).decode("ascii")


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
