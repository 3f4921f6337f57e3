"""The edit `mark`: the positive control. Who can't see a disc on the picture says nothing about the picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from overread.edits.base import EditSection, Expected, NotEdited, Strength
from overread.edits.shared.controls import APART, LARGEST, drawing, questions

if TYPE_CHECKING:
    from PIL import Image

    from overread.core.records import Question
    from overread.edits.base import Below, FloatArray, Place, Scene

Share = Annotated[float, Field(ge=0, le=1)]
Shape = Literal["disc", "square", "triangle", "cross", "arrow", "ring"]
FINE = 4
"""Marks are drawn so much larger and reduced, so that their edges are smooth."""
PLATE = 1.3
"""Edge of the plate under a mark drawn at random, in diameters of the mark."""


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
    drawn: Literal["as-said", "at-random"] = Field(
        default="as-said",
        description="at-random: what, where and how many is drawn by chance for each study, and asked about",
    )
    seed: int = Field(default=0, ge=0, description="of what is drawn at random")

    @model_validator(mode="after")
    def _one_or_the_other(self) -> Self:
        if self.drawn == "as-said":
            return self
        fields = type(self).model_fields
        said = [name for name in ("shape", "letter", "at", "count") if getattr(self, name) != fields[name].default]
        if said:
            raise ValueError(f"{said[0]!r} is drawn by chance under 'drawn: at-random': leave it out")
        if self.size > LARGEST:
            raise ValueError(f"size: {self.size:g} is too large for three marks at random: at most {LARGEST:g}")
        if self.contrast == 0:
            raise ValueError("contrast: a mark of no contrast can't be asked about")
        return self

    @property
    def nothing(self) -> bool:
        return self.contrast == 0

    @property
    def what(self) -> str:
        return _named(self.letter or self.shape)

    @property
    def expected(self) -> Expected:
        return None if self.asks else self.expects

    @property
    def asks(self) -> bool:
        return self.drawn == "at-random"

    def questions(self, study: str, patient: str, *, yes_no: bool) -> list[Question]:
        colour = "white" if self.contrast > 0 else "black"
        return questions(study, patient, self.seed, colour, yes_no=yes_no)

    def words(self) -> str:
        if self.asks:
            return f"with marks drawn at random (size {self.size:g}, contrast {self.contrast:g})"
        many = f"{self.count} marks" if self.count > 1 else "a mark"
        x, y = self.at
        return f"with {many} ({self.what}, size {self.size:g}, contrast {self.contrast:g}) at {x:g}, {y:g}"

    def short(self) -> str:
        return f"marks of size {self.size:g}, contrast {self.contrast:g}" if self.asks else self.words()

    def strengths(self) -> tuple[Strength, ...]:
        return (
            Strength("size", self.size, "size of the mark, share of the shorter edge"),
            Strength("contrast", self.contrast, "contrast of the mark"),
        )

    def part(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        import numpy as np

        values = below(place)
        # What is brighter than white stays so: a mark never makes a value darker that it should make brighter.
        inside = np.clip(values, min(scene.low, scene.high), max(scene.low, scene.high))
        for layer, towards in self._layers(scene):
            drawn = np.broadcast_to(scene.across(layer, place), values.shape)
            inside = inside + (towards - inside) * abs(self.contrast) * drawn
            values = np.where(drawn > 0, inside, values)
        return values

    def _layers(self, scene: Scene) -> list[tuple[FloatArray, float]]:
        """What is drawn, (rows, columns), and which value it goes towards; the first lies lowest."""
        ends = (scene.low, scene.high) if self.contrast > 0 else (scene.high, scene.low)
        if not self.asks:
            tall, wide = extent(scene)
            step = APART * self.size * min(tall, wide) / 2 / wide
            places = [(self.at[0] + step * number, self.at[1]) for number in range(self.count)]
            return [(covered(scene, places, self.size, self.letter or self.shape), ends[1])]
        chance = drawing(scene.key[0], self.seed)
        if chance is None:
            return []
        places, figure = chance.middles(self.size), chance.letter or chance.shape or ""
        return [
            (covered(scene, places, self.size, "plate"), ends[0]), (covered(scene, places, self.size, figure), ends[1])
        ]  # fmt: skip


def _named(figure: str) -> str:
    return f"letter {figure}" if len(figure) == 1 else figure


def extent(scene: Scene) -> tuple[float, float]:
    """Height and width of the picture in units of its finer spacing."""
    finest = min(scene.spacing[scene.down], scene.spacing[scene.right])
    return (
        scene.spacing[scene.down] / finest * scene.shape[scene.down],
        scene.spacing[scene.right] / finest * scene.shape[scene.right],
    )


def covered(scene: Scene, places: list[tuple[float, float]], size: float, figure: str) -> FloatArray:
    """(rows, columns) of the picture: 1 where a figure at each of `places` is, 0 where not, shares at its edge.

    A pixel counts by its size in mm, so that a disc is round on the picture.

    figure  a shape, a letter, or a plate
    raises  NotEdited where one would reach over the edge of the picture
    """
    import numpy as np
    from PIL import Image

    tall, wide = extent(scene)
    height, width = round(tall * FINE), round(wide * FINE)
    canvas = Image.new("L", (width, height))
    radius = size * min(width, height) / 2
    for number, (across, down) in enumerate(places, start=1):
        x, y = across * width, down * height
        if not (radius <= x <= width - radius and radius <= y <= height - radius):
            raise NotEdited(f"the {_named(figure)} number {number} would reach over the edge of the picture")
        _draw(canvas, (x, y), radius, figure)
    reduced = canvas.resize((scene.width, scene.height), Image.Resampling.BOX)
    return np.asarray(reduced, dtype=np.float64) / 255


def _draw(canvas: Image.Image, middle: tuple[float, float], radius: float, figure: str) -> None:
    from PIL import ImageDraw, ImageFont

    draw = ImageDraw.Draw(canvas)
    x, y = middle

    def corners(*shares: tuple[float, float]) -> list[tuple[float, float]]:
        return [(x + a * radius, y + b * radius) for a, b in shares]

    if len(figure) == 1:
        draw.text(middle, figure, fill=255, font=ImageFont.load_default(2 * radius), anchor="mm")
    elif figure in ("disc", "ring"):
        box = corners((-1, -1), (1, 1))
        draw.ellipse(box, fill=255 if figure == "disc" else 0, outline=255, width=max(1, round(0.3 * radius)))
    elif figure == "square":
        draw.rectangle(corners((-0.85, -0.85), (0.85, 0.85)), fill=255)
    elif figure == "plate":
        draw.rectangle(corners((-PLATE, -PLATE), (PLATE, PLATE)), fill=255)
    elif figure == "triangle":
        draw.polygon(corners((0, -1), (0.95, 0.8), (-0.95, 0.8)), fill=255)
    elif figure == "cross":
        draw.rectangle(corners((-1, -0.25), (1, 0.25)), fill=255)
        draw.rectangle(corners((-0.25, -1), (0.25, 1)), fill=255)
    else:  # an arrow that points to the right of the picture
        draw.rectangle(corners((-1, -0.2), (0.2, 0.2)), fill=255)
        draw.polygon(corners((0.1, -0.7), (1, 0), (0.1, 0.7)), fill=255)
