"""Sharing beginnings in models with recurrent layers: the state after a beginning is copied for each way to go on.

Each node of the tree of prompts goes through the model once. A node's ends are put in one batch on copies of the state
before them. Where one token is read, shorter ends are padded on the right, which nothing before it sees; where an
answer is written, a batch holds ends of one length, since padding would go into the state.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import groupby
from typing import TYPE_CHECKING, Any

from overread.backends.base import Answer
from overread.backends.transformers.generation import Draws, word_logprobs
from overread.backends.transformers.memory import Memory, ran_out
from overread.backends.transformers.network import Network, first_line
from overread.backends.transformers.pictures import Features
from overread.backends.transformers.prefix import Node, tree
from overread.backends.transformers.prompts import Prompt
from overread.backends.transformers.readouts import CONSTRAINED, answer, count
from overread.core.account import Account
from overread.core.stopping import warned

if TYPE_CHECKING:
    import torch

ARCHITECTURES = frozenset({"qwen3_5"})
"""Those whose copied states are tested against single prompts."""


class Copies:
    """Answers prompts along their tree."""

    def __init__(self, network: Network, account: Account) -> None:
        self.network, self.account = network, account
        self.memory = Memory(network)
        self.features = Features(network, account)

    def answer(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Answer]]:
        """The number of each prompt with its answer, in an order of its own."""
        left: list[tuple[list[Node], Any]] = [([root], None) for root in tree(prompts)][::-1]
        while left and not warned():
            nodes, state = left.pop()
            started = time.perf_counter()
            failure = ""
            try:
                answers, now = self._passed(prompts, nodes, state)
            except (RuntimeError, MemoryError) as error:
                if not ran_out(error):
                    raise
                failure = first_line(error)
            if failure:
                # Outside of the handler, which holds on to what the failed pass had made.
                self.memory.release()
                if len(nodes) > 1:
                    half = len(nodes) // 2
                    left += [(nodes[half:], state), (nodes[:half], state)]
                    continue
                answers = [(number, Answer(text="", error=f"out of memory ({failure})")) for number in _below(nodes[0])]
            elif len(nodes) == 1:
                left += [(batch, now) for batch in self._batches(nodes[0], prompts)][::-1]
            self.account.peak_bytes = max(self.account.peak_bytes, self.memory.peak())
            seconds = (time.perf_counter() - started) / max(len(answers), 1)
            yield from ((number, replace(each, seconds=seconds)) for number, each in answers)

    def _batches(self, node: Node, prompts: Sequence[Prompt]) -> Iterator[list[Node]]:
        """What goes on from a node: each child that has children, and the others in batches."""
        last = [child for child in node.children.values() if not child.children]
        yield from ([child] for child in node.children.values() if child.children)

        def alike(child: Node) -> int:
            """0 where one token is read from all prompts, else the length."""
            writes = any(prompts[number].trial.readout not in CONSTRAINED for number in child.ends)
            return len(child) if writes else 0

        for _, group in groupby(sorted(last, key=alike), key=alike):
            some = list(group)
            size = self.network.model.batch
            yield from (some[first : first + size] for first in range(0, len(some), size))

    def _passed(self, prompts: Sequence[Prompt], nodes: list[Node], state: Any) -> tuple[list[tuple[int, Answer]], Any]:
        """Answers of the prompts that end at the nodes, and the state after them.

        state   before the nodes, of one row; it is left as it is. None: there is nothing before them
        """
        import torch

        numbers = [number for node in nodes for number in node.ends]
        rows = [row for row, node in enumerate(nodes) for _ in node.ends]
        asked = [prompts[number] for number in numbers]
        with torch.inference_mode():
            now = self._copied(state, [0] * len(nodes))
            logits = self._ends(nodes, now)[rows]
            logprobs = word_logprobs(logits, [each.words for each in asked], self.network.place)
            free = [place for place, each in enumerate(asked) if each.trial.readout not in CONSTRAINED]
            written = {}
            if free:
                begun = self._copied(now, [rows[place] for place in free])
                written = dict(
                    zip(free, self._written(logits[free], [asked[place] for place in free], begun), strict=True)
                )
        answers = []
        for place, (number, prompt, values) in enumerate(zip(numbers, asked, logprobs, strict=True)):
            tokens, stopped = written.get(place, ([], True))
            answers.append((number, answer(self.network, prompt, values, tokens, stopped)))
        count(self.account, (each for _, each in answers))
        return answers, now

    def _ends(self, nodes: list[Node], state: Any) -> torch.Tensor:
        """(nodes, vocabulary) logits after each node. The state goes on."""
        import torch

        device = self.network.device
        pad = torch.nn.utils.rnn.pad_sequence
        embedded = pad([self.features.embedded([node]) for node in nodes], batch_first=True)
        positions = [torch.from_numpy(node.prompt.positions[:, node.begin : node.end]).T for node in nodes]
        padded = pad(positions, batch_first=True).permute(2, 0, 1)  # (axes, nodes, tokens)
        last = torch.tensor([[len(node) - 1] for node in nodes], device=device)
        self.account.prefilled_tokens += sum(map(len, nodes))
        return self._forward(embedded, padded, state, last)

    def _written(self, logits: torch.Tensor, prompts: list[Prompt], state: Any) -> list[tuple[list[int], bool]]:
        """Of each prompt the tokens of its answer, and whether it ended by itself.

        logits   (prompts, vocabulary) of the first position
        state    one row a prompt
        """
        import torch

        draws = Draws.of_trials(self.network, [prompt.trial for prompt in prompts])
        written: list[list[int]] = [[] for _ in prompts]
        stopped: set[int] = set()
        alive = list(range(len(prompts)))
        most = self.network.model.decoding.max_tokens
        for step in range(most):
            chosen = draws.scores(logits, alive).argmax(1).tolist()
            for row, token in zip(alive, chosen, strict=True):
                if token in self.network.stops:
                    stopped.add(row)
                else:
                    written[row].append(token)
            kept = [place for place, row in enumerate(alive) if row not in stopped]
            if not kept or step + 1 == most:
                break
            if len(kept) < len(alive):
                state.reorder_cache(torch.tensor(kept, device=self.network.device))
            alive = [alive[place] for place in kept]
            ids = torch.tensor([[written[row][-1]] for row in alive], device=self.network.device)
            positions = torch.tensor([[prompts[row].next_position + step] for row in alive])
            axes = prompts[alive[0]].positions.shape[0]
            last = torch.zeros(len(alive), 1, dtype=torch.long, device=self.network.device)
            embedded = self.network.network.get_input_embeddings()(ids)
            logits = self._forward(embedded, positions.expand(axes, -1, -1), state, last)
        return [(tokens, row in stopped) for row, tokens in enumerate(written)]

    def _forward(
        self, embedded: torch.Tensor, positions: torch.Tensor, state: Any, logits_of: torch.Tensor
    ) -> torch.Tensor:
        """(rows, vocabulary) logits of one forward pass.

        embedded    (rows, tokens, hidden); padding on the right
        positions   (axes, rows, tokens)
        logits_of   (rows, 1) which token of each row
        """
        positions = positions.to(self.network.device)
        made = self.network.network(
            inputs_embeds=embedded,
            position_ids=positions if len(positions) > 1 else positions[0],
            cache=state,
            use_cache=True,
            logits_to_keep=logits_of,
        )
        logits: torch.Tensor = made.logits[:, 0]
        return logits

    def _copied(self, state: Any, rows: list[int]) -> Any:
        """A new state that has row `rows[i]` of the old one in its i-th row."""
        import torch

        if state is None:
            library: Any = import_module("transformers")
            return library.DynamicCache(config=self.network.network.config)
        made = copy.deepcopy(state)
        made.reorder_cache(torch.tensor(rows, device=self.network.device))
        return made


def _below(node: Node) -> Iterator[int]:
    """Numbers of all prompts that begin with what leads to a node."""
    yield from node.ends
    for child in node.children.values():
        yield from _below(child)
