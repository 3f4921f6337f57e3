"""How the readers learn: the eye first, then the reports, then both together."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from demo.training.pictures import Pictures, Studies
from demo.training.prompts import Example
from torch import nn

from overread.studies.phantom import grammar


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
    """A network that learns to answer in several parts, with one optimizer through all of them.

    A fresh optimizer would take large steps at the start of every part and undo much of the one before.
    """

    def __init__(self, network: Any, processor: Any, rng: np.random.Generator) -> None:
        self.network, self.processor, self.rng = network, processor, rng
        self.learner = Learner(list(network.parameters()))

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
        first: bool = False,
        last: bool = False,
        eye: bool = False,
    ) -> None:
        """Answers examples for some steps.

        draw    the batches of one step; their losses are added
        first   the rate rises from nothing
        last    the rate falls to nothing
        eye     whether vision tower and projector learn too
        """
        for parameter in self.eye:
            parameter.requires_grad_(eye)
        self.network.train()
        right: list[list[float]] = []
        for step in range(steps):
            batches = [answer_loss(self.network, self.processor, batch, self.rng, naming=True) for batch in draw()]
            part = (rising(step) if first else 1.0) * (falling(step, steps) if last else 1.0)
            self.learner.step(torch.stack([loss for loss, _ in batches]).sum(), rate * part)
            right.append([share for _, share in batches])
            if step % 50 == 49:
                shown = ", ".join(f"{share:.2f}" for share in np.mean(right, axis=0))
                say(f"{name}: step {step + 1}, loss {self.learner.recent():.3f}, right {shown}")
                right = []
        for parameter in self.eye:
            parameter.requires_grad_(True)
        self.network.eval()

    def twin(self) -> Pupil:
        """Another one that knows the same and goes its own way."""
        return copy.deepcopy(self, {id(self.processor): self.processor})


def answer_loss(
    network: Any,
    processor: Any,
    batch: Sequence[Example],
    rng: np.random.Generator | None = None,
    *,
    naming: bool = False,
) -> tuple[torch.Tensor, float]:
    """Cross-entropy of answers and ends of turn, weighted, and the weighted share of right answers.

    naming   whether the lower half of the layers is to name the right option where its number will be given. To see what
             is right, to find it among the options and to give its number are three steps, too many to be learnt from
             the number alone.
    """
    inputs = packed(processor, batch, rng)
    ids = inputs["input_ids"]
    rows, places = answer_places(processor, ids)
    weights = torch.tensor([weight for one in batch for weight in one.weights])
    output = network.model(**inputs, output_hidden_states=naming)
    hidden = output.last_hidden_state
    answers = network.lm_head(hidden[rows, places - 1])
    ends = network.lm_head(hidden[rows, places])
    loss = (nn.functional.cross_entropy(answers, ids[rows, places], reduction="none") * weights).mean()
    loss = loss + 0.1 * nn.functional.cross_entropy(ends, ids[rows, places + 1])
    words = right_words(processor, batch, ids) if naming else {}
    if words:
        language = network.model.language_model
        last = {int(row): int(place) for row, place in zip(rows, places, strict=True)}
        halfway = output.hidden_states[len(language.layers) // 2]
        said = halfway[list(words), [last[row] - 1 for row in words]]
        named = network.lm_head(language.norm(said))
        loss = loss + nn.functional.cross_entropy(named, torch.tensor(list(words.values())))
    right = (answers.argmax(1) == ids[rows, places]).float()
    return loss, float((right * weights).sum() / weights.sum())


def right_words(processor: Any, batch: Sequence[Example], ids: torch.Tensor) -> dict[int, int]:
    """Row -> the word that the right option begins with, of the examples that know it."""
    texts = [expanded(processor, one) for one in batch]
    made = processor.tokenizer(texts, add_special_tokens=False, padding=True)
    words: dict[int, int] = {}
    for row, (one, text) in enumerate(zip(batch, texts, strict=True)):
        line = re.search(rf"\n{one.right}\) ", text) if one.right is not None else None
        if line is not None:
            words[row] = int(ids[row, made.char_to_token(row, line.end())])
    return words


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
    texts = [expanded(processor, one) for one in batch]
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
