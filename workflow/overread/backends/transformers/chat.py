"""A model that writes replies of a given form in this process: questions, or verdicts on them.

It takes the place of a server (`endpoint.client.ChatClient`). What the reply's JSON schema does not allow can't be
written (xgrammar), so a small model too gives JSON; whether it is any good is judged as with every other reply. A reply
does not depend on which others were written beside it: each draws from a stream of random numbers of its own.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from overread.backends.transformers.generation import Draws
from overread.backends.transformers.memory import ran_out
from overread.backends.transformers.network import Network, load_network
from overread.backends.transformers.section import TransformersModel
from overread.backends.transport.client import Call, Failure
from overread.backends.transport.faults import BadReply
from overread.backends.transport.replies import Reply
from overread.core.errors import BadInput
from overread.core.progress import say
from overread.core.records import content_hash
from overread.core.stopping import until_warned

if TYPE_CHECKING:
    import torch


class LocalClient:
    """Writes the replies to calls.

    asked  parameters of every request, as for a server: temperature, top_p, max_tokens, response_format
    tries  so many replies that can't be used, and a call fails; one is enough where nothing is drawn
    faults replies that could not be used, by reason
    """

    def __init__(self, model: TransformersModel, model_id: str, asked: Mapping[str, Any], tries: int) -> None:
        self.model, self.model_id, self.asked = model, model_id, asked
        self.temperature = float(asked.get("temperature", 0.0))
        self.tries = tries if self.temperature > 0 else 1
        self.faults: Counter[str] = Counter()
        self.say = say

    async def answers(self, calls: Iterable[Call]) -> AsyncIterator[tuple[Call, Reply | Failure]]:
        """Each call with its reply, a batch at a time; a reply that its call judges to be unusable is drawn again."""
        network = load_network(self.model, self.model_id)
        grammar = self._grammar(network)
        for attempt, batch in until_warned(self._batches(list(calls))):
            for call, reply in zip(batch, self._written(network, grammar, batch, attempt), strict=True):
                outcome = self._judged(call, reply, attempt)
                if outcome is None:
                    self._again.append(call)
                else:
                    yield call, outcome

    def _batches(self, calls: list[Call]) -> Iterator[tuple[int, list[Call]]]:
        """The calls in batches, then what has to be drawn again; the attempt's number from 1."""
        for attempt in range(1, self.tries + 1):
            self._again: list[Call] = []
            for first in range(0, len(calls), self.model.batch):
                yield attempt, calls[first : first + self.model.batch]
            calls = self._again

    def _judged(self, call: Call, reply: Reply | Failure, attempt: int) -> Reply | Failure | None:
        """None for a reply that is to be drawn again."""
        if isinstance(reply, Failure) or call.judge is None:
            return reply
        try:
            call.judge(reply)
        except BadReply as error:
            self.faults[str(error)] += 1
            return None if attempt < self.tries else Failure(str(error))
        return reply

    def _grammar(self, network: Network) -> Any:
        xgrammar: Any = import_module("xgrammar")
        tokens = xgrammar.TokenizerInfo.from_huggingface(
            network.tokenizer, vocab_size=network.text_config.vocab_size, stop_token_ids=sorted(network.stops)
        )
        schema = json.dumps(self.asked["response_format"]["json_schema"]["schema"])
        return xgrammar.GrammarCompiler(tokens).compile_json_schema(schema, any_whitespace=False)

    def _written(self, network: Network, grammar: Any, calls: Sequence[Call], attempt: int) -> list[Reply | Failure]:
        """Halved where memory runs out."""
        try:
            return self._batch(network, grammar, calls, attempt)
        except (RuntimeError, MemoryError) as error:
            if not ran_out(error):
                raise
        if len(calls) == 1:
            return [Failure("out of memory")]
        half = len(calls) // 2
        return self._written(network, grammar, calls[:half], attempt) + self._written(
            network, grammar, calls[half:], attempt
        )

    def _batch(self, network: Network, grammar: Any, calls: Sequence[Call], attempt: int) -> list[Reply | Failure]:
        import torch

        transformers: Any = import_module("transformers")
        hugging_face: Any = import_module("xgrammar.contrib.hf")
        began = time.perf_counter()
        ids = [self._tokens(network, call) for call in calls]
        most = int(self.asked["max_tokens"])
        limit = getattr(network.text_config, "max_position_embeddings", None)
        longest = max(map(len, ids))
        if limit is not None and longest + most > limit:
            raise BadInput(
                f"{network.place}: a prompt of {longest} tokens and a reply of up to {most} are more than the {limit} "
                "that the model reads; lower decoding.max_tokens"
            )
        padded = torch.full((len(ids), longest), network.tokenizer.pad_token_id)
        mask = torch.zeros_like(padded)
        for row, tokens in enumerate(ids):
            padded[row, longest - len(tokens) :] = torch.tensor(tokens)
            mask[row, longest - len(tokens) :] = 1
        draws = Draws(
            network.suppressed,
            [content_hash([network.model.decoding.seed, call.key, attempt]) for call in calls],
            self.temperature,
            float(self.asked.get("top_p", 1.0)),
        )

        def draw(_: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            return draws.scores(scores, range(len(calls)))

        with torch.inference_mode():
            output = network.network.generate(
                input_ids=padded.to(network.device),
                attention_mask=mask.to(network.device),
                generation_config=transformers.GenerationConfig(
                    max_new_tokens=most,
                    do_sample=False,
                    eos_token_id=sorted(network.stops),
                    pad_token_id=network.tokenizer.pad_token_id,
                ),
                logits_processor=[hugging_face.LogitsProcessor(grammar), draw],
            )
        seconds = (time.perf_counter() - began) / len(calls)
        return [self._reply(network, output[row, longest:].tolist(), len(ids[row]), seconds) for row in range(len(ids))]

    def _tokens(self, network: Network, call: Call) -> list[int]:
        conversation = [
            {**message, "content": [{"type": "text", "text": message["content"]}]} if network.sees else message
            for message in call.said()
        ]
        text = network.processor.apply_chat_template(
            conversation, tokenize=False, add_generation_prompt=True, enable_thinking=self.model.thinking
        )
        begin = network.tokenizer.bos_token
        adds = network.sees and not (begin is not None and text.startswith(begin))
        tokens: list[int] = network.tokenizer(text, add_special_tokens=adds)["input_ids"]
        return tokens

    def _reply(self, network: Network, tokens: list[int], prompt: int, seconds: float) -> Reply:
        stop = next((place for place, token in enumerate(tokens) if token in network.stops), None)
        return Reply(
            status="answered",
            text=network.tokenizer.decode(tokens[:stop], skip_special_tokens=True).strip(),
            finish_reason="length" if stop is None else "stop",
            served_by=self.model.weights,
            prompt_tokens=prompt,
            completion_tokens=len(tokens[:stop]),
            seconds=round(seconds, 3),
        )
