"""Whether vLLM answers as transformers does, before it is believed.

Some of the job's trials are put to both, with the same weights. vLLM answers each three times: with nothing in its
caches, into the caches, and out of them. Compared are the prompt's tokens, the log-probabilities at the first position,
and of a free answer the first tokens. The canary is one of these trials once more with its pictures inverted: the same
prompt with other pictures, which a cache that does not tell pictures apart answers as before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from overread.backends.transformers.readouts import CONSTRAINED, words
from overread.backends.vllm.engine import Engine, Output
from overread.backends.vllm.reader import Reader
from overread.backends.vllm.reference import Given, Probe, pictures_of
from overread.core.errors import BadInput
from overread.core.progress import say
from overread.core.records import Trial

if TYPE_CHECKING:
    from PIL.Image import Image

    from overread.backends.transformers.prompts import Prompt


class Tolerance(NamedTuple):
    """How far log-probabilities may lie apart: each of them, and on average over all that are compared."""

    each: float
    mean: float


TOLERANCES = {
    "float32": Tolerance(1e-3, 2.5e-4),
    "float16": Tolerance(0.05, 0.0125),
    "bfloat16": Tolerance(0.4, 0.1),
}
"""By dtype. Both libraries round logits of 16 to 32 to steps of 1/8 in bfloat16 and of 1/64 in float16, and every layer
before them. Measured with random weights, 16 layers: at most 0.06 and on average 0.02 in bfloat16; 3e-6 in float32. A
picture's tokens that do not see each other (Gemma 3 on a CPU) move such a model by 0.8."""

WAYS = ("uncached", "first", "cached")
"""How vLLM is asked: with a salt of its own, then without, then once more."""


@dataclass(frozen=True)
class Asked:
    """What vLLM gave for a probe, one of the WAYS: the first position, and the beginning of a free answer."""

    first: Output
    free: Output | None = None


@dataclass(frozen=True)
class Deviation:
    """How far an answer of vLLM lies from that of transformers.

    differences   of log-probabilities, absolute
    mismatch      why they can't be the same answer, whatever the tolerance
    """

    differences: tuple[float, ...]
    mismatch: str | None = None


def chosen(trials: Sequence[Trial], count: int) -> list[Probe]:
    """`count` trials spread evenly over all, by readout and number of pictures; and one of them with other pictures."""
    ordered = sorted(trials, key=lambda trial: (trial.readout, len(trial.images)))
    count = min(count, len(ordered))
    picked = [ordered[place * len(ordered) // count] for place in range(count)]
    seen = [trial for trial in picked if trial.images] or [trial for trial in ordered if trial.images]
    probes = [Probe(trial) for trial in picked]
    if count and seen:
        probes += [*([] if seen[0] in picked else [Probe(seen[0])]), Probe(seen[0], negative=True)]
    return probes


def check(engine: Engine, reader: Reader, probes: Sequence[Probe], given: Sequence[Given], folder: Path) -> None:
    """BadInput, with both answers, if vLLM does not answer the probes as transformers did."""
    tolerance = TOLERANCES[reader.network.dtype]
    prompts = [reader.prompt(probe.trial) for probe in probes]
    pictures = [pictures_of(probe, folder) for probe in probes]
    differences: list[float] = []
    for way, outputs in zip(WAYS, _ask(engine, reader, prompts, pictures, given), strict=True):
        for probe, prompt, one, other in zip(probes, prompts, given, outputs, strict=True):
            found = deviation(one, other, tolerance)
            differences += found.differences
            worst = max(found.differences, default=0.0)
            if found.mismatch or worst > tolerance.each:
                why = found.mismatch or f"log-probabilities {worst:.4f} apart, allowed are {tolerance.each}"
                raise _stopped(reader, why, both(reader, probe, prompt, one, other, way))
    mean = sum(differences) / len(differences)
    if mean > tolerance.mean:
        why = f"log-probabilities {mean:.4f} apart on average, allowed are {tolerance.mean}"
        raise _stopped(reader, why, both(reader, probes[0], prompts[0], given[0], outputs[0], way))
    say(
        f"parity: vLLM answers {len(probes)} trials as transformers does, uncached and cached; "
        f"log-probabilities at most {max(differences):.2g} apart, {mean:.2g} on average"
    )
    _judge_canary(probes, given, tolerance)


def _stopped(reader: Reader, why: str, answers: str) -> BadInput:
    return BadInput(
        f"{reader.network.place}: vLLM does not answer as transformers does: {why}. {answers}. "
        "Use backend: transformers; parity: 0 would go on without this check"
    )


def _ask(
    engine: Engine,
    reader: Reader,
    prompts: Sequence[Prompt],
    pictures: Sequence[Sequence[tuple[str, Image]]],
    given: Sequence[Given],
) -> Iterator[list[Asked]]:
    """vLLM's outputs for all probes, in each of the WAYS."""
    for way in WAYS:
        salts = [f"parity {number} " if way == "uncached" else "" for number in range(len(prompts))]
        firsts = engine.run(
            [
                reader.request(prompt, shown, first_position(one), salt=salt)
                for prompt, shown, one, salt in zip(prompts, pictures, given, salts, strict=True)
            ]
        )
        outputs = [Asked(each) for each in firsts]
        # In a batch of its own: vLLM returns either the tokens that were asked for or the likeliest ones, not both.
        free = [number for number, prompt in enumerate(prompts) if prompt.trial.readout not in CONSTRAINED]
        longer = engine.run(
            [
                reader.request(
                    prompts[number],
                    pictures[number],
                    {"temperature": 0.0, "max_tokens": len(given[number].tokens), "logprobs": 1, **reader.ends()},
                    salt=salts[number],
                )
                for number in free
            ]
        )
        for number, output in zip(free, longer, strict=True):
            outputs[number] = Asked(outputs[number].first, output)
        yield outputs


def first_position(given: Given) -> dict[str, Any]:
    """Sampling parameters that read the log-probabilities which transformers gave for the first position."""
    return {"temperature": 0.0, "max_tokens": 1, "logprob_token_ids": sorted(given.logprobs[0])}


def deviation(given: Given, asked: Asked, tolerance: Tolerance) -> Deviation:
    """How far vLLM's answer is from that of transformers. Free answers are compared until two tokens are as likely."""
    for output in (asked.first, asked.free):
        if output is not None and output.error is not None:
            return Deviation((), f"vLLM refuses the trial ({output.error})")
    if asked.first.prompt != given.prompt:
        return Deviation(
            (), f"its prompt has {len(asked.first.prompt)} tokens, that of transformers {len(given.prompt)}"
        )
    first = asked.first.logprobs[0]
    differences = [abs(first[token] - value) for token, value in given.logprobs[0].items()]
    if asked.free is not None:
        steps = zip(given.tokens, given.logprobs, asked.free.tokens, asked.free.logprobs, strict=False)
        for position, (wanted, likely, token, own) in enumerate(steps):
            if token not in likely:
                return Deviation(tuple(differences), f"an unlikely token at position {position}")
            differences.append(abs(own[token] - likely[token]))
            if token != wanted:
                if likely[wanted] - likely[token] > 2 * tolerance.each:
                    return Deviation(tuple(differences), f"another token at position {position}")
                break
    if any(math.isnan(each) for each in differences):
        return Deviation(tuple(differences), "log-probabilities that are no numbers")
    return Deviation(tuple(differences))


def both(reader: Reader, probe: Probe, prompt: Prompt, given: Given, asked: Asked, way: str) -> str:
    """Both answers to a probe, for a person."""
    pictures = " with its pictures inverted" if probe.negative else ""
    tokens = prompt.words or sorted(given.logprobs[0], key=given.logprobs[0].__getitem__, reverse=True)[:3]
    own = asked.first.logprobs[0] if asked.first.logprobs else {}
    return (
        f"Question {probe.trial.question} of study {probe.trial.study}{pictures}: transformers gives "
        f"{_told(reader, probe.trial, tokens, given.logprobs[0], given.tokens)}, vLLM ({way}) "
        f"{_told(reader, probe.trial, tokens, own, asked.free.tokens if asked.free else asked.first.tokens)}"
    )


def _told(
    reader: Reader, trial: Trial, tokens: Sequence[int], logprobs: Mapping[int, float], answer: Sequence[int]
) -> str:
    """An answer with the log-probabilities it rests on: 'yes' (yes -0.12, no -2.31)."""
    decode = reader.network.tokenizer.decode
    names = words(trial) or [decode([token]) for token in tokens]
    text = decode(list(answer))
    if trial.readout in CONSTRAINED and logprobs:
        text = names[max(range(len(tokens)), key=lambda place: logprobs[tokens[place]])]
    listed = ", ".join(
        f"{name} {logprobs[token]:.4f}" for name, token in zip(names, tokens, strict=True) if token in logprobs
    )
    return f"{text!r} ({listed or 'nothing'})"


def _judge_canary(probes: Sequence[Probe], given: Sequence[Given], tolerance: Tolerance) -> None:
    """Says whether the canary could tell anything: whether other pictures change the answers of transformers at all."""
    plain = {probe.trial.trial: one for probe, one in zip(probes, given, strict=True) if not probe.negative}
    for probe, one in zip(probes, given, strict=True):
        if probe.negative:
            other = plain[probe.trial.trial].logprobs[0]
            shared = one.logprobs[0].keys() & other.keys()
            moved = max((abs(one.logprobs[0][token] - other[token]) for token in shared), default=math.inf)
            if moved <= 2 * tolerance.each:
                say(
                    f"parity: the canary tells little: inverting the pictures of study {probe.trial.study} moves "
                    f"log-probabilities by {moved:.2g} only"
                )
            return
    say("parity: none of the trials shows a picture, so there is no canary")
