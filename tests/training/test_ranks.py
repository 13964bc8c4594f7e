"""A number of ranks that does not fit the roles of a library, or the envs, is a problem with a fix."""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Mapping

import pytest

import rlnb
from rlnb.launchers import Resources
from rlnb.plugin import Library, Manifest, Role
from rlnb.training.checks import check_ranks

LEARNER, ACTOR = Role(name="learner", env=False), Role(name="actor")
LIBRARY = Library(name="mine", backend="m:B", distributed=True, roles="their_roles:roles")


def roles(world_size: int, agent: Mapping[str, object]) -> list[Role]:
    learners = int(agent.get("learners", 1))  # type: ignore[call-overload]
    if world_size < learners:
        raise rlnb.RlnbError(f"{learners} learners need {learners} ranks, not {world_size}.")
    return [LEARNER] * learners + [ACTOR] * (world_size - learners)


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("their_roles")
    module.roles = roles  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "their_roles", module)
    return module


def problems(
    ranks: int, num_envs: int | None = 16, *, nodes: int = 1, library: Library = LIBRARY, **agent: int
) -> list[str]:
    resources = Resources(nodes=nodes, nproc_per_node=ranks)
    task = rlnb.Task(id="T", num_envs=num_envs)
    manifest = Manifest(run_id="r", created="", task=task, library="mine", agent=agent, resources=resources)
    return [f"{problem.what} {problem.fix}".strip() for problem in check_ranks(manifest, library, None)]


def test_envs_are_shared_by_the_ranks_that_step_them() -> None:
    assert problems(3) == problems(9) == []
    assert problems(4) == ["16 envs cannot be shared by 3 ranks that step envs. num_envs=15"]
    assert problems(2, nodes=2) == ["16 envs cannot be shared by 3 ranks that step envs. num_envs=15"]
    assert problems(4, None) == [], "the number of the task's own envs is unknown without its card"


def test_several_ranks_or_nodes_are_refused_for_a_library_that_trains_in_one_process() -> None:
    alone = dataclasses.replace(LIBRARY, distributed=False, roles="")
    assert problems(1, library=alone) == []
    assert problems(3, library=alone) == ["mine trains in one process, not in 3. nproc_per_node=1"]
    fix = "Use a launcher of one node, and nproc_per_node=1."
    assert problems(1, nodes=2, library=alone) == [f"mine trains in one process, not in 2. {fix}"]
    assert problems(2, nodes=2, library=alone) == [f"mine trains in one process, not in 4. {fix}"]


def test_too_few_ranks_are_refused_with_the_smallest_number_that_fits() -> None:
    assert problems(1) == ["mine gives its only rank the role learner, which has no env. nproc_per_node=2"]
    assert problems(2, learners=2) == ["mine gives all 2 ranks the role learner, which has no env. nproc_per_node=3"]
    assert problems(2, learners=3) == ["3 learners need 3 ranks, not 2. nproc_per_node=4"]
    assert problems(2, learners=99) == ["99 learners need 99 ranks, not 2."], "no number that a user would choose"


def test_a_plugin_that_fails_is_named(module: types.ModuleType) -> None:
    module.roles = lambda world_size, agent: 1 / 0  # type: ignore[attr-defined]
    (problem,) = problems(3)
    assert "'their_roles:roles' of the plugin 'mine' (registered by hand) raised ZeroDivisionError" in problem
    assert problem.endswith("Correct its code.")


def test_without_roles_all_ranks_share_the_envs() -> None:
    plain = dataclasses.replace(LIBRARY, roles="")
    assert problems(1, library=plain) == problems(2, library=plain) == []
    assert problems(3, library=plain) == ["16 envs cannot be shared by 3 ranks. num_envs=15"]


def test_without_a_simulator_there_are_no_envs_to_share() -> None:
    assert problems(4, library=dataclasses.replace(LIBRARY, simulator=False)) == []
    assert problems(1, library=dataclasses.replace(LIBRARY, simulator=False)) == []
