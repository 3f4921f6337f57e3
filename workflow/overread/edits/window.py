"""The edit `window`: brightness and contrast as another window would show them. By one per cent it is a placebo."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from overread.edits.base import EditSection, Expected, Strength

if TYPE_CHECKING:
    from overread.edits.base import Below, FloatArray, Place, Scene


class Window(EditSection):
    """The window made wider (less contrast) or narrower (more), and moved, by shares of its width."""

    kind: Literal["window"]
    gives: ClassVar[str] = "another window over the same values"
    family: ClassVar[str] = "quality"
    expects: ClassVar[Expected] = "stay"
    wider: float = Field(default=0, gt=-100, le=1000, description="by how many per cent of its width; below 0 narrower")
    level: float = Field(
        default=0, ge=-100, le=100, description="its middle moved up by so many per cent of its width: darker"
    )

    @property
    def nothing(self) -> bool:
        return self.wider == 0 and self.level == 0

    def words(self) -> str:
        width = f"a window {abs(self.wider):g} % {'wider' if self.wider > 0 else 'narrower'}"
        level = f"its middle moved {'up' if self.level > 0 else 'down'} by {abs(self.level):g} %"
        said = [text for text, by in ((width, self.wider), (level, self.level)) if by]
        return f"shown with {' and '.join(said) or 'the same window'}"

    def strengths(self) -> tuple[Strength, ...]:
        return (
            Strength("wider", self.wider, "window wider by, %"),
            Strength("level", self.level, "window moved up by, % of its width"),
        )

    def part(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        """Values changed so that the unedited window shows them as the other window would show what was there."""
        middle = (scene.low + scene.high) / 2
        moved = middle + scene.range * self.level / 100
        return (below(place) - moved) / (1 + self.wider / 100) + middle
