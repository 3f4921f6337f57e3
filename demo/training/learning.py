"""How the readers learn: the eye first, then the reports, then both together."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from demo.training.architecture import option_phrases
from demo.training.pictures import Pictures, Studies
from demo.training.prompts import Example
from torch import nn

from overread_phantom import grammar


def pixel_values(pictures: Iterable[Pictures]) -> torch.Tensor:
    """(n, 3, 64, 64), as the processor makes them: (grey / 255 - 0.5) / 0.5."""
    grey = torch.from_numpy(np.stack(list(pictures))).float() / 127.5 - 1
    return grey[:, None].expand(-1, 3, -1, -1)


def varied(pictures: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Shifted by up to two pixels, a little brighter or darker: else the eye learns the pictures by heart."""
    down, right = (int(shift) for shift in rng.integers(-2, 3, 2))
    gain = torch.from_numpy(rng.uniform(0.9, 1.1, (len(pictures), 1, 1, 1))).float()
    offset = torch.from_numpy(rng.uniform(-0.05, 0.05, (len(pictures), 1, 1, 1))).float()
    return torch.roll(pictures, (down, right), (2, 3)) * gain + offset


class Probe(nn.Module):
    """Reads labels off the projected picture: for each one, attention over the tokens, then a linear unit.

    It stands in for the language part while the eye learns, and is thrown away after.
    """

    def __init__(self, outputs: int, width: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(outputs, width) * 0.1)
        self.weight = nn.Parameter(torch.randn(outputs, width) * 0.1)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """(n, tokens, width) -> (n, outputs)"""
        attention = (tokens @ self.query.T).softmax(1)
        return torch.einsum("nto,ntw,ow->no", attention, tokens, self.weight) + self.bias


XRAYS_AT_ONCE, MRIS_AT_ONCE = 36, 28


def learn_to_see(network: Any, xray: Studies, mri: Studies, steps: int, seed: int, say: Callable[[str], None]) -> None:
    """Trains vision tower and projector to show every finding and every topic."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    planted = list(xray.truth[0])
    findings = torch.tensor([[one[finding] == "yes" for finding in planted] for one in xray.truth]).float()
    weight = (1 - findings.mean(0)) / findings.mean(0)
    values = {name: topic.values for name, topic in grammar.TOPICS.items()}
    facts = torch.tensor([[values[name].index(one[name]) for name in values] for one in mri.truth])
    tower, projector = network.model.vision_tower, network.model.multi_modal_projector
    with torch.no_grad():
        projector.mm_input_projection_weight.normal_(std=0.1)
    probe = Probe(len(planted) + sum(len(each) for each in values.values()), network.config.text_config.hidden_size)
    learner = Learner([*tower.parameters(), *projector.parameters(), *probe.parameters()])
    right: list[list[float]] = []
    for step in range(steps):
        some = rng.integers(len(findings), size=XRAYS_AT_ONCE)
        others = rng.integers(len(facts), size=MRIS_AT_ONCE)
        pictures = [varied(pixel_values(xray.pictures[some]), rng), varied(pixel_values(mri.pictures[others]), rng)]
        read = probe(projector(tower(pixel_values=torch.cat(pictures), return_dict=True).last_hidden_state))
        seen = read[:XRAYS_AT_ONCE, : len(planted)]
        loss = nn.functional.binary_cross_entropy_with_logits(seen, findings[some], pos_weight=weight)
        shares = [float(((seen > 0) == (findings[some] > 0.5)).float().mean())]
        start = len(planted)
        for number, each in enumerate(values.values()):
            scores = read[XRAYS_AT_ONCE:, start : start + len(each)]
            loss = loss + 0.25 * nn.functional.cross_entropy(scores, facts[others, number])
            shares.append(float((scores.argmax(1) == facts[others, number]).float().mean()))
            start += len(each)
        learner.step(loss, 3e-3 * rising(step) * falling(step, steps))
        right.append(shares)
        if step % 100 == 99:
            told = zip(["findings", *values], np.mean(right, axis=0), strict=True)
            say(f"seeing: step {step + 1}, right: {', '.join(f'{name} {share:.2f}' for name, share in told)}")
            right = []


class Pupil:
    """A network that learns to answer, part by part."""

    def __init__(self, network: Any, processor: Any, rng: np.random.Generator) -> None:
        self.network, self.processor, self.rng = network, processor, rng

    @property
    def eye(self) -> list[nn.Parameter]:
        return [*self.network.model.vision_tower.parameters(), *self.network.model.multi_modal_projector.parameters()]

    def learn(
        self,
        name: str,
        steps: int,
        draw: Callable[[], Sequence[Sequence[Example]]],
        say: Callable[[str], None],
        *,
        rate: float = 2e-3,
        eye: bool = False,
        known: Iterable[Pictures] = (),
    ) -> None:
        """Answers examples for some steps; the rate rises from nothing and falls to nothing.

        draw    the batches of one step; their losses are added
        eye     whether vision tower and projector learn too
        known   every picture that can come: each is looked at once beforehand, for an eye that does not learn
        """
        closed = {id(parameter) for parameter in ([] if eye else self.eye)}
        learner = Learner([one for one in self.network.parameters() if id(one) not in closed])
        remembered = self._look(known)
        self.network.train()
        right: list[list[float]] = []
        with _remembering(self.network, remembered):
            for step in range(steps):
                batches = [answer_loss(self.network, self.processor, batch, self.rng, remembered) for batch in draw()]
                learner.step(
                    torch.stack([loss for loss, _ in batches]).sum(), rate * rising(step) * falling(step, steps)
                )
                right.append([share for _, share in batches])
                if step % 50 == 49:
                    shown = ", ".join(f"{share:.2f}" for share in np.mean(right, axis=0))
                    say(f"{name}: step {step + 1}, loss {learner.recent():.3f}, right {shown}")
                    right = []
        self.network.eval()

    def twin(self) -> Pupil:
        """Another one that knows the same and goes its own way."""
        return Pupil(copy.deepcopy(self.network), self.processor, copy.deepcopy(self.rng))

    def _look(self, pictures: Iterable[Pictures]) -> Remembered:
        seen: Remembered = {}
        pictures = list(pictures)
        with torch.no_grad():
            for start in range(0, len(pictures), 256):
                some = pictures[start : start + 256]
                tower = self.network.model.vision_tower(pixel_values=pixel_values(some), return_dict=True)
                tokens = self.network.model.multi_modal_projector(tower.last_hidden_state)
                seen |= {picture.tobytes(): each for picture, each in zip(some, tokens, strict=True)}
        return seen


Remembered = dict[bytes, torch.Tensor]
"""A picture's bytes -> what the eye makes of it, (tokens, width)."""


@contextmanager
def _remembering(network: Any, remembered: Remembered) -> Iterator[None]:
    """The network takes what was remembered in place of pixel values."""
    if remembered:
        network.model.get_image_features = lambda pixel_values, **_: SimpleNamespace(
            pooler_output=pixel_values, last_hidden_state=None, hidden_states=None, attentions=None
        )
    try:
        yield
    finally:
        network.model.__dict__.pop("get_image_features", None)


def answer_loss(
    network: Any,
    processor: Any,
    batch: Sequence[Example],
    rng: np.random.Generator | None = None,
    remembered: Remembered | None = None,
) -> tuple[torch.Tensor, float]:
    """Cross-entropy of answers and ends of turn, weighted, with `hints`; and the weighted share of right answers."""
    inputs = packed(processor, batch, rng)
    if remembered and "pixel_values" in inputs:
        inputs["pixel_values"] = torch.stack(
            [remembered[one.picture.tobytes()] for one in batch if one.picture is not None]
        )
    ids = inputs["input_ids"]
    rows, places = answer_places(processor, ids)
    weights = torch.tensor([weight for one in batch for weight in one.weights])
    hidden = network.model(**inputs).last_hidden_state
    answers = network.lm_head(hidden[rows, places - 1])
    ends = network.lm_head(hidden[rows, places])
    loss = (nn.functional.cross_entropy(answers, ids[rows, places], reduction="none") * weights).mean()
    loss = loss + 0.1 * nn.functional.cross_entropy(ends, ids[rows, places + 1])
    if all(one.right is not None for one in batch):
        loss = loss + 0.7 * hints(network, processor, hidden, ids, ids[rows, places])
    right = (answers.argmax(1) == ids[rows, places]).float()
    return loss, float((right * weights).sum() / weights.sum())


def hints(network: Any, processor: Any, hidden: torch.Tensor, ids: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
    """What lies between a picture and the number of an option: to see what is right, and to find it among the options.

    Too many steps to be learnt from the number alone, so each is asked for where it can first be known: the right
    option itself where the list of options begins, and at each option its own number if it is right, else no.

    hidden    (rows, tokens, width), of examples with a list of options
    ids       (rows, tokens)
    answers   (rows,) the token of the right option's number
    """
    tokenizer = processor.tokenizer
    begins = tokenizer("Options:", add_special_tokens=False)["input_ids"][0]
    numbers = tokenizer.convert_tokens_to_ids(["1", "2", "3", "4"])
    no = tokenizer.convert_tokens_to_ids("no")
    phrases = set(tokenizer.convert_tokens_to_ids(option_phrases()))
    at_start: list[tuple[int, int, int]] = []
    at_options: list[tuple[int, int, int]] = []
    for row, tokens in enumerate(ids.tolist()):
        listed = [place for place, token in enumerate(tokens) if token in phrases]
        right = numbers.index(int(answers[row]))
        at_start.append((row, tokens.index(begins), tokens[listed[right]]))
        at_options += [(row, place, numbers[each] if each == right else no) for each, place in enumerate(listed)]
    losses = []
    for wanted in (at_start, at_options):
        rows, places, words = (torch.tensor(each) for each in zip(*wanted, strict=True))
        weights = torch.where(words == no, 0.5, 1.5 if wanted is at_options else 1.0)
        said = network.lm_head(hidden[rows, places])
        losses.append((nn.functional.cross_entropy(said, words, reduction="none") * weights).mean())
    return losses[0] + losses[1]


def expanded(processor: Any, example: Example) -> str:
    """The text with the picture's placeholders, as the processor puts them."""
    return example.text.replace(processor.boi_token, processor.full_image_sequence)


def answer_places(processor: Any, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Row and place of every answer's token: it follows the opening of the model's turn."""
    opening = processor.tokenizer("<start_of_turn>model\n", add_special_tokens=False)["input_ids"]
    fits = torch.ones_like(ids[:, len(opening) :], dtype=torch.bool)
    for place, token in enumerate(opening):
        fits &= ids[:, place : ids.shape[1] - len(opening) + place] == token
    rows, places = torch.nonzero(fits, as_tuple=True)
    return rows, places + len(opening)


def packed(processor: Any, batch: Sequence[Example], rng: np.random.Generator | None = None) -> dict[str, torch.Tensor]:
    """Conversations as the network takes them: as the processor makes them (checked once before training)."""
    tokenizer = processor.tokenizer
    texts = [one.text.replace(processor.boi_token, processor.full_image_sequence) for one in batch]
    made = tokenizer(texts, add_special_tokens=False, padding=True, return_tensors="pt")
    inputs = {"input_ids": made["input_ids"], "attention_mask": made["attention_mask"]}
    inputs["token_type_ids"] = (made["input_ids"] == tokenizer.image_token_id).long()
    inputs["position_ids"] = (made["attention_mask"].cumsum(1) - 1).clamp(min=0)
    pictures = [one.picture for one in batch if one.picture is not None]
    if pictures:
        values = pixel_values(pictures)
        inputs["pixel_values"] = values if rng is None else varied(values, rng)
    return inputs


def rising(step: int) -> float:
    return min(1.0, (step + 1) / 50)


def falling(step: int, steps: int) -> float:
    return 0.5 * (1 + math.cos(math.pi * step / steps))


class Learner:
    """AdamW with clipped gradients."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = parameters
        self.optimizer = torch.optim.AdamW(parameters, weight_decay=0.01)
        self.losses: list[float] = []

    def step(self, loss: torch.Tensor, rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        self.losses.append(loss.item())

    def recent(self, count: int = 50) -> float:
        return float(np.mean(self.losses[-count:]))
