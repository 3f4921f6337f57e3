"""The order of picture and text in the prompt."""

from __future__ import annotations

from typing import Literal

from overread.settings.base import Aspect, Draft


class Order(Aspect):
    """Which of them a model reads first."""

    name = "order"
    title = "the order of image and text"
    rank = 40
    weight = 40
    manner = True

    order: Literal["image-first", "text-first"] = "image-first"

    def shows_the_study(self) -> bool:
        return False

    def words(self) -> str:
        return "the text before the image" if self.order == "text-first" else "the image before the text"

    def short(self) -> str:
        return "text first" if self.order == "text-first" else ""

    def arrange(self, draft: Draft) -> None:
        if self.order == "text-first":
            draft.blocks = draft.blocks[draft.images :] + draft.blocks[: draft.images]
