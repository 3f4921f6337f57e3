"""What answering cost: of every job its last whole line, summed; and weights that are hashed once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from overread.backends import weights as of_weights
from overread.backends.base import load
from overread.backends.transformers.section import TransformersModel
from overread.backends.weights import HashCache, hub_commit, pinned
from overread.core import account as accounts
from overread.core.account import Account, Cost, Meter, read_cost, read_costs, summed, write_cost
from overread.core.errors import BadInput


def spend(account: Account, tokens: int) -> None:
    account.prompt_tokens += tokens
    account.prefilled_tokens += tokens // 2
    account.peak_bytes = max(account.peak_bytes, tokens)


def test_what_several_jobs_spent_is_summed(tmp_path: Path) -> None:
    path, account = tmp_path / "run-1.account.jsonl", Account(device="CPU")
    for tokens in (100, 40):
        with Meter(path, account) as meter:
            spend(account, tokens)
            meter.answered()
    total = read_costs(path)
    assert (total.prompt_tokens, total.prefilled_tokens, total.requests, total.jobs) == (140, 70, 2, 2)
    assert (total.device, total.peak_bytes, total.gpu_hours) == ("CPU", 100, 0)
    assert len(total.where) == 1


def test_a_back_end_that_counted_before_counts_only_what_is_new(tmp_path: Path) -> None:
    account = Account(device="GPU", gpus=2)
    spend(account, 1000)
    with Meter(tmp_path / "a.jsonl", account):
        spend(account, 10)
    assert read_costs(tmp_path / "a.jsonl").prompt_tokens == 10


def test_a_killed_job_has_spent_what_its_last_whole_line_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "WRITTEN_EVERY", 0.0)
    path, account = tmp_path / "a.jsonl", Account(device="GPU", gpus=1)
    meter = Meter(path, account)
    meter.__enter__()
    for _ in range(3):
        spend(account, 8)
        meter.answered()
    # Killed here: no last line, and a torn one.
    with path.open("a") as file:
        file.write('{"job": "x", "spen')
    with Meter(path, Account(device="Other GPU", gpus=1)) as other:
        other.answered()
    total = read_costs(path)
    assert (total.prompt_tokens, total.requests, total.jobs, total.device) == (24, 4, 2, "GPU + Other GPU")


def test_gpu_hours_are_seconds_times_gpus() -> None:
    total = summed(
        [Cost(gpus=2, seconds=1800, gpu_hours=1.0, jobs=1), Cost(gpus=1, seconds=3600, gpu_hours=1.0, jobs=1)]
    )
    assert (total.gpu_hours, total.seconds, total.gpus, total.jobs) == (2.0, 5400, 2, 2)


def test_no_account_is_no_cost(tmp_path: Path) -> None:
    assert read_costs(tmp_path / "none.jsonl") == Cost()


def test_a_cost_file_comes_back_as_it_was(tmp_path: Path) -> None:
    cost = Cost(device="CPU", prompt_tokens=7, seconds=1.25, where=["here"])
    write_cost(cost, tmp_path / "run-1.cost.json")
    assert read_cost(tmp_path / "run-1.cost.json") == cost
    (tmp_path / "run-1.cost.json").write_text("{")
    with pytest.raises(BadInput, match=r"run-1\.cost\.json: not a cost file.*delete it"):
        read_cost(tmp_path / "run-1.cost.json")


def counting(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    hashed: list[str] = []
    digest = of_weights.hashlib.file_digest

    def counted(file: object, name: str) -> object:
        hashed.append(Path(file.name).name)  # type: ignore[attr-defined]
        return digest(file, name)  # type: ignore[arg-type]

    monkeypatch.setattr(of_weights.hashlib, "file_digest", counted)
    return hashed


def test_weights_are_hashed_once_and_again_when_they_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "weights"
    folder.mkdir()
    files = {name: folder / name for name in ("a.safetensors", "config.json")}
    for path in files.values():
        path.write_bytes(path.name.encode())
    hashed = counting(monkeypatch)
    cache = HashCache(tmp_path / "cache")
    first = cache.of(files)
    assert cache.of(files) == first and HashCache(tmp_path / "cache").of(files) == first
    assert hashed == ["a.safetensors", "config.json"]
    # Same size, and a modification time that was set back: the change is seen all the same.
    state = files["a.safetensors"].stat()
    files["a.safetensors"].write_bytes(b"b.safetensors")
    os.utime(files["a.safetensors"], ns=(state.st_atime_ns, state.st_mtime_ns))
    changed = cache.of(files)
    assert changed["a.safetensors"] != first["a.safetensors"] and changed["config.json"] == first["config.json"]
    assert hashed == ["a.safetensors", "config.json", "a.safetensors"]


def test_a_spoilt_or_unwritable_cache_costs_time_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.safetensors"
    file.write_bytes(b"weights")
    cache = HashCache(tmp_path / "cache")
    right = cache.of({"a": file})
    [kept] = (tmp_path / "cache").iterdir()
    kept.write_text("{not json")
    assert cache.of({"a": file}) == right
    (tmp_path / "a file").write_text("")
    assert HashCache(tmp_path / "a file" / "below").of({"a": file}) == right


def test_a_hub_revision_is_the_commit_that_the_cache_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    commit = "0123456789abcdef0123456789abcdef01234567"
    refs = tmp_path / "models--some--model" / "refs"
    refs.mkdir(parents=True)
    (refs / "main").write_text(commit)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    assert hub_commit("some/model", None, "m") == commit
    assert hub_commit("some/model", "f" * 40, "m") == "f" * 40
    with pytest.raises(BadInput, match=r"'m': some/model at revision v2 is not in the hub's cache .*hf download"):
        hub_commit("some/model", "v2", "m")


def test_a_branch_is_pinned_for_the_request_key_and_the_loader_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the branch moves on, the same model file stands for another model."""
    from huggingface_hub import constants

    refs = tmp_path / "models--some--model" / "refs"
    refs.mkdir(parents=True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    model = TransformersModel(label="m", backend="transformers", takes={"images": 1}, weights="some/model")
    identities = []
    for commit in ("1" * 40, "2" * 40):
        (refs / "main").write_text(commit)
        backend = load(model, "m")
        assert backend.model.revision == commit  # type: ignore[attr-defined]
        identities.append(backend.identity())
    assert identities[0] != identities[1]
    assert pinned(model.model_copy(update={"weights": str(tmp_path)}), "m").revision is None
    with pytest.raises(BadInput, match="other/model at revision main is not in the hub's cache"):
        load(model.model_copy(update={"weights": "other/model"}), "m")


def test_the_account_file_is_one_object_a_line(tmp_path: Path) -> None:
    with Meter(tmp_path / "a.jsonl", Account()):
        pass
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert len(lines) == 2 and len({line["job"] for line in lines}) == 1
