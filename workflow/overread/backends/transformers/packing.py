"""Many prompts in one sequence: what they share goes through the model once.

The nodes of the tree of prompts stand one after the other, each token sees the tokens of its own prompt
(`attention.Columns`), and has the position that it has in its prompt. So there is no padding, no copy of a shared
beginning for each prompt, and the answer of a prompt is the one that it would have alone. What a pack leaves in the
cache and the next one begins with is kept; the rest is dropped. Answers of several tokens go on from the same cache.

Not for models with recurrent layers: there what a token sees can't be chosen.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from overread.backends.base import Answer
from overread.backends.transformers.attention import TILE_ROWS, Columns, Tile, tiles
from overread.backends.transformers.generation import Draws, word_logprobs
from overread.backends.transformers.hiding import hiding, report_tokens
from overread.backends.transformers.memory import Memory, ran_out
from overread.backends.transformers.network import Network, first_line
from overread.backends.transformers.pictures import Features
from overread.backends.transformers.prefix import Node, leaves, tree
from overread.backends.transformers.prompts import Prompt
from overread.backends.transformers.readouts import CONSTRAINED, answer, count
from overread.core.account import Account
from overread.core.stopping import warned

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

ARCHITECTURES = frozenset({"gemma3", "llava", "llava_next", "qwen2_5_vl", "qwen3", "qwen2", "llama", "mistral"})
"""Those whose packs are tested against single prompts. Others are answered in plain batches."""

PICTURES_SEE_THEMSELVES = frozenset({"gemma3"})
"""Architectures in which the tokens of a picture see each other, also those after them."""


@dataclass
class Held:
    """The cache: nodes in the order of their columns, and keys and values of each layer."""

    nodes: list[Node] = field(default_factory=list)
    states: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)

    def only(self, wanted: set[Node]) -> Held:
        """Without the nodes that are not wanted."""
        import torch

        if all(node in wanted for node in self.nodes):
            return self
        kept = [node in wanted for node in self.nodes]
        columns = torch.repeat_interleave(torch.tensor(kept), torch.tensor([len(node) for node in self.nodes]))
        (index,) = columns.nonzero(as_tuple=True)
        index = index.to(self.states[0][0].device)
        states = [(keys.index_select(2, index), values.index_select(2, index)) for keys, values in self.states]
        return Held([node for node, keep in zip(self.nodes, kept, strict=True) if keep], states)


class Packs:
    """Answers prompts in packs.

    share   False: no two prompts share a token
    batch   prompts in a pack, at most; memory may allow fewer
    """

    def __init__(self, network: Network, account: Account, *, share: bool = True) -> None:
        self.network, self.account, self.share = network, account, share
        self.batch = network.model.batch
        self.memory = Memory(network)
        self.features = Features(network, account)
        network.attend_by_tiles()
        self._rows_of_a_tile = TILE_ROWS[network.device]
        self._bidirectional = network.architecture in PICTURES_SEE_THEMSELVES

    def answer(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Answer]]:
        """The number of each prompt with its answer, in an order of its own."""
        left = list(leaves(tree(prompts, share=self.share)))[::-1]
        held = Held()
        most = len(left)
        while left and not warned():
            taken = self._next(left, held, most)
            started = time.perf_counter()
            failure = ""
            try:
                answers, held = self._answered(prompts, taken, held)
            except (RuntimeError, MemoryError) as error:
                if not ran_out(error):
                    raise
                failure = first_line(error)
            if failure:
                # Outside of the handler, which holds on to what the failed pass had made.
                self.memory.release()
                if len(taken) > 1:
                    most = len(taken) // 2
                    left += taken[::-1]
                    continue
                answers = [(number, Answer(text="", error=f"out of memory ({failure})")) for number in taken[0].ends]
                held = Held()
            self.account.peak_bytes = max(self.account.peak_bytes, self.memory.peak())
            seconds = (time.perf_counter() - started) / len(answers)
            yield from ((number, replace(each, seconds=seconds)) for number, each in answers)

    def _next(self, left: list[Node], held: Held, most: int) -> list[Node]:
        """Take the leaves of the next pack from the end of `left`: as many as may and fit, one at least."""
        taken: list[Node] = []
        nodes: set[Node] = set()
        cached = set(held.nodes)
        rows = columns = prompts = 0
        while left and len(taken) < most:
            leaf = left[-1]
            more = [node for node in leaf.path() if node not in nodes]
            rows += sum(len(node) for node in more if node not in cached)
            columns += sum(len(node) for node in more)
            prompts += len(leaf.ends)
            if taken and (prompts > self.batch or not self.memory.fits(rows, columns, len(taken) + 1)):
                break
            nodes.update(more)
            taken.append(left.pop())
        return taken

    def _answered(
        self, prompts: Sequence[Prompt], taken: list[Node], held: Held
    ) -> tuple[list[tuple[int, Answer]], Held]:
        import torch

        with torch.inference_mode():
            pack = _Pack(self, taken, held)
            logits, now = pack.prefill()
            numbers = [number for leaf in taken for number in leaf.ends]
            rows = [row for row, leaf in enumerate(taken) for _ in leaf.ends]
            asked = [prompts[number] for number in numbers]
            first = logits[rows]
            logprobs = word_logprobs(first, [each.words for each in asked], self.network.place)
            free = [row for row, each in enumerate(asked) if each.trial.readout not in CONSTRAINED]
            written = pack.go_on(first, asked, rows, free) if free else {}
        answers = []
        for row, (prompt, values) in enumerate(zip(asked, logprobs, strict=True)):
            tokens, stopped = written.get(row, ([], True))
            answers.append((numbers[row], answer(self.network, prompt, values, tokens, stopped)))
        count(self.account, (each for _, each in answers))
        return answers, now


class _Pack:
    """One pack on its way through the network."""

    def __init__(self, packs: Packs, leaves: list[Node], held: Held) -> None:
        self.packs, self.network, self.leaves = packs, packs.network, leaves
        paths = [leaf.path() for leaf in leaves]
        wanted = {node: None for path in paths for node in path}  # in order
        self.held = held.only(set(wanted))
        self.new = [node for node in wanted if node not in set(self.held.nodes)]
        self.nodes = [*self.held.nodes, *self.new]
        self.run = {node: run for run, node in enumerate(self.nodes)}
        self.ends_at: dict[Node, int] = {}
        end = 0
        for node in self.nodes:
            end += len(node)
            self.ends_at[node] = end

    def prefill(self) -> tuple[torch.Tensor, Held]:
        """Put the new nodes through the network.

        returns   (leaves, vocabulary) logits after each leaf, and the cache
        """
        import numpy as np
        import torch

        device = self.network.device
        self.columns = self._columns()
        before = sum(len(node) for node in self.held.nodes)
        new = self.new  # never empty: a leaf is not in the cache before its own pack
        plan = tiles(
            self.columns, [len(node) for node in new], [self._before(node) for node in new], self.packs._rows_of_a_tile
        )
        positions = np.concatenate([node.prompt.positions[:, node.begin : node.end] for node in new], 1)
        last = [self.ends_at[leaf] - 1 - before for leaf in self.leaves]
        self.packs.memory.begin()
        embedded = self.packs.features.embedded(new)[None]
        logits, states = self._forward(
            embedded, torch.from_numpy(positions), self.held.states, plan, torch.tensor(last, device=device)
        )
        rows = positions.shape[1]
        self.packs.memory.end(rows, before + rows, len(last))
        self.packs.account.prefilled_tokens += rows
        self.states = states
        return logits, Held(self.nodes, states)

    def go_on(
        self, logits: torch.Tensor, prompts: list[Prompt], leaf_of: list[int], free: list[int]
    ) -> dict[int, tuple[list[int], bool]]:
        """Write answers.

        logits    (prompts, vocabulary) of the first position
        leaf_of   which leaf each prompt ends at
        free      the prompts whose answer is written
        returns   of each of these the tokens, and whether it ended by itself
        """
        import torch

        device, network = self.network.device, self.network
        draws = Draws.of_trials(network, [prompt.trial for prompt in prompts])
        written: dict[int, list[int]] = {row: [] for row in free}
        stopped: set[int] = set()
        runs = {row: len(self.nodes) + place for place, row in enumerate(free)}
        columns, states = self._with_answers([self.leaves[leaf_of[row]] for row in free]), self.states
        alive, now = free, logits[free]
        for step in range(network.model.decoding.max_tokens):
            chosen = draws.scores(now, alive).argmax(1).tolist()
            for row, token in zip(alive, chosen, strict=True):
                if token in network.stops:
                    stopped.add(row)
                else:
                    written[row].append(token)
            alive = [row for row in alive if row not in stopped]
            if not alive or step + 1 == network.model.decoding.max_tokens:
                break
            columns = _grown(columns, [runs[row] for row in alive], [len(prompts[row].ids) + step for row in alive])
            length = len(columns.run)
            plan = [Tile(0, len(alive), length - len(alive), slice(0, length), columns)]
            ids = torch.tensor([[written[row][-1] for row in alive]], device=device)
            positions = torch.tensor([[prompts[row].next_position + step for row in alive]])
            axes = prompts[alive[0]].positions.shape[0]
            embedded = network.network.get_input_embeddings()(ids)
            every = torch.arange(len(alive), device=device)
            now, states = self._forward(embedded, positions.expand(axes, -1), states, plan, every)
        return {row: (tokens, row in stopped) for row, tokens in written.items()}

    def _forward(
        self,
        embedded: torch.Tensor,
        positions: torch.Tensor,
        states: list[tuple[torch.Tensor, torch.Tensor]],
        plan: list[Tile],
        logits_of: torch.Tensor,
    ) -> tuple[torch.Tensor, list[tuple[torch.Tensor, torch.Tensor]]]:
        """One forward pass.

        embedded    (1, rows, hidden)
        positions   (axes, rows) rotary positions
        states      the cache before it; it is left as it is
        logits_of   rows whose logits are wanted
        returns     (rows wanted, vocabulary) logits, and the cache after it
        """
        import torch

        library: Any = import_module("transformers.cache_utils")
        cache = library.DynamicCache()
        for keys, values in states:
            layer = library.DynamicLayer()
            layer.lazy_initialization(keys, values)
            layer.keys, layer.values = keys, values
            cache.layers.append(layer)
        positions = positions.to(self.network.device)
        made = self.network.network(
            inputs_embeds=embedded,
            # Of four axes, so that the library builds none, and of no size, so that none but the tiles can be used.
            attention_mask=torch.ones(1, 1, 0, 0, dtype=torch.bool, device=embedded.device),
            position_ids=positions if len(positions) == 1 else positions[:, None],
            cache=cache,
            use_cache=True,
            logits_to_keep=logits_of,
            tiles=plan,
        )
        return made.logits[0], [(layer.keys, layer.values) for layer in cache.layers]

    def _columns(self) -> Columns:
        import numpy as np
        import torch

        device = self.network.device
        runs = np.repeat(np.arange(len(self.nodes)), [len(node) for node in self.nodes])
        depths = np.concatenate([np.arange(node.begin, node.end) for node in self.nodes])
        pictures = np.full(len(runs), -1)
        count = 0
        for node in self.nodes if self.packs._bidirectional else []:
            shift = self.ends_at[node] - node.end
            for place in node.prompt.places:
                if node.begin <= place[0] < node.end:
                    pictures[place + shift] = count
                    count += 1
        sees = np.zeros((len(self.nodes), len(self.nodes)), dtype=bool)
        for node in self.nodes:
            sees[self.run[node], [self.run[each] for each in node.path()]] = True
        made = [torch.from_numpy(each).to(device) for each in (runs, depths, pictures, sees)]
        columns = Columns(made[0], made[1], made[2], made[3])
        columns.hiding = hiding(self.leaves[0].prompt.trial.attention)
        if columns.hiding is not None:
            reports = [report_tokens(node.prompt)[node.begin : node.end] for node in self.nodes]
            columns.report = torch.from_numpy(np.concatenate(reports)).to(device)
        return columns

    def _before(self, node: Node) -> NDArray[np.int64]:
        """Columns of the tokens before a node in its prompt."""
        import numpy as np

        ranges = [np.arange(self.ends_at[each] - len(each), self.ends_at[each]) for each in node.path()[:-1]]
        return np.concatenate([np.arange(0), *ranges])

    def _with_answers(self, leaves: list[Node]) -> Columns:
        """The columns, and a run for each answer, which sees itself and the prompt that ends at its leaf."""
        import torch

        old, known = self.columns.sees, len(self.nodes)
        sees = torch.zeros(known + len(leaves), known + len(leaves), dtype=torch.bool, device=old.device)
        sees[:known, :known] = old
        for place, leaf in enumerate(leaves):
            sees[known + place, :known] = old[self.run[leaf]]
            sees[known + place, known + place] = True
        return replace(self.columns, sees=sees)


def _grown(columns: Columns, runs: list[int], depths: list[int]) -> Columns:
    """One more column for each of `runs`."""
    import torch

    def more(tensor: torch.Tensor, values: list[int]) -> torch.Tensor:
        return torch.cat([tensor, torch.tensor(values, dtype=tensor.dtype, device=tensor.device)])

    return replace(
        columns,
        run=more(columns.run, runs),
        depth=more(columns.depth, depths),
        picture=more(columns.picture, [-1] * len(runs)),
        report=None if columns.report is None else more(columns.report, [False] * len(runs)),
    )
