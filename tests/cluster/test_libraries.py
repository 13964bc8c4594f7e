"""The RL libraries with real Isaac Lab on two nodes of a real Slurm: ranks learn as one, and runs resume."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.worker.assets.packs import build

pytestmark = [
    pytest.mark.slow,
    pytest.mark.isaaclab,
    pytest.mark.timeout(1300),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]

CARTPOLE, PENDULUM = "Isaac-Cartpole-Direct", "Isaac-Pendulum-MARL-Direct"
WAIT_S = 600.0


@pytest.mark.parametrize(
    ("library", "task", "needs"),
    [
        ("rl_games", CARTPOLE, "rl_games"),
        ("skrl", CARTPOLE, "skrl"),
        ("skrl_jax", CARTPOLE, "jax"),
        ("skrl_mappo", PENDULUM, "skrl"),
        ("rsl_rl", PENDULUM, "rsl_rl"),  # Isaac Lab joins the agents into one
    ],
)
def test_ranks_on_two_nodes_learn_as_one_and_resume(
    slurm: Any, clean: Path, monkeypatch: pytest.MonkeyPatch, library: str, task: str, needs: str
) -> None:
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed here")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("ISAACSIM_ASSET_ROOT", str(build().folder))
    run = rlnb.train(
        task,
        library=library,
        num_envs=32,
        max_iterations=3,
        agent="generic" if (library, task) == ("rsl_rl", PENDULUM) else None,  # the task has no config for RSL-RL
        launcher=rlnb.slurm(nodes=2, walltime="00:20:00"),
    ).wait(WAIT_S)
    assert run.progress == (3, 3)
    assert_learned_as_one(run)
    run.resume(max_iterations=5).wait(WAIT_S)
    assert run.progress == (5, 5)
    assert_learned_as_one(run)
    started = run.started
    assert started is not None
    assert 0 < started.first_iteration < 5
    lost = {part for part, report in started.restored.items() if not report.startswith("restored")}
    assert lost == {"random state of rank 1"}, started.restored
    assert run.metrics["fps"].iterations == pytest.approx(range(5)), "the resumed run continues the curve"


def assert_learned_as_one(run: rlnb.Run) -> None:
    result = run.jobs[-1].result
    assert result is not None
    ranks = result.values["ranks"]
    assert len(ranks["parameters"]) == 2
    assert len(set(ranks["parameters"])) == 1
    assert len(set(ranks["observations"])) == 2, "each rank has its own envs"
    assert len(run.jobs[-1].folder.hosts()) == 2
