"""The edit `mark`: the positive control. Who can't see a disc on the picture says nothing about the picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from overread.edits.base import EditSection, Expected, NotEdited, Strength

if TYPE_CHECKING:
    from PIL import Image

    from overread.edits.base import Below, FloatArray, Place, Scene

Share = Annotated[float, Field(ge=0, le=1)]
Shape = Literal["disc", "square", "triangle", "cross", "arrow", "ring"]
FINE = 4
"""Marks are drawn so much larger and reduced, so that their edges are smooth."""


class Mark(EditSection):
    """A shape or a letter drawn on the picture, of a size and a contrast."""

    kind: Literal["mark"]
    gives: ClassVar[str] = "a shape or letter drawn on the picture"
    family: ClassVar[str] = "marks"
    expects: ClassVar[Expected] = "stay"
    shape: Shape = Field(default="disc", description="what is drawn, where no letter is given")
    letter: str | None = Field(default=None, pattern="^[A-Z0-9]$", description="a capital letter or a digit")
    at: tuple[Share, Share] = Field(
        default=(0.12, 0.12), description="where its middle lies, in shares of the picture from its left and its top"
    )
    size: float = Field(default=0.15, gt=0, le=1, description="its diameter, as a share of the picture's shorter edge")
    contrast: float = Field(
        default=1.0,
        ge=-1,
        le=1,
        description="how far what lies under it goes towards white (1) or towards black (-1)",
    )
    count: int = Field(default=1, ge=1, le=9, description="how many, in a row from the first to the right")

    @property
    def nothing(self) -> bool:
        return self.contrast == 0

    @property
    def what(self) -> str:
        return f"letter {self.letter}" if self.letter is not None else self.shape

    def words(self) -> str:
        many = f"{self.count} marks" if self.count > 1 else "a mark"
        x, y = self.at
        return f"with {many} ({self.what}, size {self.size:g}, contrast {self.contrast:g}) at {x:g}, {y:g}"

    def strengths(self) -> tuple[Strength, ...]:
        return (
            Strength("size", self.size, "size of the mark, share of the shorter edge"),
            Strength("contrast", self.contrast, "contrast of the mark"),
        )

    def part(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        import numpy as np

        values = below(place)
        drawn = np.broadcast_to(scene.across(self.drawn(scene), place), values.shape)
        towards = scene.high if self.contrast > 0 else scene.low
        # What is brighter than white stays so: a mark never makes a value darker that it should make brighter.
        inside = np.clip(values, min(scene.low, scene.high), max(scene.low, scene.high))
        mixed = inside + (towards - inside) * abs(self.contrast) * drawn
        return np.where(drawn > 0, mixed, values)

    def drawn(self, scene: Scene) -> FloatArray:
        """(rows, columns) of the picture: 1 where the mark is, 0 where it is not, shares at its edge.

        A pixel counts by its size in mm, so that a disc is round on the picture.
        """
        import numpy as np
        from PIL import Image

        finest = min(scene.spacing[scene.down], scene.spacing[scene.right])
        tall, wide = (scene.spacing[axis] / finest * scene.shape[axis] for axis in (scene.down, scene.right))
        height, width = round(tall * FINE), round(wide * FINE)
        canvas = Image.new("L", (width, height))
        radius = self.size * min(width, height) / 2
        for number in range(self.count):
            x, y = self.at[0] * width + number * 2.6 * radius, self.at[1] * height
            if not (radius <= x <= width - radius and radius <= y <= height - radius):
                raise NotEdited(f"the {self.what} number {number + 1} would reach over the edge of the picture")
            self._draw(canvas, (x, y), radius)
        reduced = canvas.resize((scene.width, scene.height), Image.Resampling.BOX)
        return np.asarray(reduced, dtype=np.float64) / 255

    def _draw(self, canvas: Image.Image, middle: tuple[float, float], radius: float) -> None:
        from PIL import ImageDraw, ImageFont

        draw = ImageDraw.Draw(canvas)
        x, y = middle

        def corners(*shares: tuple[float, float]) -> list[tuple[float, float]]:
            return [(x + a * radius, y + b * radius) for a, b in shares]

        if self.letter is not None:
            draw.text(middle, self.letter, fill=255, font=ImageFont.load_default(2 * radius), anchor="mm")
        elif self.shape in ("disc", "ring"):
            box = corners((-1, -1), (1, 1))
            draw.ellipse(box, fill=255 if self.shape == "disc" else 0, outline=255, width=max(1, round(0.3 * radius)))
        elif self.shape == "square":
            draw.rectangle(corners((-0.85, -0.85), (0.85, 0.85)), fill=255)
        elif self.shape == "triangle":
            draw.polygon(corners((0, -1), (0.95, 0.8), (-0.95, 0.8)), fill=255)
        elif self.shape == "cross":
            draw.rectangle(corners((-1, -0.25), (1, 0.25)), fill=255)
            draw.rectangle(corners((-0.25, -1), (0.25, 1)), fill=255)
        else:  # an arrow that points to the right of the picture
            draw.rectangle(corners((-1, -0.2), (0.2, 0.2)), fill=255)
            draw.polygon(corners((0.1, -0.7), (1, 0), (0.1, 0.7)), fill=255)
