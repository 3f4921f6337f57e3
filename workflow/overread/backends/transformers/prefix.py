"""The tree of prompts that begin alike: each node is a run of tokens that all prompts below it share.

A radix tree over the prompts' keys, in which a picture's tokens are its own: two prompts share a picture only if it is
the same one, and then as a whole. A prompt's path from the root is the prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from overread.backends.transformers.prompts import Prompt


@dataclass(eq=False)
class Node:
    """Tokens [begin, end) of `prompt`, after those of `parent`.

    ends   numbers of the prompts whose last token this node's last one is
    """

    prompt: Prompt
    begin: int
    end: int
    parent: Node | None
    children: dict[int, Node] = field(default_factory=dict)
    ends: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return self.end - self.begin

    def path(self) -> list[Node]:
        """From the root to this node."""
        nodes = [self]
        while nodes[-1].parent is not None:
            nodes.append(nodes[-1].parent)
        return nodes[::-1]


def tree(prompts: Sequence[Prompt], *, share: bool = True) -> list[Node]:
    """The roots: prompts that begin with different tokens have different ones.

    share   False: each prompt is a root of its own
    """
    if not share:
        return [Node(prompt, 0, len(prompt.key), None, ends=[number]) for number, prompt in enumerate(prompts)]
    roots: dict[int, Node] = {}
    for number, prompt in enumerate(prompts):
        _insert(roots, prompt, number)
    return list(roots.values())


def leaves(roots: Sequence[Node]) -> Iterator[Node]:
    """Nodes at which prompts end, parents before children, in the order in which beginnings were first met."""
    left = list(roots)[::-1]
    while left:
        node = left.pop()
        if node.ends:
            yield node
        left += list(node.children.values())[::-1]


def _insert(roots: dict[int, Node], prompt: Prompt, number: int) -> None:
    siblings, parent, begin, end = roots, None, 0, len(prompt.key)
    while begin < end:
        first = int(prompt.key[begin])
        node = siblings.get(first)
        if node is None:
            node = siblings[first] = Node(prompt, begin, end, parent)
        else:
            shared = _shared(node, prompt)
            if shared < node.end:
                node = siblings[first] = _split(node, shared)
        siblings, parent, begin = node.children, node, node.end
    if parent is not None:
        parent.ends.append(number)


def _shared(node: Node, prompt: Prompt) -> int:
    """One past the last token of the node that the prompt has too."""
    end = min(node.end, len(prompt.key))
    differs = (node.prompt.key[node.begin : end] != prompt.key[node.begin : end]).nonzero()[0]
    return node.begin + int(differs[0]) if len(differs) else end


def _split(node: Node, place: int) -> Node:
    """Cut a node in two; the first part is returned and is the second one's parent."""
    first = Node(node.prompt, node.begin, place, node.parent)
    node.begin, node.parent = place, first
    first.children[int(node.prompt.key[place])] = node
    return first
