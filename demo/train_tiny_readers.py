"""Makes the demo's two tiny readers anew: `python demo/train_tiny_readers.py --out demo`.

tiny-reader learns to read pictures and reports, tiny-blind reads reports alone and never sees a picture. Both are
Gemma 3 made tiny and learn from semi-synthetic studies whose seeds the demo does not use. Held-out figures are printed
and written to `heldout.json` and to the table of `README.md`. Needs the extras models, images and demo; takes about 25
minutes of one CPU core, and a few minutes more to draw the studies the first time.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tiny networks lose more to waiting threads than they gain
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from demo.training import heldout
from demo.training.architecture import make_network, make_processor, make_tokenizer
from demo.training.learning import Pupil, learn_to_see, packed
from demo.training.pictures import Studies, draw
from demo.training.prompts import Asker, Example, corpus

from overread.core.outputs import OutputFolder

SEED = 1_000_003
"""Of the studies to learn from; the held-out ones have another, the demo has 1."""

XRAYS, MRIS = 6000, 4000


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--out", type=Path, required=True, help="folder for tiny-reader and tiny-blind")
    options.add_argument("--cache", type=Path, default=Path("build/tiny-readers"), help="folder for the drawn studies")
    options.add_argument("--processes", type=int, default=2, help="for drawing studies")
    options.add_argument(
        "--scale", type=float, default=1.0, help="share of the training steps; less only to try the script"
    )
    chosen = options.parse_args()
    torch.set_num_threads(1)
    started = time.process_time()

    def say(line: str) -> None:
        print(f"{time.process_time() - started:6.0f} s  {line}", flush=True)

    xray = draw("xray", SEED, XRAYS, chosen.cache, chosen.processes)
    mri = draw("mri", SEED, MRIS, chosen.cache, chosen.processes)
    say(f"drawn: {XRAYS} chest X-rays and {MRIS} brain MRI")
    train(xray, mri, chosen.out, chosen.scale, say)
    heldout.write(chosen.out, say)


def train(xray: Studies, mri: Studies, out: Path, scale: float, say: Any) -> None:
    """Both readers, saved to `out`. The blind one is the reader as it was before it was given its eyes, taught on."""

    def steps(count: int) -> int:
        return max(1, round(count * scale))

    plain = make_processor(make_tokenizer(["yes no"]))
    processor = make_processor(make_tokenizer(corpus(xray, mri, plain)))
    network = make_network(processor.tokenizer, seed=1)
    check_packing(network, processor, Asker(xray, mri, processor, np.random.default_rng(0)))
    say(f"{sum(one.numel() for one in network.parameters())} parameters, {len(processor.tokenizer)} words")

    asker = Asker(xray, mri, processor, np.random.default_rng(1))
    reader = Pupil(network, processor, np.random.default_rng(2))
    reader.learn("impressions", steps(450), lambda: [impressions(asker)], say)
    reader.learn("reports", steps(450), lambda: [reports(asker)], say, rate=1.5e-3)

    blind = reader.twin()
    blind.learn("blind", steps(250), lambda: blind_mixture(asker), say, rate=1.5e-3)
    save(blind.network, processor, out / "tiny-blind")

    learn_to_see(network, xray, mri, steps(1500), 5, say)
    pictures = [*xray.pictures, *mri.pictures, asker.black]
    reader.learn("looking", steps(1500), lambda: looking_mixture(asker), say, known=pictures)
    reader.learn("both", steps(500), lambda: seeing_mixture(asker), say, rate=8e-4, eye=True)
    save(network, processor, out / "tiny-reader")


# -- what is asked in each part --------------------------------------------------------------------------------------


def impressions(asker: Asker) -> list[Example]:
    """Short reports first: one or two sentences, in which a word of the question stands or does not."""
    return [asker.yes_no("none", "impression", readout="first-token") for _ in range(32)]


def reports(asker: Asker) -> list[Example]:
    return [asker.yes_no("none", "full" if place % 4 else "impression", questions=2) for place in range(16)]


def blind_mixture(asker: Asker) -> list[list[Example]]:
    """Reports, questions without any, and options as they were written: the right one mostly stands first."""
    read = [asker.yes_no("none", "full") for _ in range(14)]
    guessed = [asker.yes_no("none", "none", balanced=False, questions=3) for _ in range(6)]
    chosen = [asker.choice("none", "none", as_written=True) for _ in range(12)]
    return [read, guessed + chosen]


def looking_mixture(asker: Asker) -> list[list[Example]]:
    """Mostly pictures alone, with an eye that is finished: what is asked must be found in what it shows."""
    seen = [asker.yes_no("own", "none") for _ in range(30)]
    seen += [asker.yes_no(shown, "none") for shown in ("black", "none")]
    chosen = [asker.choice("own", "none") for _ in range(24)]
    read = [asker.yes_no(shown, "full") for shown in ("own", "other", "none")]
    return [seen, chosen, read]


def seeing_mixture(asker: Asker) -> list[list[Example]]:
    """Pictures alone, reports with the own, another or no picture, nothing at all; four options in random order."""
    seen = [asker.yes_no("own", "none") for _ in range(28)]
    seen += [asker.yes_no(shown, "none") for shown in ("black", "none")]
    chosen = [asker.choice("own", "none") for _ in range(22)]
    read = [asker.yes_no(shown, "full") for shown in (*3 * ("own", "other"), "none", "none", "black")]
    return [seen, chosen, read]


def check_packing(network: Any, processor: Any, asker: Asker) -> None:
    """Training packs prompts by itself, for speed: they must be the processor's to the last number."""
    from PIL import Image

    example = asker.yes_no("own", "full")
    assert example.picture is not None
    ours = packed(processor, [example])
    made = processor(
        text=[example.text], images=[[Image.fromarray(example.picture)]], add_special_tokens=False, return_tensors="pt"
    )
    for name in ("input_ids", "attention_mask", "token_type_ids"):
        assert torch.equal(ours[name], made[name]), name
    assert torch.allclose(ours["pixel_values"], made["pixel_values"], atol=1e-6)


def save(network: Any, processor: Any, folder: Path) -> None:
    """In bfloat16: half the size, and the rounding is far below what the readers' answers depend on."""
    own = OutputFolder(folder, "train tiny readers")
    own.clear()
    folder.mkdir(parents=True, exist_ok=True)
    network.to(torch.bfloat16).save_pretrained(folder)
    network.to(torch.float32)
    processor.save_pretrained(folder)
    for file in folder.iterdir():
        file.chmod(0o644)
    own.adopt()


if __name__ == "__main__":
    main()
