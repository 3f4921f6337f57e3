"""The profiles, and what rules ask of them."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from snakemake_executor_plugin_slurm.partitions import get_best_partition, read_partition_file
from snakemake_executor_plugin_slurm.utils import set_gres_string
from snakemake_executor_plugin_slurm.validation import validate_slurm_extra

ROOT = Path(__file__).resolve().parents[2]
PROFILE: dict[str, Any] = yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text())
PARTITIONS = ROOT / "profiles/slurm/partitions.yaml"
RULES = {file.stem: file.read_text() for file in sorted((ROOT / "workflow/rules").glob("*.smk"))}


def pairs(key: str) -> dict[str, str]:
    """Of a list of name=value."""
    return dict(one.split("=", 1) for one in PROFILE[key])


def resource_blocks() -> list[str]:
    """The lines of each `resources:` of the rules."""
    found = []
    for text in RULES.values():
        for match in re.finditer(r"^( +)resources:\n((?:\1 .*\n)+)", text, flags=re.MULTILINE):
            found.append(match.group(2))
    return found


def test_every_rule_that_asks_for_memory_or_time_asks_for_more_at_the_next_attempt():
    blocks = resource_blocks()
    assert len(blocks) > 15
    for block in blocks:
        for name in ("mem_mb", "runtime"):
            (asked,) = re.findall(rf"^ +{name}=(.*)$", block, flags=re.MULTILINE)
            assert re.fullmatch(r"growing\(\d+\),|lambda wc, attempt.*: .* \* attempt,", asked), asked


def test_rules_do_not_name_partitions_accounts_or_gres():
    for text in RULES.values():
        assert not re.search(r"slurm_|\bgres\b|partition=", text)


def test_the_command_of_the_readme_finds_the_profile():
    assert (ROOT / "slurm").resolve() == ROOT / "profiles/slurm"
    assert (ROOT / "slurm").readlink() == Path("profiles/slurm")


def test_rules_that_are_grouped_are_there_and_say_how_much_of_a_job_they_take():
    """All that share a job run side by side, unless each says its share."""
    rules = set(re.findall(r"^ *rule (\w+):", "\n".join(RULES.values()), flags=re.MULTILINE))
    groups = pairs("groups")
    assert set(groups) <= rules
    many = {rule for rule, group in groups.items() if group in pairs("group-components")}
    for rule in many:
        (body,) = re.findall(rf"^rule {rule}:\n((?:(?: .*)?\n)+)", "\n".join(RULES.values()), flags=re.MULTILINE)
        assert re.search(r"^ +share=\d+,$", body, flags=re.MULTILINE), rule
    assert pairs("set-resource-scopes")["share"] == "local"
    assert pairs("resources")["share"] == "100"


def test_jobs_are_never_submitted_as_arrays_and_partial_files_are_never_kept():
    assert not {"slurm-array-jobs", "keep-incomplete"} & set(PROFILE)
    assert PROFILE["rerun-incomplete"] is True and PROFILE["keep-going"] is True


class Resources(dict[str, Any]):
    """As the plugin looks at them: by name, or as attributes."""

    def __getattr__(self, name: str) -> Any:
        return self.get(name)


def job(**resources: Any) -> Any:
    threads = resources.pop("threads", 1)
    return SimpleNamespace(name="job", threads=threads, resources=Resources(mem_mb=4000, runtime=60, **resources))


def partition(file: Path, asked: Any) -> str | None:
    return get_best_partition(read_partition_file(file), asked, logging.getLogger("test"))


def test_a_job_goes_where_there_are_gpus_only_if_it_asks_for_one():
    assert partition(PARTITIONS, job(gpu=0)) == "cpu"
    assert partition(PARTITIONS, job(gpu=1)) == "gpu"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The site of the example: what stands behind the comment signs."""
    lines = PARTITIONS.read_text().splitlines()
    start = lines.index("# partitions:")
    file = tmp_path / "partitions.yaml"
    file.write_text("\n".join(line.removeprefix("# ") for line in lines[start : lines.index("#", start)]))
    return file


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"gpu": 0}, "cpu"),
        ({"gpu": 1}, "l40s"),
        ({"gpu": 4}, "l40s"),
        ({"gpu": 0, "threads": 32}, "cpu"),
    ],
)
def test_the_example_sends_jobs_where_it_says(example: Path, asked: dict[str, Any], expected: str):
    assert partition(example, job(**asked)) == expected


def test_gpus_and_gres_are_spelled_as_the_comments_say():
    assert set_gres_string(job(gpu=2)).split() == ["--gpus=2"]
    assert set_gres_string(job(gpu=0, gres="gpu:1")).split() == ["--gres=gpu:1"]


def test_the_plugin_lets_the_options_pass_that_every_job_has():
    options = pairs("default-resources")["slurm_extra"].strip("'")
    assert options == "-N1 --signal=TERM@120"
    validate_slurm_extra(job(slurm_extra=options))
