"""The plan of a training and its problems."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.configs.card import TaskCard
from rlnb.display.status import note_once
from rlnb.hooks import plugins
from rlnb.training import lookup
from rlnb.training.arguments import TrainArguments
from rlnb.training.create import refuse
from rlnb.training.plan import make_plan


@pytest.mark.parametrize("task", [3, {"id": "Echo"}])
def test_a_value_that_is_not_a_task_is_refused(root: Path, task: Any) -> None:
    with pytest.raises(rlnb.RlnbError, match="is neither a task nor the name of one"):
        rlnb.train(task, library="echo")
    with pytest.raises(rlnb.CheckError, match=r"overrides=3 is not a mapping"):
        rlnb.task("Echo", overrides=3)  # type: ignore[arg-type]


def test_the_name_of_a_launcher_is_refused(root: Path) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"Use one of rlnb\..*rlnb\.local"):
        rlnb.train("Echo", library="echo", launcher="slurm")  # type: ignore[arg-type]


def test_the_problems_of_all_parts_of_a_request_are_reported_together(root: Path) -> None:
    request = TrainArguments(
        task="Echo", library="echo", init_from="no-such-run", agent="no-such.yaml", tags="baseline", seed=-1
    )
    plan = make_plan(request)
    whats = [problem.what for problem in plan.problems]
    assert len(whats) == 4
    for text in (
        "init_from='no-such-run'",
        "no-such.yaml cannot be read",
        "tags='baseline' is a string, not a list",
        "seed=-1",
    ):
        assert any(text in what for what in whats), text
    with pytest.raises(rlnb.CheckError, match="Echo with echo: 4 problems"):
        refuse(plan)
    assert not root.exists(), "a plan writes nothing"


def test_a_plan_has_the_arguments_in_its_manifest(root: Path) -> None:
    plan = make_plan(
        TrainArguments(
            task="Echo", library="echo", num_envs=8, agent={"+group": {"value": 1}}, nproc_per_node=2, tags=["a"]
        )
    )
    manifest = plan.manifest
    assert (manifest.task.num_envs, manifest.agent, manifest.tags) == (8, {"+group.value": 1}, ("a",))
    assert (manifest.resources.nproc_per_node, plan.measure_ranks) == (2, False)
    assert plan.card is None, "the echo library has no simulator"
    assert plan.options == {}


def test_arguments_of_a_script_need_a_script_and_a_training_needs_a_task(root: Path) -> None:
    (problem,) = make_plan(TrainArguments(task="Echo", library="echo", args=["--seed", "3"])).problems
    assert problem.what == "args=['--seed', '3'] needs a script."
    with pytest.raises(rlnb.RlnbError, match="needs a task"):
        TrainArguments.of(None, {})


def test_ranks_are_measured_on_this_machine_only(root: Path) -> None:
    assert make_plan(TrainArguments(task="Echo", library="echo", nproc_per_node="auto")).measure_ranks


def test_a_deterministic_training_has_one_thread_on_every_machine(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def threads(**arguments: bool) -> int | None:
        request = TrainArguments(task="Echo", library="echo", **arguments)  # type: ignore[arg-type]
        return make_plan(request).manifest.resources.threads

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert (threads(deterministic=True), threads()) == (1, None)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads(deterministic=True) is None, "the user's own number"


def test_the_config_of_a_whole_run_is_taken_without_what_the_request_decides(
    root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = plugins.agent_config(plugins.library("echo").default_agent)
    path = tmp_path / "agent.yaml"
    path.write_text(json.dumps({**config, "goal": 3.0, "seed": 7}))
    plan = make_plan(TrainArguments(task="Echo", library="echo", agent=path))
    assert plan.problems == ()
    assert (plan.manifest.agent["goal"], "seed" in plan.manifest.agent) == (3.0, False)
    assert "agent.yaml is the config of a whole run. Not taken from it: seed." in caplog.text


def test_a_script_takes_an_asset_root(root: Path, tmp_path: Path) -> None:
    (script := tmp_path / "train.py").touch()
    plan = make_plan(TrainArguments(script=script, asset_root="/mnt/assets"))
    assert (plan.problems, plan.manifest.asset_root) == ((), "/mnt/assets")


def test_a_plan_says_what_was_chosen_in_place_of_isaac_sim(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    note_once.cache_clear()
    monkeypatch.setattr(lookup, "card_of", lambda *_: TaskCard(task="Mine", chosen=("sim.physics=NewtonCfg()",)))
    make_plan(TrainArguments(task="Mine", library="rsl_rl"))
    assert "Without Isaac Sim, Mine runs with sim.physics=NewtonCfg()." in caplog.text
