"""The next token: the likeliest, or a draw that depends on the request alone.

Sampling adds Gumbel noise to the logits and takes the highest (Gumbel 1954; an exact draw from the softmax), with a
generator of its own for each request, so that an answer does not depend on the batch it came in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from overread.core.errors import BadInput
from overread.core.records import Trial, content_hash

if TYPE_CHECKING:
    import torch

    from overread.backends.transformers.network import Network


class Draws:
    """Draws tokens; each request keeps its own stream of random numbers.

    suppressed  tokens that are never drawn
    keys        a request's, as hexadecimal digits: equal keys draw equal numbers
    """

    def __init__(self, suppressed: Sequence[int], keys: Sequence[str], temperature: float, top_p: float) -> None:
        import torch

        self.suppressed, self.temperature, self.top_p = list(suppressed), temperature, top_p
        self.generators = [torch.Generator().manual_seed(int(key[:15], 16)) for key in keys]

    @classmethod
    def of_trials(cls, network: Network, trials: Sequence[Trial]) -> Draws:
        """As the model file says, by the trials' content, question and run."""
        seed = network.model.decoding.seed
        keys = [content_hash([seed, trial.trial, trial.question, trial.run]) for trial in trials]
        return cls(network.suppressed, keys, *network.sampling())

    def scores(self, logits: torch.Tensor, rows: Sequence[int]) -> torch.Tensor:
        """What the next token is the argmax of.

        logits   (r, vocabulary)
        rows     which request each of them is of
        """
        import torch

        scores = logits.float()
        if self.suppressed:
            scores = scores.index_fill(1, torch.tensor(self.suppressed, device=scores.device), float("-inf"))
        if self.temperature == 0:
            return scores
        scores = scores / self.temperature
        if self.top_p < 1:
            ordered, order = scores.sort(1, descending=True)
            probabilities = ordered.softmax(1)
            # A token stays as long as those before it do not reach top_p: at least one always does.
            outside = probabilities.cumsum(1) - probabilities >= self.top_p
            scores = scores.masked_fill(outside.scatter(1, order, outside), float("-inf"))
        noise = [torch.empty(scores.shape[1]).exponential_(generator=self.generators[row]).log() for row in rows]
        return scores - torch.stack(noise).to(scores.device)


def word_logprobs(
    logits: torch.Tensor, words: Sequence[Sequence[int] | None], place: str
) -> list[tuple[float, ...] | None]:
    """Log-probabilities of each row's words over the whole vocabulary.

    logits   (r, vocabulary), of the first generated position
    words    tokens of each row's words; None: it has none
    raises   BadInput for logits that are no numbers
    """
    wide = logits.float()
    total = wide.logsumexp(1, keepdim=True)
    if not bool(total.isfinite().all()):
        raise BadInput(f"{place}: the model gives NaN or infinite logits; try another dtype")
    logprobs = (wide - total).cpu()
    return [None if tokens is None else tuple(logprobs[row, list(tokens)].tolist()) for row, tokens in enumerate(words)]
