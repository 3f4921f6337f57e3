"""The edit `occlude`: a box of the picture covered. A grid of them, a setting per cell, maps what answers depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from overread.edits.base import EditSection

if TYPE_CHECKING:
    from overread.edits.base import Below, BoolArray, FloatArray, Place, Scene

Share = Annotated[float, Field(ge=0, le=1)]


class Occlude(EditSection):
    """A box filled with one grey, given in shares of the picture, or as a cell of a grid over it."""

    kind: Literal["occlude"]
    gives: ClassVar[str] = "a box covered with one grey"
    family: ClassVar[str] = "occlusion"
    box: tuple[Share, Share, Share, Share] | None = Field(
        default=None, description="left, top, right and bottom in shares of the picture's width and height"
    )
    grid: int = Field(default=4, ge=1, le=32, description="cells per side of a grid over the picture")
    cell: int | None = Field(default=None, ge=0, description="number of a cell of the grid, in reading order from 0")
    grey: Share = Field(default=0.0, description="0 black to 1 white")

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.box is None) == (self.cell is None):
            raise ValueError("give a 'box', or the 'cell' of a 'grid'")
        if self.box is not None and not (self.box[0] < self.box[2] and self.box[1] < self.box[3]):
            raise ValueError(f"box {list(self.box)}: left must be below right, and top below bottom")
        if self.cell is not None and self.cell >= self.grid**2:
            raise ValueError(f"cell {self.cell}: a grid of {self.grid} has the cells 0 to {self.grid**2 - 1}")
        return self

    @property
    def nothing(self) -> bool:
        return False

    def words(self) -> str:
        if self.cell is not None:
            return f"with cell {self.cell} of a grid of {self.grid} x {self.grid} covered"
        assert self.box is not None
        return "with the box {:g}, {:g} to {:g}, {:g} covered".format(*self.box)

    def shares(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom, in shares of the picture."""
        if self.box is not None:
            return self.box
        assert self.cell is not None
        row, column = divmod(self.cell, self.grid)
        return column / self.grid, row / self.grid, (column + 1) / self.grid, (row + 1) / self.grid

    def covered(self, height: int, width: int) -> BoolArray:
        """(rows, columns) of the picture: those whose centres lie in the box. Cells of a grid share no pixel."""
        import numpy as np

        left, top, right, bottom = self.shares()
        x, y = ((np.arange(n) + 0.5) / n for n in (width, height))
        return ((y >= top) & (y < bottom))[:, None] & ((x >= left) & (x < right))[None, :]

    def part(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        import numpy as np

        values = below(place).copy()
        hidden = np.broadcast_to(scene.across(self.covered(scene.height, scene.width), place), values.shape)
        values[hidden] = scene.low + self.grey * scene.range
        return values

    def labels(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        import numpy as np

        values = below(place).copy()
        values[np.broadcast_to(scene.across(self.covered(scene.height, scene.width), place), values.shape)] = 0
        return values
