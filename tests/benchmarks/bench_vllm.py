"""Back end `vllm`, against bare vLLM with the same prompts on the same engine. Runs in vLLM's environment."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from pathlib import Path

from benchmarks.bench_prefixes import xray_trials
from benchmarks.conftest import Bench
from data.checkpoints import make_checkpoint
from overread.core.records import write_trials

ROOT = Path(__file__).resolve().parents[2]


def bench_back_end_against_bare_vllm(bench: Bench, tmp_path: Path) -> None:
    python = Path(os.environ.get("OVERREAD_VLLM_PYTHON") or ROOT / ".venv-vllm" / "bin" / "python")
    assert python.exists(), f"no {python}: `make vllm` makes it"
    kind = "llava-next"
    weights = make_checkpoint(kind, tmp_path / kind, hidden=bench.size(256, 64), image_tokens=64)
    trials = xray_trials(tmp_path, bench.size(12, 3))
    write_trials(trials, tmp_path / "trials" / "s" / "run-1.parquet")
    paths = os.pathsep.join([str(ROOT / "workflow"), str(ROOT / "tests")])
    environment = {
        **os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    }  # fmt: skip
    done = subprocess.run(
        [str(python), str(ROOT / "tests/data/vllm_bench.py"), str(weights), str(tmp_path / "trials/s/run-1.parquet"),
         str(bench.size(4, 1))],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.strip().splitlines()[-1])
    assert seen["same"] == seen["trials"]
    bench.measured(
        f"{seen['trials']} trials, {kind}", statistics.median(seen["processor"]["back end"]), "bare vLLM",
        statistics.median(seen["processor"]["bare"]), expected=0.97, limit=1.0,
    )  # fmt: skip
