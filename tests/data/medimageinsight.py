"""A stand-in for MedImageInsight's repository: a folder with the class of that name, in the shape of the real one.

Its vectors are small and made from the pixels and the words, so that a test can compute them; its files, its arguments
and what its methods take and give are those of the real class.
"""

from __future__ import annotations

from pathlib import Path

CODE = """
import base64
import io
import os

import numpy as np
import torch
from PIL import Image

CALLS = []
WORDS = {}


def tokenize(texts, padding=False, truncation=False, max_length=None, return_tensors=None):
    ids = [[1] + [WORDS.setdefault(word, len(WORDS) + 3) for word in text.split()] + [2] for text in texts]
    return {"input_ids": [each[:max_length] if truncation else each for each in ids]}


class MedImageInsight:
    def __init__(self, model_dir, vision_model_name, language_model_name):
        self.files = [
            os.path.join(model_dir, "vision_model", vision_model_name),
            os.path.join(model_dir, "language_model", language_model_name),
        ]
        self.model = None

    def load_model(self):
        for file in self.files:
            if not os.path.exists(file):
                raise FileNotFoundError(file)
        self.device = torch.device("cpu")
        self.tokenize, self.max_length = tokenize, 12
        self.factor = torch.tensor([FACTOR])

    def encode(self, images=None, texts=None):
        CALLS.append((len(images or ()), len(texts or ())))
        out = {"scaling_factor": self.factor.numpy()}
        if images is not None:
            files = [io.BytesIO(base64.b64decode(each)) for each in images]
            pictures = [np.asarray(Image.open(each).convert("RGB").resize((4, 2)), dtype=np.float32) for each in files]
            out["image_embeddings"] = np.stack([self._unit(each[..., 0].ravel() + 1) for each in pictures])
        if texts is not None:
            ids = self.tokenize(texts, padding="max_length", truncation=True, max_length=self.max_length)["input_ids"]
            rows = [np.random.default_rng(sum(n * k for k, n in enumerate(row, 1))).normal(size=8) for row in ids]
            out["text_embeddings"] = np.stack([self._unit(row.astype(np.float32)) for row in rows])
        return out

    def predict(self, images, labels, multilabel=False):
        image, text = self.encode(images=images)["image_embeddings"], self.encode(texts=labels)["text_embeddings"]
        chances = torch.tensor(image @ text.T * SCALE).softmax(-1)
        return [dict(zip(labels, row.tolist())) for row in chances]

    def _unit(self, vector):
        return vector / np.linalg.norm(vector)
"""


def write_repository(
    folder: Path, *, module: str = "medimageinsightmodel", factor: float = 3.0, logarithm: bool = True
) -> Path:
    """The repository in `folder`. The scaling factor is a logarithm, as a trained temperature is, or it is not."""
    for file in ("2024.09.27/vision_model/medimageinsigt-v1.0.0.pt", "2024.09.27/language_model/language_model.pth"):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(b"weights")
    scale = "float(self.factor.exp())" if logarithm else "float(self.factor)"
    code = CODE.replace("FACTOR", repr(factor)).replace("SCALE", scale)
    (folder / f"{module}.py").write_text(code, encoding="utf-8")
    return folder
