"""The blocks of a prompt, from the templates of `config/prompts`.

Each text block is one template; a template that renders to nothing gives no block. The order of blocks is part of the
trial and is never changed for speed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from overread.config import Setting
from overread.errors import BadInput
from overread.records import Block, Picture, Question, Role

OWN_PROMPTS = Path(__file__).resolve().parents[3] / "config" / "prompts"
"""The templates that come with Overread."""


class Prompts:
    """The templates of a folder. BadInput for one that is missing or can't be rendered."""

    def __init__(self, folder: Path = OWN_PROMPTS) -> None:
        self.folder = folder
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(folder),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,  # a prompt is plain text
        )

    def text(self, role: Role, template: str, **values: Any) -> list[Block]:
        try:
            text = self._templates.get_template(f"{template}.j2").render(values).strip()
        except jinja2.TemplateNotFound:
            raise BadInput(f"{self.folder / template}.j2: no such prompt template") from None
        except jinja2.TemplateError as error:
            raise BadInput(f"{self.folder / template}.j2: {error}") from None
        return [Block(role=role, text=text)] if text else []


def blocks(
    setting: Setting,
    question: Question,
    options: Sequence[str],
    pictures: Sequence[Picture],
    report: Mapping[str, str],
    prompts: Prompts,
) -> tuple[Block, ...]:
    """A trial's blocks, in order.

    options   as shown
    pictures  as shown (own, a substitute's, black ones); more than one are captioned with their names
    report    text by section, as shown; empty for none

    image-first: pictures, report, warning, question, options, instruction; text-first: the pictures come last.
    The options are listed only under the readout `choice`: yes and no need no list.
    """
    images: list[Block] = []
    for picture in pictures:
        if len(pictures) > 1:
            images += prompts.text("caption", "caption", picture=picture)
        images.append(Block(role="image", image=picture.path, pixels=picture.pixels))
    text: list[Block] = []
    if report:
        text += prompts.text("report", "report", sections=dict(report))
    if setting.warning:
        text += prompts.text("instruction", "warning")
    text += prompts.text("question", "question", question=question)
    if setting.readout == "choice":
        text += prompts.text("options", "options", options=list(options))
    text += prompts.text("instruction", f"instruction-{setting.readout}", question=question, options=list(options))
    return tuple(images + text if setting.order == "image-first" else text + images)
