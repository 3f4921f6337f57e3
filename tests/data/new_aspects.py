"""Two aspects of a setting that no module of Overread has heard of, as another package would bring them.

`shrink` shows a smaller rendering of the same view and tells the model's back end by how much; `greeting` begins the
prompt with a text of its own.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from overread.core.records import Block
from overread.settings.base import Aspect, Draft


class Shrink(Aspect):
    name = "shrink"
    title = "how small the image is"
    rank = 15
    qualifies = "image"

    shrink: float = Field(default=0, ge=0, lt=1, description="by what share the longer edge is shortened")

    def words(self) -> str:
        return f"shrunk by {100 * self.shrink:g} %" if self.shrink else "in its own size"

    def short(self) -> str:
        return f"shrunk by {self.shrink:g}" if self.shrink else ""

    def variant(self) -> tuple[str, dict[str, Any]] | None:
        return (f"shrunk-{self.shrink:g}", {"size": round(512 * (1 - self.shrink))}) if self.shrink else None

    def tell(self, draft: Draft) -> None:
        if self.shrink:
            draft.controls["shrink"] = f"{self.shrink:g}"


class Greeting(Aspect):
    name = "greeting"
    title = "the greeting"
    rank = 18

    greeting: str = Field(default="", description="how the prompt begins")

    def words(self) -> str:
        return f"greeted with “{self.greeting}”" if self.greeting else "no greeting"

    def short(self) -> str:
        return f"greeted with “{self.greeting}”" if self.greeting else ""

    def tell(self, draft: Draft) -> None:
        if self.greeting:
            draft.blocks.append(Block(role="instruction", text=self.greeting))
