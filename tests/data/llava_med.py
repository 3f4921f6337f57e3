"""Small checkpoints in the form of LLaVA-Med's own: `llava_mistral` names, original configuration, a CLIP beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from data import checkpoint_words as words
from data.checkpoints import Size, _draw, _llava_tokenizer

EDGE = 28
ORIGINAL = {
    "language_model.model.": "model.",
    "language_model.lm_head.": "lm_head.",
    "vision_tower.vision_model.": "model.vision_tower.vision_tower.vision_model.",
    "vision_tower.": "model.vision_tower.vision_tower.vision_model.",
    "multi_modal_projector.linear_1.": "model.mm_projector.0.",
    "multi_modal_projector.linear_2.": "model.mm_projector.2.",
}
"""The library's names in a file -> the original's."""


def make_llava_med(folder: Path, *, seed: int = 0, tower: bool = True) -> tuple[Path, Path, Path]:
    """The original's form, the same weights as the library's LLaVA, and the CLIP that the image part is of.

    tower    whether the checkpoint holds the image part's weights; the CLIP folder holds them in any case
    """
    import torch
    import transformers
    from safetensors.torch import load_file, save_file

    transformers.logging.set_verbosity_error()
    original, library, clip = folder / "original", folder / "library", folder / "clip"
    size = Size()
    tokenizer = _llava_tokenizer(size, words.LLAVA_TEMPLATE)
    text = {**size.text(tokenizer), "head_dim": size.head_dim, "rope_theta": 1e6, "sliding_window": None}
    text["rms_norm_eps"] = 1e-5
    vision: dict[str, Any] = {
        **size.vision(),
        "num_hidden_layers": 3,
        "image_size": EDGE,
        "patch_size": 14,
        "projection_dim": 16,
    }
    torch.manual_seed(seed)
    network = transformers.LlavaForConditionalGeneration(
        transformers.LlavaConfig(
            text_config={"model_type": "mistral", **text},
            vision_config={"model_type": "clip_vision_model", **vision},
            image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
            vision_feature_layer=-2,
            image_seq_length=4,
        )
    )
    _draw(network, seed)
    network.save_pretrained(library)
    pixels = transformers.CLIPImageProcessorPil(size={"shortest_edge": EDGE}, crop_size={"height": EDGE, "width": EDGE})
    tensors = {renamed(name): each for name, each in load_file(library / "model.safetensors").items()}
    image = {name: each for name, each in tensors.items() if "vision_tower" in name}

    clip.mkdir()
    transformers.CLIPVisionConfig(**vision).save_pretrained(clip)
    pixels.save_pretrained(clip)
    save_file(
        {name.removeprefix("model.vision_tower.vision_tower."): each for name, each in image.items()},
        clip / "model.safetensors",
    )

    original.mkdir()
    kept = tensors if tower else {name: each for name, each in tensors.items() if name not in image}
    kept["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(size.head_dim // 2)
    names = sorted(kept)
    for number, some in enumerate((names[::2], names[1::2]), start=1):
        save_file({name: kept[name] for name in some}, original / f"model-{number:05d}-of-00002.safetensors")
    (original / "config.json").write_text(json.dumps(original_config(text, str(clip))), encoding="utf-8")
    tokenizer.chat_template = None
    tokenizer.save_pretrained(original)
    return original, library, clip


def renamed(name: str) -> str:
    begin = next(each for each in ORIGINAL if name.startswith(each))
    return ORIGINAL[begin] + name.removeprefix(begin)


def original_config(text: dict[str, Any], tower: str) -> dict[str, Any]:
    return {
        **text,
        "architectures": ["LlavaMistralForCausalLM"],
        "model_type": "llava_mistral",
        "image_aspect_ratio": "pad",
        "mm_hidden_size": 32,
        "mm_projector_type": "mlp2x_gelu",
        "mm_use_im_patch_token": False,
        "mm_use_im_start_end": False,
        "mm_vision_select_feature": "patch",
        "mm_vision_select_layer": -2,
        "mm_vision_tower": tower,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "tune_mm_mlp_adapter": False,
        "unfreeze_mm_vision_tower": True,
        "use_mm_proj": True,
    }
