"""Gemma 3 made tiny: its tokenizer, its processor and the network, with random weights."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from overread_phantom import grammar

IMAGE_SIZE, PATCH_SIZE, IMAGE_TOKENS = 64, 8, 16
VOCABULARY = 900
WORDS = ("yes", "no", "1", "2", "3", "4")
"""What the readers answer with: each is one token."""

SPECIAL = (
    "<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>",
    "<start_of_image>", "<end_of_image>", "<image_soft_token>",
)  # fmt: skip

CHAT_TEMPLATE = """\
{{ bos_token }}
{%- for message in messages -%}
{{ '<start_of_turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\\n' }}
{%- if message['content'] is string -%}{{ message['content'] | trim }}
{%- else -%}
{%- for part in message['content'] -%}
{%- if part['type'] == 'image' -%}{{ '<start_of_image>' }}{%- else -%}{{ part['text'] | trim }}{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<start_of_turn>model\\n' }}{%- endif -%}
"""


def option_phrases() -> list[str]:
    """Every option of the MRI questions: each is one token, so that it can be found in a list at one glance."""
    return list(dict.fromkeys(value.lower() for topic in grammar.TOPICS.values() for value in topic.values))


def make_tokenizer(texts: Iterable[str]) -> Any:
    """Byte-level BPE learnt from `texts`, in small letters; each digit and option phrase is a token of its own."""
    words = Tokenizer(models.BPE(unk_token="<unk>"))
    words.normalizer = normalizers.Lowercase()
    words.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    words.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    answers = [f"{word}\n" for word in WORDS] * 1000
    words.train_from_iterator([*texts, *answers], trainer)
    words.add_tokens([AddedToken(phrase, normalized=True) for phrase in option_phrases()])
    return transformers.PreTrainedTokenizerFast(
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
        chat_template=CHAT_TEMPLATE,
        model_max_length=4096,
    )


def make_processor(tokenizer: Any) -> Any:
    pictures = transformers.Gemma3ImageProcessorPil(
        size={"height": IMAGE_SIZE, "width": IMAGE_SIZE}, image_mean=[0.5] * 3, image_std=[0.5] * 3
    )
    return transformers.Gemma3Processor(
        image_processor=pictures, tokenizer=tokenizer, chat_template=CHAT_TEMPLATE, image_seq_length=IMAGE_TOKENS
    )


def make_network(tokenizer: Any, seed: int) -> transformers.Gemma3ForConditionalGeneration:
    """Random weights. The projector of pictures begins at zero, as the architecture has it."""
    logging.getLogger("transformers").setLevel(logging.ERROR)
    token = tokenizer.convert_tokens_to_ids
    config = transformers.Gemma3Config(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": 64,
            "intermediate_size": 192,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 32,
            "query_pre_attn_scalar": 32,
            "sliding_window": 1024,
            "layer_types": ["sliding_attention", "full_attention"] * 2,
            "max_position_embeddings": 4096,
            "initializer_range": 0.08,
            "pad_token_id": token("<pad>"),
            "bos_token_id": token("<bos>"),
            "eos_token_id": token("<eos>"),
        },
        vision_config={
            "hidden_size": 96,
            "intermediate_size": 192,
            "num_hidden_layers": 3,
            "num_attention_heads": 3,
            "image_size": IMAGE_SIZE,
            "patch_size": PATCH_SIZE,
        },
        mm_tokens_per_image=IMAGE_TOKENS,
        boi_token_index=token("<start_of_image>"),
        eoi_token_index=token("<end_of_image>"),
        image_token_index=token("<image_soft_token>"),
        initializer_range=0.08,
    )
    torch.manual_seed(seed)
    network = transformers.Gemma3ForConditionalGeneration(config)
    with torch.no_grad():
        # Gemma 3 brings what a layer adds to unit size: random layers would drown the words, so they begin quietly.
        for layer in network.model.language_model.layers:
            layer.post_attention_layernorm.weight.fill_(-0.75)
            layer.post_feedforward_layernorm.weight.fill_(-0.75)
        network.model.language_model.embed_tokens.weight.normal_(std=0.125)
    ends = [token("<eos>"), token("<end_of_turn>")]
    network.generation_config = transformers.GenerationConfig(
        eos_token_id=ends, pad_token_id=token("<pad>"), bos_token_id=token("<bos>")
    )
    return network
