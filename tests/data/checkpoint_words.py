"""Tokenizers and chat templates for the checkpoints that tests make: BPE learnt on the spot, the true special tokens.

Two styles. Qwen's works on bytes, with a regular expression for words. Gemma's and LLaVA's (SentencePiece) write a
space as U+2581 and fall back to bytes; LLaVA's puts one before the text. Digits stand alone in both.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

TEXT = (
    "Is there an effusion in the report? Is there evidence of pneumothorax, consolidation or oedema in this image?",
    "Report:\nFindings: The heart is large. No pleural effusion is seen. The lungs are clear.\nImpression: normal.",
    "Options:\n1) left lobe\n2) right lobe\n3) the heart\n4) none of these",
    "Reply with one word, Yes or No. Reply with the number of the correct option, from 1 to 4, and nothing else.",
    "answer with yes or no . the heart is large very very very number 0 1 2 3 4 5 6 7 8 9",
    "You are a helpful assistant. user\n assistant\n model\n USER: ASSISTANT: SLICE 1 SLICE 2",
    *["Yes\n\nNo\n\n"] * 5,
    *(["yes no Yes No", "yes", "no", "Yes", "No", "(yes) (no)"] * 20),
)

GEMMA_SPECIAL = (
    "<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<end_of_image>",
    "<image_soft_token>", "<unused94>", "<unused95>",
)  # fmt: skip
LLAVA_SPECIAL = ("<unk>", "<s>", "</s>", "<image>", "<pad>")
QWEN_SPECIAL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>", "<think>", "</think>",
)  # fmt: skip

_QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

GEMMA_TEMPLATE = """\
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

QWEN_VL_TEMPLATE = """\
{%- for message in messages -%}
{%- if loop.first and message['role'] != 'system' -%}
{{ '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}
{%- endif -%}
{{ '<|im_start|>' + message['role'] + '\\n' }}
{%- if message['content'] is string -%}{{ message['content'] }}
{%- else -%}
{%- for part in message['content'] -%}
{%- if part['type'] == 'image' -%}{{ '<|vision_start|><|image_pad|><|vision_end|>' }}
{%- else -%}{{ part['text'] }}{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{ '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}
"""

QWEN_THINKING_TEMPLATE = """\
{%- for message in messages -%}
{{ '<|im_start|>' + message['role'] + '\\n' }}
{%- if message['role'] == 'assistant' and loop.last -%}{{ '<think>\\n\\n</think>\\n\\n' }}{%- endif -%}
{%- if message['content'] is string -%}{{ message['content'] }}
{%- else -%}
{%- for part in message['content'] -%}
{%- if part['type'] == 'image' -%}{{ '<|vision_start|><|image_pad|><|vision_end|>' }}
{%- else -%}{{ part['text'] }}{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{ '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false -%}{{ '<think>\\n\\n</think>\\n\\n' }}{%- endif -%}
{%- endif -%}
"""
"""Qwen3 and Qwen3.5: an answer without thinking begins with an empty thought."""

_LLAVA_PARTS = """\
{%- for part in message['content'] | selectattr('type', 'equalto', 'image') -%}{{ '<image>\\n' }}{%- endfor -%}
{%- for part in message['content'] | selectattr('type', 'equalto', 'text') -%}
{{ part['text'] + TAIL }}{%- endfor -%}"""

LLAVA_TEMPLATE = (
    "{%- for message in messages -%}{{ message['role'].upper() + ': ' }}"
    + _LLAVA_PARTS.replace("TAIL", "' '")
    + "{%- endfor -%}{%- if add_generation_prompt -%}{{ 'ASSISTANT:' }}{%- endif -%}"
)
"""As on the hub: all pictures stand before all texts, whatever the order of the content."""

LLAVA_NEXT_TEMPLATE = (
    "{%- for message in messages -%}{%- if message['role'] == 'user' -%}{{ '[INST] ' }}"
    + _LLAVA_PARTS.replace("TAIL", "''")
    + "{{ ' [/INST]' }}{%- else -%}{{ ' ' }}"
    + _LLAVA_PARTS.replace("TAIL", "''")
    + "{{ '</s>' }}{%- endif -%}{%- endfor -%}"
)


def bytes_tokenizer(special: Sequence[str], *, vocabulary: int, template: str | None, texts: Sequence[str] = ()) -> Any:
    """Qwen's style."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.BPE())
    words.normalizer = normalizers.NFC()
    words.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_QWEN_WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    words.decoder = decoders.ByteLevel()
    words.train_from_iterator(
        [*TEXT, *texts],
        trainers.BpeTrainer(
            vocab_size=vocabulary,
            special_tokens=list(special),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        extra_special_tokens={"image_token": "<|image_pad|>", "video_token": "<|video_pad|>"},
        padding_side="left",
        chat_template=template,
        model_max_length=4096,
    )


def pieces_tokenizer(
    special: Sequence[str],
    *,
    vocabulary: int,
    template: str,
    leading_space: bool,
    roles: dict[str, Any],
    texts: Sequence[str] = (),
) -> Any:
    """SentencePiece's style: Gemma's, or with `leading_space` Llama's and Mistral's, which put `<s>` before the text.

    roles   keyword arguments of the tokenizer: which token is what
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    byte_tokens = [f"<0x{value:02X}>" for value in range(256)]
    learnt = Tokenizer(models.BPE())
    learnt.normalizer = normalizers.Replace(" ", "▁")
    learnt.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split("▁", behavior="merged_with_next"),
            pre_tokenizers.Split("\n", behavior="isolated"),
            pre_tokenizers.Punctuation(),
            pre_tokenizers.Digits(individual_digits=True),
        ]
    )
    learnt.train_from_iterator(
        [*TEXT, *texts, *(f" {line}" for line in TEXT), *(chr(code) for code in range(33, 127))],
        trainers.BpeTrainer(vocab_size=vocabulary - len(special) - 256, show_progress=False),
    )
    model = json.loads(learnt.to_str())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
    vocab = {piece: place for place, piece in enumerate([*special, *byte_tokens, *pieces])}
    merges = [tuple(each) if isinstance(each, list) else tuple(each.split(" ")) for each in model["merges"]]
    words = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    replace = normalizers.Replace(" ", "▁")
    words.normalizer = (
        normalizers.Sequence([normalizers.Prepend("▁"), replace]) if leading_space else normalizers.Sequence([replace])
    )
    undo = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    words.decoder = decoders.Sequence([*undo, decoders.Strip(" ", 1, 0)] if leading_space else undo)
    words.add_special_tokens(list(special))
    if leading_space:
        words.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", special.index("<s>"))]
        )
    else:
        # In Gemma's vocabulary runs of line breaks are tokens.
        words.add_tokens(["\n" * count for count in range(1, 5)])
    return PreTrainedTokenizerFast(
        tokenizer_object=words, padding_side="left", chat_template=template, model_max_length=4096, **roles
    )


def clip_tokenizer(*, vocabulary: int, texts: Sequence[str] = ()) -> Any:
    """CLIP's: small letters, BPE with an end-of-word mark, begin and end tokens, 77 at most."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<|startoftext|>", "<|endoftext|>"]
    words = Tokenizer(models.BPE(unk_token="<|endoftext|>", continuing_subword_prefix="", end_of_word_suffix="</w>"))
    words.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    words.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    words.decoder = decoders.ByteLevel()
    words.train_from_iterator(
        [*TEXT, *texts],
        trainers.BpeTrainer(
            vocab_size=vocabulary,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            end_of_word_suffix="</w>",
            show_progress=False,
        ),
    )
    words.post_processor = processors.TemplateProcessing(
        single=f"{special[0]} $A {special[1]}", special_tokens=[(each, words.token_to_id(each)) for each in special]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=words, bos_token="<|startoftext|>", eos_token="<|endoftext|>", pad_token="<|endoftext|>",
        unk_token="<|endoftext|>", model_max_length=77,
    )  # fmt: skip


def siglip_tokenizer(*, vocabulary: int, length: int, texts: Sequence[str] = ()) -> Any:
    """SigLIP's: small letters without punctuation, `</s>` at the end and as padding."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.Unigram())
    words.normalizer = normalizers.Sequence(
        [normalizers.Lowercase(), normalizers.Replace(Regex(r"[!-/:-@\[-`{-~]"), ""), normalizers.Strip()]
    )
    words.pre_tokenizer = pre_tokenizers.Metaspace()
    words.decoder = decoders.Metaspace()
    words.train_from_iterator(
        [*TEXT, *texts],
        trainers.UnigramTrainer(
            vocab_size=vocabulary, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
        ),
    )
    words.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=words, eos_token="</s>", pad_token="</s>", unk_token="<unk>", model_max_length=length
    )
