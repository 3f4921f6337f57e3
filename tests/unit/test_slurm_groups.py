"""Snakemake's own forming of groups, on stand-ins for jobs: what has joined since the last time is assigned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import snakemake.api  # first: it imports the others, which import one another  # noqa: F401
from snakemake.dag import DAG
from snakemake.jobs import GroupJobFactory

from overread.slurm import group_afresh


class Standing:
    """A job as far as groups look at it."""

    def __init__(self, dag: Any, group: str) -> None:
        self.dag, self.group = dag, group


def formed(changed: bool, components: dict[str, int] | None = None) -> Any:
    """A DAG that has nothing but its groups."""
    made: Any = type("Formed", (DAG,), {})
    if changed:
        group_afresh(made)
    dag = object.__new__(made)
    dag.depends, dag._running = {}, set()
    dag.group_job_factory = GroupJobFactory()
    dag.workflow = SimpleNamespace(
        global_resources={},
        parent_groupids={},
        execution_settings=SimpleNamespace(attempt=1),
        group_settings=SimpleNamespace(group_components=components or {}),
    )
    made.needrun_jobs = lambda self: list(self.depends)
    made.bfs = lambda self, _, job, stop: chain(self.depends, job)
    made.needrun = lambda self, job: True
    made.validate_group = lambda self, group: None
    made._check_groups = lambda self: None
    made.toposorted = lambda self, jobs, inherit_pipe_dependencies: [list(jobs)]
    dag._dependencies = None
    return dag


def chain(depends: dict[Standing, Sequence[Standing]], job: Standing) -> Iterator[Standing]:
    yield job
    for other in depends[job]:
        yield from chain(depends, other)


def form(dag: Any, jobs: Iterable[tuple[Standing, Sequence[Standing]]]) -> None:
    dag.depends = dict(jobs)
    dag.update_groups()


@pytest.mark.parametrize("changed", [False, True])
def test_a_job_that_joins_a_group_after_a_checkpoint_is_assigned_to_it(changed: bool):
    """Without the change it is not: a start would end in a KeyError. When this fails for False, the change can go."""
    dag = formed(changed)
    questions, index = Standing(dag, "preparation"), Standing(dag, "preparation")
    form(dag, [(questions, [])])
    form(dag, [(questions, []), (index, [questions])])
    assert (index in dag._group) == changed
    if changed:
        assert dag._group[index] is dag._group[questions]
        assert set(dag._group[index].jobs) == {questions, index}


def test_a_group_at_work_stays_the_same():
    dag = formed(True)
    one = Standing(dag, "preparation")
    form(dag, [(one, [])])
    group = dag._group[one]
    dag._running = {group}
    form(dag, [(one, [])])
    assert dag._group[one] is group


def test_groups_of_many_are_not_merged_once_more_each_time():
    dag = formed(True, {"rendering": 2})
    jobs = [(Standing(dag, "rendering"), []) for _ in range(4)]
    for _ in range(3):
        form(dag, jobs)
        assert sorted(len(list(group.jobs)) for group in set(dag._group.values())) == [2, 2]
