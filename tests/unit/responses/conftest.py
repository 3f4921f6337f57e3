"""A random Gemma 3 made tiny on the spot, a folder of pictures, and trials about them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from overread.config import Decoding, Takes, TransformersModel
from overread.records import Block, Trial

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<start_of_turn>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<start_of_image>{% else %}{{ part['text'] | trim }}{% endif %}{% endfor %}"
    "{% endif %}<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
TEXT = [
    "is there an effusion in the report ? yes no 1 2 3 4",
    "answer with yes or no . the heart is large",
    "1. left lobe",
]


def make_gemma(folder: Path, *, seed: int = 0) -> Path:
    """A folder with a random Gemma 3 of 2 layers, its tokenizer and processor. Not one of its tensors is zero."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>"]
    special += ["<end_of_image>", "<image_soft_token>"]
    words = Tokenizer(models.BPE(unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    words.train_from_iterator(
        TEXT,
        trainers.BpeTrainer(
            vocab_size=340,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    for word in ("yes", "no"):
        words.add_tokens([word])
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words,
        bos_token="<bos>",
        eos_token="<eos>",
        pad_token="<pad>",
        unk_token="<unk>",
        extra_special_tokens={
            "boi_token": "<start_of_image>",
            "eoi_token": "<end_of_image>",
            "image_token": "<image_soft_token>",
        },
        padding_side="left",
        chat_template=TEMPLATE,
    )
    config = transformers.Gemma3Config(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 16,
            "sliding_window": 16,
            "layer_types": ["sliding_attention", "full_attention"],
            "query_pre_attn_scalar": 16,
            "pad_token_id": 0,
            "eos_token_id": 1,
            "bos_token_id": 2,
            "max_position_embeddings": 512,
        },
        vision_config={
            "hidden_size": 16,
            "intermediate_size": 24,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "image_size": 28,
            "patch_size": 7,
        },
        mm_tokens_per_image=4,
        boi_token_index=tokenizer.convert_tokens_to_ids("<start_of_image>"),
        eoi_token_index=tokenizer.convert_tokens_to_ids("<end_of_image>"),
        image_token_index=tokenizer.convert_tokens_to_ids("<image_soft_token>"),
    )
    torch.manual_seed(seed)
    network = transformers.Gemma3ForConditionalGeneration(config)
    with torch.no_grad():
        for tensor in network.parameters():
            tensor.normal_(std=0.15)
    network.generation_config = transformers.GenerationConfig(eos_token_id=[1], pad_token_id=0, bos_token_id=2)
    network.save_pretrained(folder)
    pixels = transformers.Gemma3ImageProcessorPil(
        size={"height": 28, "width": 28}, image_mean=[0.5] * 3, image_std=[0.5] * 3
    )
    transformers.Gemma3Processor(
        image_processor=pixels, tokenizer=tokenizer, chat_template=TEMPLATE, image_seq_length=4
    ).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_gemma(tmp_path_factory.mktemp("gemma"))


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset's folder with four small grey pictures of noise, a black one, and nothing else."""
    import numpy as np
    from PIL import Image

    folder = tmp_path_factory.mktemp("dataset")
    draw = np.random.default_rng(0)
    for name in ("0", "1", "2", "3"):
        Image.fromarray(draw.integers(0, 255, (40, 40), dtype=np.uint8)).save(folder / f"{name}.png")
    Image.fromarray(np.zeros((40, 40), dtype=np.uint8)).save(folder / "black.png")
    return folder


def picture_block(folder: Path, name: str) -> Block:
    """An image block with the hash of the pixels, computed here."""
    from PIL import Image

    with Image.open(folder / f"{name}.png") as picture:
        head = f"{picture.mode}:{picture.width}x{picture.height}:".encode()
        return Block(role="image", image=f"{name}.png", pixels=hashlib.sha256(head + picture.tobytes()).hexdigest())


def make_trial(number: int = 0, *, images: tuple[Block, ...] = (), **changes: Any) -> Trial:
    """A trial of question `q<number>`; `changes` replace its fields."""
    question = f"Is there an effusion in study {'very ' * (number % 5)}number {number}?"
    fields: dict[str, Any] = {
        "dataset": "d",
        "setting": "s",
        "run": 1,
        "question": f"q{number}",
        "topic": "Pleural Effusion",
        "study": f"s{number}",
        "patient": f"p{number // 3}",
        "image_study": f"s{number}" if images else None,
        "image_patient": None,
        "label": "yes",
        "image_label": None,
        "options": ("yes", "no"),
        "permutation": (0, 1),
        "answer": 0,
        "readout": "yes-no",
        "restricted": False,
        "blocks": (
            *images,
            Block(role="question", text=question),
            Block(role="instruction", text="answer with yes or no ."),
        ),
    }
    return Trial(**{**fields, **changes})


def make_model(folder: Path, **changes: Any) -> TransformersModel:
    fields: dict[str, Any] = {
        "label": "tiny",
        "backend": "transformers",
        "weights": str(folder),
        "dtype": "float32",
        "takes": Takes(images=4),
        "decoding": Decoding(max_tokens=4),
        "batch": 8,
    }
    return TransformersModel(**{**fields, **changes})


Shown = Callable[[str], Block]


@pytest.fixture(scope="session")
def shown(dataset: Path) -> Shown:
    """A picture of the dataset as a block."""
    return lambda name: picture_block(dataset, name)
