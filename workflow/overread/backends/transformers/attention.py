"""Attention over a pack: many prompts in one sequence, each token seeing its own prompt's tokens and no others.

The library takes an attention function by name. Ours cuts the rows of a pack into tiles, gives each tile the columns
that its rows can see, and leaves the computation to the library's own function ("sdpa" or "eager"). Without tiles it is
that function. `Columns.visible` is the one place where it is decided what a token sees.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from overread.backends.transformers.hiding import Hiding

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

TILE_ROWS = {"cpu": 96, "cuda": 512}
"""Rows of a tile: enough to fill the processor, few enough that siblings' columns are not computed for nothing."""


@dataclass
class Columns:
    """The tokens in the key-value cache, one column each.

    run      (k,) the run that the token belongs to: a node of the tree, or a prompt's answer
    depth    (k,) its place in its own prompt
    picture  (k,) the picture that it is a part of, where a picture's tokens see each other; -1: none
    sees     (runs, runs) whether a run sees another: itself and those before it in its prompt
    report   (k,) whether the token is of a report; None where no report is hidden
    hiding   from which layers it is hidden
    """

    run: torch.Tensor
    depth: torch.Tensor
    picture: torch.Tensor
    sees: torch.Tensor
    report: torch.Tensor | None = None
    hiding: Hiding | None = None

    def hides_in(self, layer: int) -> bool:
        """Whether a layer is one from which the report is hidden."""
        return self.report is not None and self.hiding is not None and self.hiding.at(layer)

    def visible(
        self, rows: torch.Tensor, columns: torch.Tensor, window: int | None, *, hidden: bool = False
    ) -> torch.Tensor:
        """Whether each row's token sees each column's.

        rows     (q,) columns of the tokens that look
        columns  (c,) columns that are looked at
        window   how many tokens back a layer with a sliding window looks; None: all
        hidden   whether reports are hidden from all tokens but their own
        returns  (q, c) bool: what came before in the same prompt, and the rest of the same picture
        """
        allowed = columns[None] <= rows[:, None]
        picture = self.picture[rows][:, None]
        allowed |= (picture >= 0) & (picture == self.picture[columns][None])
        allowed &= self.sees[self.run[rows]][:, self.run[columns]]
        if window is not None:
            allowed &= self.depth[rows][:, None] - self.depth[columns][None] < window
        if hidden and self.report is not None:
            allowed &= ~self.report[columns][None] | self.report[rows][:, None]
        return allowed


@dataclass
class Tile:
    """Rows [begin, end) of a forward pass, `before` columns being in the cache already, and the columns they see."""

    begin: int
    end: int
    before: int
    seen: torch.Tensor | slice
    columns: Columns
    _masks: dict[tuple[int | None, bool], torch.Tensor] = field(default_factory=dict)

    def mask(self, window: int | None, dtype: torch.dtype, layer: int) -> torch.Tensor:
        """(1, 1, rows, columns) to be added to the scores: made once, for all layers of a kind."""
        kind = window, self.columns.hides_in(layer)
        if kind not in self._masks:
            import torch

            every = torch.arange(len(self.columns.run), device=self.columns.run.device)
            rows = every[self.before + self.begin : self.before + self.end]
            visible = self.columns.visible(rows, every[self.seen], window, hidden=kind[1])[None, None]
            blocked = torch.full(visible.shape, torch.finfo(dtype).min, dtype=dtype, device=visible.device)
            self._masks[kind] = blocked.masked_fill_(visible, 0)
        return self._masks[kind]


def tiles(columns: Columns, lengths: Sequence[int], paths: Sequence[NDArray[np.int64]], rows: int) -> list[Tile]:
    """The tiles of a forward pass whose new tokens are the last columns.

    lengths  of the runs that are new, in order
    paths    of each of them, the columns of all tokens before it in its prompt, in order
    rows     of a tile: short runs are put together, long ones are cut, but never inside a picture
    """
    import numpy as np

    before = len(columns.run) - sum(lengths)
    pictures = columns.picture.cpu().numpy()
    made: list[Tile] = []
    begin = end = 0
    seen: list[NDArray[np.int64]] = []
    for length, path in zip(lengths, paths, strict=True):
        left = length
        seen.append(path)
        while left:
            step = left
            if end + left - begin > 2 * rows:
                step = _uncut(pictures, before + end, max(rows - (end - begin), 1), left)
            seen.append(np.arange(before + end, before + end + step))
            end, left = end + step, left - step
            if end - begin >= rows or left:
                made.append(_tile(columns, begin, end, before, seen))
                # What is left of a cut run sees what has been cut off it.
                seen = [path, np.arange(before + end - (length - left), before + end)] if left else []
                begin = end
    if end > begin:
        made.append(_tile(columns, begin, end, before, seen))
    return made


def _uncut(pictures: NDArray[np.int64], first: int, wanted: int, most: int) -> int:
    """How many columns from `first` to take, `wanted` or a few more: a picture stays whole."""
    step = min(wanted, most)
    while step < most and pictures[first + step] >= 0 and pictures[first + step] == pictures[first + step - 1]:
        step += 1
    return step


def _tile(columns: Columns, begin: int, end: int, before: int, seen: list[NDArray[np.int64]]) -> Tile:
    import numpy as np
    import torch

    every = np.unique(np.concatenate(seen))
    if len(every) == every[-1] - every[0] + 1:
        return Tile(begin, end, before, slice(int(every[0]), int(every[-1]) + 1), columns)
    return Tile(begin, end, before, torch.from_numpy(every).to(columns.run.device), columns)


def attention_name(implementation: str) -> str:
    """The name of our attention on top of the library's `implementation`, made known to the library."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

    name = f"overread_{implementation}"
    AttentionInterface.register(name, _of_tiles_sdpa if implementation == "sdpa" else _of_tiles_eager)
    AttentionMaskInterface.register(name, ALL_MASK_ATTENTION_FUNCTIONS[implementation])
    return name


def _of_tiles_sdpa(module: Any, *states: Any, tiles: list[Tile] | None = None, **settings: Any) -> Any:
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    return _of_tiles(sdpa_attention_forward, module, *states, tiles=tiles, **settings)


def _of_tiles_eager(module: Any, *states: Any, tiles: list[Tile] | None = None, **settings: Any) -> Any:
    # Every architecture has an eager function of its own, beside its layers.
    function = sys.modules[type(module).__module__].eager_attention_forward
    return _of_tiles(function, module, *states, tiles=tiles, **settings)


def _of_tiles(
    function: Any,
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    tiles: list[Tile] | None,
    sliding_window: int | None = None,
    **settings: Any,
) -> tuple[torch.Tensor, None]:
    """The library's attention `function`, tile by tile.

    query       (1, heads, rows, size); key, value (1, key heads, columns, size)
    returns     (1, rows, heads, size)
    """
    import torch

    if tiles is None:
        whole: tuple[torch.Tensor, None] = function(
            module, query, key, value, attention_mask, sliding_window=sliding_window, **settings
        )
        return whole
    made = []
    for tile in tiles:
        mask = tile.mask(sliding_window, query.dtype, module.layer_idx)
        rows = query[:, :, tile.begin : tile.end]
        made.append(function(module, rows, key[:, :, tile.seen], value[:, :, tile.seen], mask, **settings)[0])
    return torch.cat(made, 1), None
