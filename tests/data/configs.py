"""A small config for tests, written to a folder with its model files, to be changed in one place and read again."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from overread.config import Config, load

SMALL: dict[str, Any] = {
    "name": "small",
    "datasets": {
        "mri": {"source": "phantom", "modality": "mri", "studies": 24, "questions": {"origin": "grammar"}},
        "xray": {"source": "phantom", "modality": "xray", "patients": 40, "questions": {"origin": "findings"}},
    },
    "views": {
        "flair": {"series": "FLAIR"},
        "all-series": {"series": "all"},
        "volume": {"kind": "volume"},
        "frontal": {"kind": "frontal"},
    },
    "settings": {
        "plain": {"images": "flair"},
        "black": {"extends": "plain", "source": "black"},
        "slices": {"extends": "plain", "images": "all-series"},
        "text": {"extends": "plain", "images": "none"},
        "report": {"images": "frontal", "report": "full", "readout": "yes-no"},
        "report-swapped": {"extends": "report", "source": "substitute"},
    },
    "evaluations": [
        {"dataset": "mri", "models": ["reader", "truth"], "settings": ["plain", "black"], "runs": 3},
        {"dataset": "xray", "models": ["reader"], "settings": ["report", "report-swapped"]},
    ],
    "comparisons": {"gain": {"accuracy": ["plain", "black"]}, "swap": {"flips": ["report", "report-swapped"]}},
}

MODELS: dict[str, dict[str, Any]] = {
    "reader": {"label": "Reader", "backend": "transformers", "weights": "./weights", "takes": {"images": 1}},
    "truth": {"label": "Truth", "backend": "calibrated", "reliance": {"image": 1.0}, "takes": {"images": 85}},
}


def small(**sections: Any) -> dict[str, Any]:
    """The small config with some sections replaced."""
    return {**copy.deepcopy(SMALL), **sections}


def written(folder: Path, content: Mapping[str, Any] | str, models: Mapping[str, Any] = MODELS) -> Path:
    """The config file of a content, with its model files and a folder of weights beside it."""
    (folder / "models" / "weights").mkdir(parents=True, exist_ok=True)
    for name, model in models.items():
        text = model if isinstance(model, str) else yaml.safe_dump(model)
        (folder / "models" / f"{name}.yaml").write_text(text, encoding="utf-8")
    path = folder / "study.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(dict(content)), encoding="utf-8")
    return path


def config_of(folder: Path, models: Mapping[str, Any] | None = None, **sections: Any) -> Config:
    """The small config, read, with some sections replaced and some models added."""
    return load(written(folder, small(**sections), {**MODELS, **(models or {})}))


OTHERS: dict[str, Any] = {
    "blind": {"label": "B", "backend": "transformers", "weights": "some/text", "takes": {"images": 0}},
    "server": {"label": "S", "backend": "openai", "model": "s", "endpoint": "http://127.0.0.1:8000/v1",
               "takes": {"images": 85, "logprobs": False}},
    "clip": {"label": "C", "backend": "contrastive", "weights": "some/clip", "takes": {"text_only": False}},
    "cube": {"label": "Q", "backend": "med3dvlm", "weights": "some/cube",
             "revision": "0" * 40, "trust_remote_code": True,
             "takes": {"images": 0, "volumes": True, "text_only": False}},
    "masked": {"label": "M", "backend": "transformers", "weights": "some/lm",
               "takes": {"images": 1, "attention": True, "layers": 4}},
}  # fmt: skip
SETTINGS: dict[str, Any] = {
    **SMALL["settings"],
    "volume": {"images": "volume"},
    "first-token": {"images": "frontal", "readout": "first-token"},
    "similarity": {"images": "flair", "readout": "similarity"},
    "similarity-report": {"extends": "similarity", "report": "full"},
    "hidden": {"extends": "report", "sweep": {"attention": ["from-0..5", "only-0..4"]}},
}
