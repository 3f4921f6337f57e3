"""Small checkpoints in the shape of Med3DVLM's repository: Qwen2 with code of its own for a volume.

The code stands in the folder and is named by `auto_map`, as in the real one. It puts the volume's vectors from a fixed
row on over whatever stands there, after one row for the begin token that its first language model had and Qwen has not.
"""

from __future__ import annotations

import json
from pathlib import Path

from data import checkpoint_words as words
from data.checkpoints import Size, _draw

MODULE = "modeling_vlm"
CODE = """
import torch
from torch import nn
from transformers import Qwen2Config, Qwen2ForCausalLM


class VLMQwenConfig(Qwen2Config):
    model_type = "vlm_qwen"
    proj_out_num: int = 256
    channels: int = 6


class Tower(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.grid = (config.proj_out_num // 64, 8, 8)
        self.widen = nn.Linear(4, config.channels)

    def forward(self, images):
        mean = nn.functional.adaptive_avg_pool3d(images, self.grid)
        peak = nn.functional.adaptive_max_pool3d(images[:, :, ::4, ::4, ::4], self.grid)
        cells = [mean, peak, mean * peak, mean**2]
        return self.widen(torch.cat(cells, dim=1).flatten(2).transpose(1, 2))


class VLMQwenForCausalLM(Qwen2ForCausalLM):
    config_class = VLMQwenConfig

    def __init__(self, config):
        super().__init__(config)
        self.vision_tower = Tower(config)
        self.mm_projector = nn.Linear(config.channels, config.hidden_size)
        self.post_init()

    def get_model(self):
        return self.model

    def encode_images(self, images):
        return self.mm_projector(self.vision_tower(images))

    def prepare_inputs_for_multimodal(self, input_ids, position_ids, attention_mask, past_key_values, labels, images):
        if images is None:
            return input_ids, position_ids, attention_mask, past_key_values, None, labels
        features = self.encode_images(images)
        vectors = self.get_model().embed_tokens(input_ids)
        vectors = torch.cat([vectors[:, :FIRST], features, vectors[:, FIRST + features.shape[1]:]], dim=1)
        return None, position_ids, attention_mask, past_key_values, vectors, labels

    @torch.no_grad()
    def generate(self, images=None, inputs=None, **kwargs):
        if "inputs_embeds" in kwargs:
            raise NotImplementedError("inputs_embeds is not supported")
        _, _, _, _, vectors, _ = self.prepare_inputs_for_multimodal(inputs, None, None, None, None, images)
        return super().generate(inputs_embeds=vectors, **kwargs)
"""
LETTERS = ("A", "B", "C", "D", "E")


def make_med3dvlm(folder: Path, *, seed: int = 0, first: int = 1, begin_token: bool = False) -> Path:
    """A checkpoint whose code puts the volume's vectors in from row `first` on.

    begin_token   whether the tokenizer puts a begin token before a text, as Llama's does
    """
    import torch
    import transformers
    from tokenizers import processors
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    transformers.logging.set_verbosity_error()
    tokenizer = words.bytes_tokenizer(
        ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|image_pad|>", "<|video_pad|>", "<im_patch>"),
        vocabulary=640,
        template=None,
    )
    tokenizer.add_tokens([f" {letter}" for letter in LETTERS] + [" yes", " no"])
    if begin_token:
        backend = tokenizer.backend_tokenizer
        backend.post_processor = processors.TemplateProcessing(
            single="<|im_start|> $A", special_tokens=[("<|im_start|>", tokenizer.convert_tokens_to_ids("<|im_start|>"))]
        )
    size = Size()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{MODULE}.py").write_text(CODE.replace("FIRST", str(first)), encoding="utf-8")
    config_class = get_class_from_dynamic_module(f"{MODULE}.VLMQwenConfig", str(folder))
    network_class = get_class_from_dynamic_module(f"{MODULE}.VLMQwenForCausalLM", str(folder))
    config = config_class(**size.text(tokenizer), proj_out_num=256)
    torch.manual_seed(seed)
    network = network_class(config)
    _draw(network, seed)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    written = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    written["auto_map"] = {
        "AutoConfig": f"{MODULE}.VLMQwenConfig",
        "AutoModelForCausalLM": f"{MODULE}.VLMQwenForCausalLM",
    }
    (folder / "config.json").write_text(json.dumps(written), encoding="utf-8")
    return folder
