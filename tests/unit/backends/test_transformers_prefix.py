"""The tree of prompts and what its packs see, against brute force."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overread.backends.transformers.attention import Columns, tiles
from overread.backends.transformers.prefix import Node, leaves, tree

# Few tokens, so that prompts often begin alike; some end where others go on, some are equal.
PROMPTS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=8), min_size=1, max_size=8)


def made(tokens: list[list[int]]) -> list[Any]:
    return [SimpleNamespace(key=np.array(each)) for each in tokens]


def nodes_of(roots: list[Node]) -> list[Node]:
    return [each for root in roots for each in [root, *nodes_of(list(root.children.values()))]]


def beginnings(tokens: list[list[int]]) -> set[tuple[int, ...]]:
    return {tuple(each[:end]) for each in tokens for end in range(1, len(each) + 1)}


@given(PROMPTS)
@settings(deadline=None)
def test_a_path_through_the_tree_is_the_prompt_that_ends_there(tokens: list[list[int]]) -> None:
    found = {}
    for leaf in leaves(tree(made(tokens))):
        path = [int(each) for node in leaf.path() for each in node.prompt.key[node.begin : node.end]]
        found |= dict.fromkeys(leaf.ends, path)
    assert found == dict(enumerate(tokens))


@given(PROMPTS)
@settings(deadline=None)
def test_the_tree_holds_each_beginning_once(tokens: list[list[int]]) -> None:
    assert sum(len(node) for node in nodes_of(tree(made(tokens)))) == len(beginnings(tokens))


@given(PROMPTS)
@settings(deadline=None)
def test_without_sharing_each_prompt_is_whole(tokens: list[list[int]]) -> None:
    roots = tree(made(tokens), share=False)
    assert [len(root) for root in roots] == [len(each) for each in tokens]
    assert [leaf.ends for leaf in leaves(roots)] == [[number] for number in range(len(tokens))]


def test_two_pictures_share_no_token_and_one_is_never_cut() -> None:
    """Keys of pictures are negative; a picture's tokens are its number and their places."""
    header, other = [5, 6], [7]
    one, two = [-10, -11, -12], [-20, -21, -22]
    roots = tree(made([header + one + [1, 2], header + two + [1, 2], header + one + [1, 3], other]))
    shared = roots[0]
    assert (shared.begin, shared.end) == (0, 2)
    assert [len(child) for child in shared.children.values()] == [4, 5]  # the first picture and its common token 1


def packed(tokens: list[list[int]], pictures: list[list[int]]) -> tuple[Columns, list[Node], list[Any]]:
    """All nodes of a tree as the columns of one pack, with the nodes and, for each, the columns before it."""
    prompts = made(tokens)
    for prompt, picture in zip(prompts, pictures, strict=True):
        prompt.picture = picture
    nodes = nodes_of(tree(prompts))
    begins = np.cumsum([0, *(len(node) for node in nodes)])
    own = {node: np.arange(begins[place], begins[place + 1]) for place, node in enumerate(nodes)}
    run = {node: place for place, node in enumerate(nodes)}
    sees = np.zeros((len(nodes), len(nodes)), dtype=bool)
    for node in nodes:
        sees[run[node], [run[each] for each in node.path()]] = True
    columns = Columns(
        torch.tensor(np.repeat(np.arange(len(nodes)), [len(node) for node in nodes])),
        torch.tensor(np.concatenate([np.arange(node.begin, node.end) for node in nodes])),
        torch.tensor([each for node in nodes for each in node.prompt.picture[node.begin : node.end]]),
        torch.tensor(sees),
    )
    before = [np.concatenate([np.arange(0), *(own[each] for each in node.path()[:-1])]) for node in nodes]
    return columns, nodes, before


def looked_at(tokens: list[list[int]], window: int | None) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Pairs of beginnings: the last token of the first sees the last one of the second, in some prompt."""
    pairs = set()
    for each in tokens:
        for row in range(1, len(each) + 1):
            first = 1 if window is None else max(1, row - window + 1)
            pairs |= {(tuple(each[:row]), tuple(each[:column])) for column in range(first, row + 1)}
    return pairs


@given(PROMPTS, st.integers(1, 5), st.sampled_from([None, 1, 3]))
@settings(deadline=None)
def test_in_a_pack_a_token_sees_its_own_prompt_and_nothing_else(
    tokens: list[list[int]], rows: int, window: int | None
) -> None:
    columns, nodes, before = packed(tokens, [[-1] * len(each) for each in tokens])
    name = [tuple(map(int, node.prompt.key[:end])) for node in nodes for end in range(node.begin + 1, node.end + 1)]
    pairs: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    every = range(len(name))
    covered: list[int] = []
    for tile in tiles(columns, [len(node) for node in nodes], before, rows):
        mask = tile.mask(window, torch.float32, 0)[0, 0]
        shown = list(every)[tile.seen] if isinstance(tile.seen, slice) else tile.seen.tolist()
        covered += range(tile.begin, tile.end)
        pairs += [(name[tile.begin + row], name[shown[column]]) for row, column in (mask == 0).nonzero().tolist()]
    assert covered == list(every)
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == looked_at(tokens, window)


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_the_tokens_of_a_picture_see_each_other_and_stay_in_one_tile(rows: int) -> None:
    """A prompt of 8 tokens with a picture at 2 to 4; by hand: row 2 sees columns 0 to 4, row 5 those up to itself."""
    picture = [-1, -1, 0, 0, 0, -1, -1, -1]
    columns, nodes, before = packed([list(range(8))], [picture])
    made_of = tiles(columns, [8], before, rows)
    visible = torch.zeros(8, 8, dtype=torch.bool)
    for tile in made_of:
        assert tile.begin not in (3, 4)
        seen = torch.arange(8)[tile.seen]
        visible[tile.begin : tile.end, seen] = tile.mask(None, torch.float32, 0)[0, 0] == 0
    expected = torch.ones(8, 8).tril().bool()
    expected[2:5, 2:5] = True
    assert torch.equal(visible, expected)
    assert len(nodes) == 1
