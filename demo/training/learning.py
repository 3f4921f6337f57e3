"""How the readers learn: the eye first, then the reports, then both together."""

from __future__ import annotations

import math
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
    width = network.config.text_config.hidden_size
    with torch.no_grad():
        projector.mm_input_projection_weight.normal_(std=0.1)
    probe = Probe(len(planted) + sum(len(each) for each in values.values()), width)
    learner = Learner([*tower.parameters(), *projector.parameters(), *probe.parameters()], 3e-3, steps)
    for step in range(steps):
        some, others = rng.integers(len(findings), size=48), rng.integers(len(facts), size=16)
        pictures = torch.cat(
            [varied(pixel_values(xray.pictures[some]), rng), varied(pixel_values(mri.pictures[others]), rng)]
        )
        read = probe(projector(tower(pixel_values=pictures, return_dict=True).last_hidden_state))
        loss = nn.functional.binary_cross_entropy_with_logits(
            read[:48, : len(planted)], findings[some], pos_weight=weight
        )
        start = len(planted)
        for number, each in enumerate(values.values()):
            scores = read[48:, start : start + len(each)]
            loss = loss + 0.1 * nn.functional.cross_entropy(scores, facts[others, number])
            start += len(each)
        learner.step(loss)
        if step % 100 == 99:
            say(f"seeing: step {step + 1}, loss {learner.recent():.3f}")


def learn_to_answer(
    network: Any,
    processor: Any,
    draw: Callable[[np.random.Generator], Sequence[Sequence[Example]]],
    steps: int,
    seed: int,
    say: Callable[[str], None],
    *,
    rate: float = 2e-3,
    decay: bool = True,
    frozen: Sequence[nn.Parameter] = (),
    name: str = "answering",
) -> None:
    """Trains the network to give the answers of examples.

    draw     the batches of one step, drawn from a generator; their losses are added
    decay    whether the rate falls to nothing towards the end; not where another part follows
    frozen   parameters that stay as they are
    """
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    still = {id(parameter) for parameter in frozen}
    learner = Learner([one for one in network.parameters() if id(one) not in still], rate, steps, decay)
    network.train()
    right: list[float] = []
    for step in range(steps):
        losses = []
        for batch in draw(rng):
            loss, share = answer_loss(network, processor, batch, rng)
            losses.append(loss)
            right.append(share)
        learner.step(torch.stack(losses).sum())
        if step % 50 == 49:
            say(f"{name}: step {step + 1}, loss {learner.recent():.3f}, right {np.mean(right):.3f}")
            right = []
    network.eval()


def answer_loss(
    network: Any, processor: Any, batch: Sequence[Example], rng: np.random.Generator | None = None
) -> tuple[torch.Tensor, float]:
    """Cross-entropy of answers and ends of turn, weighted, and the weighted share of right answers."""
    inputs = packed(processor, batch, rng)
    ids = inputs["input_ids"]
    rows, places = answer_places(processor, ids)
    weights = torch.tensor([weight for one in batch for weight in one.weights])
    hidden = network.model(**inputs).last_hidden_state
    answers = network.lm_head(hidden[rows, places - 1])
    ends = network.lm_head(hidden[rows, places])
    loss = (nn.functional.cross_entropy(answers, ids[rows, places], reduction="none") * weights).mean()
    loss = loss + 0.1 * nn.functional.cross_entropy(ends, ids[rows, places + 1])
    right = (answers.argmax(1) == ids[rows, places]).float()
    return loss, float((right * weights).sum() / weights.sum())


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


class Learner:
    """AdamW with clipped gradients; its rate rises over 50 steps and then stays, or falls along a half cosine."""

    def __init__(self, parameters: Sequence[nn.Parameter], rate: float, steps: int, decay: bool = True) -> None:
        self.parameters = parameters
        self.optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=0.01)

        def share(step: int) -> float:
            fallen = 0.5 * (1 + math.cos(math.pi * step / steps)) if decay else 1.0
            return min(1.0, (step + 1) / 50) * fallen

        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, share)
        self.losses: list[float] = []

    def step(self, loss: torch.Tensor) -> None:
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        self.schedule.step()
        self.losses.append(loss.item())

    def recent(self, count: int = 50) -> float:
        return float(np.mean(self.losses[-count:]))
