"""Small random checkpoints of the true architectures, made on the spot: weights, tokenizer, processor, chat template.

    make_checkpoint("gemma3", tmp_path / "gemma")        # a folder that Auto* load as they load the real one

Weights are drawn so that every part matters: no tensor is zero, and the logits are far from flat.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from data import checkpoint_words as words


class Size(NamedTuple):
    """Width and depth.

    image_tokens  what a square picture costs; LLaVA-NeXT adds its tiles
    texts         what the tokenizer is to know besides `checkpoint_words.TEXT`
    """

    hidden: int = 64
    layers: int = 2
    heads: int = 2
    vision_hidden: int = 32
    vision_layers: int = 2
    image_tokens: int = 4
    sliding_window: int = 16
    vocabulary: int = 640
    texts: tuple[str, ...] = ()

    @property
    def head_dim(self) -> int:
        return self.hidden // self.heads

    @property
    def side(self) -> int:
        """Image tokens along one edge of a square picture."""
        return math.isqrt(self.image_tokens)

    def text(self, tokenizer: Any) -> dict[str, Any]:
        return {
            "vocab_size": len(tokenizer),
            "hidden_size": self.hidden,
            "intermediate_size": 2 * self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.heads // 2,
            "max_position_embeddings": 4096,
            "pad_token_id": tokenizer.pad_token_id,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
        }

    def vision(self) -> dict[str, Any]:
        """CLIP's and SigLIP's names."""
        return {
            "hidden_size": self.vision_hidden,
            "intermediate_size": 2 * self.vision_hidden,
            "num_hidden_layers": self.vision_layers,
            "num_attention_heads": 2,
        }


def make_checkpoint(kind: str, folder: Path, *, seed: int = 0, **size: Any) -> Path:
    """Make a checkpoint in `folder` and return it. The same arguments give the same bytes.

    kind   one of KINDS
    size   fields of `Size`; `image_tokens` has to be a square number
    """
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    measures = Size(**{**({"layers": 4} if kind == "qwen3.5" else {}), **size})
    if measures.side**2 != measures.image_tokens:
        raise ValueError(f"image_tokens {measures.image_tokens} is no square number")
    processor, config, network_class, ends = KINDS[kind](measures)
    torch.manual_seed(seed)
    network = network_class(config)
    _draw(network, seed)
    if ends:
        network.generation_config = transformers.GenerationConfig(
            eos_token_id=ends, pad_token_id=getattr(processor, "tokenizer", processor).pad_token_id
        )
    network.save_pretrained(folder)
    processor.save_pretrained(folder)
    _name_as_on_the_hub(folder / "model.safetensors")
    return folder


def _name_as_on_the_hub(weights: Path) -> None:
    """The library writes the vision tower's tensors under a shorter name than the published files have."""
    from safetensors import safe_open
    from safetensors.torch import save_file

    with safe_open(weights, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    short, long = "vision_tower.", "vision_tower.vision_model."
    if not any(name.startswith(short) and not name.startswith(long) for name in tensors):
        return
    renamed = {
        long + name.removeprefix(short) if name.startswith(short) else name: each for name, each in tensors.items()
    }
    save_file(renamed, weights, metadata={"format": "pt"})


def _draw(network: Any, seed: int) -> None:
    """Weights of a size that keeps what flows through a layer near 1; norms and biases near what they begin as."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in network.parameters():
            noise = torch.empty_like(tensor).normal_(generator=generator)
            if tensor.dim() < 2:
                tensor.add_(0.15 * noise)
            else:
                tensor.copy_(noise * (1.2 / math.sqrt(tensor[0].numel())))


Made = tuple[Any, Any, Any, list[int]]


def _gemma3(size: Size) -> Made:
    import transformers

    tokenizer = words.pieces_tokenizer(
        words.GEMMA_SPECIAL,
        vocabulary=size.vocabulary,
        texts=size.texts,
        template=words.GEMMA_TEMPLATE,
        leading_space=False,
        roles={
            "bos_token": "<bos>",
            "eos_token": "<eos>",
            "pad_token": "<pad>",
            "unk_token": "<unk>",
            "extra_special_tokens": {
                "boi_token": "<start_of_image>",
                "eoi_token": "<end_of_image>",
                "image_token": "<image_soft_token>",
            },
        },
    )
    token = tokenizer.convert_tokens_to_ids
    edge = 2 * 14 * size.side  # the projector pools 2 x 2 patches
    config = transformers.Gemma3Config(
        text_config={
            **size.text(tokenizer),
            "head_dim": size.head_dim,
            "query_pre_attn_scalar": size.head_dim,
            "sliding_window": size.sliding_window,
            "layer_types": ["full_attention" if n % 2 else "sliding_attention" for n in range(size.layers)],
        },
        vision_config={**size.vision(), "image_size": edge, "patch_size": 14},
        mm_tokens_per_image=size.image_tokens,
        boi_token_index=token("<start_of_image>"),
        eoi_token_index=token("<end_of_image>"),
        image_token_index=token("<image_soft_token>"),
    )
    pixels = transformers.Gemma3ImageProcessorPil(
        size={"height": edge, "width": edge}, image_mean=[0.5] * 3, image_std=[0.5] * 3
    )
    processor = transformers.Gemma3Processor(
        image_processor=pixels,
        tokenizer=tokenizer,
        chat_template=words.GEMMA_TEMPLATE,
        image_seq_length=size.image_tokens,
    )
    return processor, config, transformers.Gemma3ForConditionalGeneration, [token("<eos>"), token("<end_of_turn>")]


def _qwen2_5_vl(size: Size) -> Made:
    import transformers

    tokenizer = words.bytes_tokenizer(
        words.QWEN_SPECIAL[:-2], vocabulary=size.vocabulary, texts=size.texts, template=words.QWEN_VL_TEMPLATE
    )
    token = tokenizer.convert_tokens_to_ids
    half = size.head_dim // 2
    config = transformers.Qwen2_5_VLConfig(
        text_config={
            **size.text(tokenizer),
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 1e6,
                "mrope_section": [half - 2 * (3 * half // 8), 3 * half // 8, 3 * half // 8],
            },
        },
        vision_config={
            "depth": size.vision_layers,
            "hidden_size": size.vision_hidden,
            "intermediate_size": 2 * size.vision_hidden,
            "num_heads": 2,
            "patch_size": 14,
            "window_size": 112,
            "fullatt_block_indexes": [size.vision_layers - 1],
            "out_hidden_size": size.hidden,
        },
        **_qwen_tokens(token),
    )
    processor = transformers.Qwen2_5_VLProcessor(
        **_qwen_pixels(size, patch=14), tokenizer=tokenizer, chat_template=words.QWEN_VL_TEMPLATE
    )
    ends = [token("<|im_end|>"), token("<|endoftext|>")]
    return processor, config, transformers.Qwen2_5_VLForConditionalGeneration, ends


def _qwen3_5(size: Size) -> Made:
    import transformers

    tokenizer = words.bytes_tokenizer(
        words.QWEN_SPECIAL, vocabulary=size.vocabulary, texts=size.texts, template=words.QWEN_THINKING_TEMPLATE
    )
    token = tokenizer.convert_tokens_to_ids
    quarter = size.head_dim // 8  # a quarter of the head's dimensions turn, in pairs
    third = max(1, quarter // 3)
    config = transformers.Qwen3_5Config(
        text_config={
            **size.text(tokenizer),
            "head_dim": size.head_dim,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
            "linear_num_key_heads": size.heads,
            "linear_num_value_heads": 2 * size.heads,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 1e7,
                "partial_rotary_factor": 0.25,
                "mrope_interleaved": True,
                "mrope_section": [quarter - 2 * third, third, third],
            },
        },
        vision_config={
            "depth": size.vision_layers,
            "hidden_size": size.vision_hidden,
            "intermediate_size": 2 * size.vision_hidden,
            "num_heads": 2,
            "patch_size": 16,
            "num_position_embeddings": 64,
            "out_hidden_size": size.hidden,
        },
        **_qwen_tokens(token),
    )
    processor = transformers.Qwen3VLProcessor(
        **_qwen_pixels(size, patch=16, video="Qwen3VLVideoProcessor"),
        tokenizer=tokenizer,
        chat_template=words.QWEN_THINKING_TEMPLATE,
    )
    ends = [token("<|im_end|>"), token("<|endoftext|>")]
    return processor, config, transformers.Qwen3_5ForConditionalGeneration, ends


def _qwen_tokens(token: Callable[[str], int]) -> dict[str, int]:
    names = {"image_token_id": "<|image_pad|>", "video_token_id": "<|video_pad|>"}
    names |= {"vision_start_token_id": "<|vision_start|>", "vision_end_token_id": "<|vision_end|>"}
    return {name: token(text) for name, text in names.items()}


def _qwen_pixels(size: Size, *, patch: int, video: str = "Qwen2VLVideoProcessor") -> dict[str, Any]:
    import transformers

    area = (2 * patch) ** 2  # pixels of one image token
    limits = {"shortest_edge": min(4, size.image_tokens) * area, "longest_edge": size.image_tokens * area}
    return {
        "image_processor": transformers.Qwen2VLImageProcessorPil(patch_size=patch, size=limits),
        "video_processor": getattr(transformers, video)(patch_size=patch),
    }


def _qwen3(size: Size) -> Made:
    import transformers

    tokenizer = words.bytes_tokenizer(
        words.QWEN_SPECIAL, vocabulary=size.vocabulary, texts=size.texts, template=words.QWEN_THINKING_TEMPLATE
    )
    token = tokenizer.convert_tokens_to_ids
    config = transformers.Qwen3Config(**size.text(tokenizer), head_dim=size.head_dim)
    return tokenizer, config, transformers.Qwen3ForCausalLM, [token("<|im_end|>"), token("<|endoftext|>")]


def _llava_tokenizer(size: Size, template: str) -> Any:
    return words.pieces_tokenizer(
        words.LLAVA_SPECIAL,
        vocabulary=size.vocabulary,
        texts=size.texts,
        template=template,
        leading_space=True,
        roles={
            "bos_token": "<s>",
            "eos_token": "</s>",
            "unk_token": "<unk>",
            "pad_token": "<pad>",
            "extra_special_tokens": {"image_token": "<image>"},
        },
    )


def _llava_parts(size: Size, tokenizer: Any, language: str) -> dict[str, Any]:
    """What LLaVA's and LLaVA-NeXT's configurations share: CLIP's next to last layer, without its class token."""
    return {
        "text_config": {"model_type": language, **size.text(tokenizer), "head_dim": size.head_dim},
        "vision_config": {
            "model_type": "clip_vision_model",
            **size.vision(),
            "image_size": 14 * size.side,
            "patch_size": 14,
            "projection_dim": size.vision_hidden,
        },
        "image_token_index": tokenizer.convert_tokens_to_ids("<image>"),
        "vision_feature_layer": -2,
        "vision_feature_select_strategy": "default",
        "image_seq_length": size.image_tokens,
    }


_LLAVA_PROCESSOR = {"patch_size": 14, "vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}


def _llava(size: Size) -> Made:
    import transformers

    tokenizer = _llava_tokenizer(size, words.LLAVA_TEMPLATE)
    edge = 14 * size.side
    processor = transformers.LlavaProcessor(
        image_processor=transformers.CLIPImageProcessorPil(
            size={"shortest_edge": edge}, crop_size={"height": edge, "width": edge}
        ),
        tokenizer=tokenizer,
        chat_template=words.LLAVA_TEMPLATE,
        **_LLAVA_PROCESSOR,
    )
    config = transformers.LlavaConfig(**_llava_parts(size, tokenizer, "llama"))
    return processor, config, transformers.LlavaForConditionalGeneration, [tokenizer.eos_token_id]


def _llava_next(size: Size) -> Made:
    import transformers

    tokenizer = _llava_tokenizer(size, words.LLAVA_NEXT_TEMPLATE)
    edge = 14 * size.side
    tiles = [[edge, 2 * edge], [2 * edge, edge], [2 * edge, 2 * edge], [3 * edge, edge], [edge, 3 * edge]]
    processor = transformers.LlavaNextProcessor(
        image_processor=transformers.LlavaNextImageProcessorPil(
            size={"shortest_edge": edge}, crop_size={"height": edge, "width": edge}, image_grid_pinpoints=tiles
        ),
        tokenizer=tokenizer,
        chat_template=words.LLAVA_NEXT_TEMPLATE,
        **_LLAVA_PROCESSOR,
    )
    parts = _llava_parts(size, tokenizer, "mistral")
    parts["text_config"]["sliding_window"] = None
    config = transformers.LlavaNextConfig(**parts, image_grid_pinpoints=tiles, use_image_newline_parameter=True)
    return processor, config, transformers.LlavaNextForConditionalGeneration, [tokenizer.eos_token_id]


def _clip(size: Size) -> Made:
    import transformers

    tokenizer = words.clip_tokenizer(vocabulary=size.vocabulary, texts=size.texts)
    edge = 14 * size.side
    config = transformers.CLIPConfig(
        text_config={**size.text(tokenizer), "num_key_value_heads": size.heads, "max_position_embeddings": 77},
        vision_config={**size.vision(), "image_size": edge, "patch_size": 14},
        projection_dim=size.vision_hidden,
    )
    processor = transformers.CLIPProcessor(
        image_processor=transformers.CLIPImageProcessorPil(
            size={"shortest_edge": edge}, crop_size={"height": edge, "width": edge}
        ),
        tokenizer=tokenizer,
    )
    return processor, config, transformers.CLIPModel, []


def _siglip(size: Size) -> Made:
    import transformers

    tokenizer = words.siglip_tokenizer(vocabulary=size.vocabulary, texts=size.texts, length=64)
    edge = 14 * size.side
    # Texts and pictures meet without a projection, so both parts are equally wide.
    config = transformers.SiglipConfig(
        text_config={**size.text(tokenizer), "max_position_embeddings": 64, "projection_size": size.hidden},
        vision_config={
            **size.vision(),
            "hidden_size": size.hidden,
            "intermediate_size": 2 * size.hidden,
            "image_size": edge,
            "patch_size": 14,
        },
    )
    processor = transformers.SiglipProcessor(
        image_processor=transformers.SiglipImageProcessorPil(size={"height": edge, "width": edge}),
        tokenizer=tokenizer,
    )
    return processor, config, transformers.SiglipModel, []


KINDS: dict[str, Callable[[Size], Made]] = {
    "gemma3": _gemma3,
    "qwen2.5-vl": _qwen2_5_vl,
    "llava-next": _llava_next,
    "llava": _llava,
    "qwen3": _qwen3,
    "qwen3.5": _qwen3_5,
    "clip": _clip,
    "siglip": _siglip,
}
