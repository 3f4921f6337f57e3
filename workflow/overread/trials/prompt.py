"""The blocks of a prompt, from the templates of `resources/prompts` or a study's own folder.

Each text block is one template; a template that renders to nothing gives no block. The order of blocks is part of the
trial and is never changed for speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from overread.core import resources
from overread.core.errors import BadInput
from overread.core.records import Block, Picture, Question, Role

OWN_PROMPTS = resources.PROMPTS
"""The templates that come with Overread."""


class Prompts:
    """The templates of folders: one in an earlier folder goes before its namesakes in later ones.

    BadInput for a template that is missing or can't be rendered.
    """

    def __init__(self, *folders: Path) -> None:
        self.folders = folders or (OWN_PROMPTS,)
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(self.folders),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,  # a prompt is plain text
        )

    def text(self, role: Role, template: str, **values: Any) -> list[Block]:
        try:
            text = self._templates.get_template(f"{template}.j2").render(values).strip()
        except jinja2.TemplateNotFound as missing:
            raise BadInput(self._not_there(missing.name, template)) from None
        except jinja2.TemplateError as error:
            raise BadInput(f"{self.file(template)}: {error}") from None
        return [Block(role=role, text=text)] if text else []

    def file(self, template: str) -> Path:
        """Where a template lies, or would have to lie."""
        files = [folder / f"{template}.j2" for folder in self.folders]
        return next((file for file in files if file.is_file()), files[0])

    def _not_there(self, missing: object, template: str) -> str:
        if missing != f"{template}.j2":
            return f"{self.file(template)}: takes in {missing!r}, and there is no such template"
        return f"{self.file(template)}: no such prompt template"


def image_blocks(pictures: Sequence[Picture], prompts: Prompts) -> list[Block]:
    """The blocks of pictures as shown (own, a substitute's, black ones), in order.

    More than one are captioned with their names, each before or after its picture as the view says.
    """
    images: list[Block] = []
    for picture in pictures:
        image = [Block(role="image", image=picture.path, pixels=picture.pixels)]
        caption = prompts.text("caption", "caption", picture=picture) if len(pictures) > 1 else []
        images += caption + image if picture.caption == "before" else image + caption
    return images


def option_texts(question: Question, options: Sequence[str], prompts: Prompts) -> list[Block]:
    """A block of role `options` for each option, in the order shown: the very texts that are embedded.

    raises   BadInput if the template gives an option no text, or two options the same one
    """
    texts = [
        block for option in options for block in prompts.text("options", "similarity", question=question, option=option)
    ]
    if len({block.text for block in texts}) < len(options):
        raise BadInput(
            f"{prompts.file('similarity')}: the options {list(options)} do not each get a text of their own; "
            "the template has to hold {{ option }}"
        )
    return texts
