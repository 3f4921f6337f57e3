"""What a model wrote, without what stands around it: thoughts, special tokens, markup, other scripts' digits."""

from __future__ import annotations

import re
import unicodedata

_THOUGHT_TAGS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<unused94>", "<unused95>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
)
_THOUGHT = re.compile(
    "|".join(rf"{re.escape(begin)}.*?(?:{re.escape(end)}|$)" for begin, end in _THOUGHT_TAGS), re.DOTALL | re.IGNORECASE
)
_THOUGHT_END = re.compile("|".join(re.escape(end) for _, end in _THOUGHT_TAGS), re.IGNORECASE)
_CHANNEL = re.compile(r"<\|channel\|>\s*final\s*<\|message\|>")
_END_TOKEN = re.compile(
    r"<\|(?:im_end|eot_id|end|endoftext|end_of_text|return|eom_id)\|>|</s>|<end_of_turn>|<eos>|<\|end_of_sentence\|>"
)
_BOXED = re.compile(r"\\f?boxed\s*\{")
_STYLED = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathsf|mbox|bf)\s*\{([^{}]*)\}")
_TAGGED = re.compile(r"<(/?)(?:answer|final_answer|choice|output)\s*>")
_MARKUP = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)|\$+|\\[()\[\]]|</?(?:b|i|strong|em|p|br)\s*/?>")
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛", "'"),
        **dict.fromkeys("“”„‟«»「」『』", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("→➔➜⇒", ">"),
        **dict.fromkeys("【〔", "("),
        **dict.fromkeys("】〕", ")"),
        "。": ". ",
        "、": ", ",
        "×": "x",
        "✕": "x",
        "\ufe0f": "",  # variation selector and keycap of an emoji digit
        "\u20e3": "",
        "\u200b": "",
    }
)


def spoken(text: str) -> str:
    """The text without its thoughts, up to the first end token.

    A thought that never ends takes the rest with it. One whose beginning stood in the prompt is known by its end.
    """
    final = list(_CHANNEL.finditer(text))
    if final:
        text = text[final[-1].end() :]
    text = _THOUGHT.sub("", text)
    ends = list(_THOUGHT_END.finditer(text))
    if ends:
        text = text[ends[-1].end() :]
    end = _END_TOKEN.search(text)
    return text[: end.start()] if end else text


def plain(text: str) -> str:
    """Small letters, plain quotes, dashes and digits, no Markdown or LaTeX.

    A LaTeX box, and an element of XML that holds an answer, become a line `boxed: ...`.
    """
    text = unicodedata.normalize("NFKC", text.translate(_SIGNS)).translate(_SIGNS).casefold()
    text = _TAGGED.sub(lambda tag: "\n" if tag[1] else "\nboxed: ", text)
    return _MARKUP.sub("", _unboxed(text)).strip()


def _unboxed(text: str) -> str:
    opened = {box.end() for box in _BOXED.finditer(text)}
    if opened:
        text = _lines_of_boxes(text, opened)
    previous = ""
    while previous != text:
        previous, text = text, _STYLED.sub(r"\1", text)
    return text


def _lines_of_boxes(text: str, opened: set[int]) -> str:
    """`opened`: where the boxes' contents begin. A box that is not closed ends with the text."""
    parts, boxes = [], []  # boxes: of each open brace, whether it is a box's
    for place, sign in enumerate(text):
        if sign == "{":
            boxes.append(place + 1 in opened)
            parts.append("\nboxed: " if boxes[-1] else sign)
        elif sign == "}" and boxes:
            parts.append("\n" if boxes.pop() else sign)
        else:
            parts.append(sign)
    return re.sub(r"\\f?boxed\s*\n", "\n", "".join(parts))
