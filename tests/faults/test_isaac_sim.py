"""Isaac Sim ends its process when it is closed, and nothing is lost. A stand-in for Kit starts below real Isaac Lab."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import rlnb
from rlnb.simulation.pool import pool
from rlnb.storage import files
from rlnb.tasks import source

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]
RIG = Path(__file__).parents[1] / "rig" / "isaac_sim"

TASK = """
from isaaclab.utils import configclass
from isaaclab_newton.physics import NewtonCfg
from isaaclab_tasks.core.cartpole.cartpole_common import CartpolePhysicsCfg
from isaaclab_tasks.core.cartpole.cartpole_manager_env_cfg import CartpoleEnvCfg

@configclass
class PhysxCfg(NewtonCfg):
    pass  # Isaac Lab starts Kit for physics with this name; the physics itself stays Newton's

@configclass
class KitCfg(CartpoleEnvCfg):
    def __post_init__(self):
        super().__post_init__()
        self.sim.physics = PhysxCfg(solver_cfg=CartpolePhysicsCfg().newton_mjwarp.solver_cfg)

TASK = KitCfg
"""
FORCE = "self.sim.physics = PhysxCfg(solver_cfg=CartpolePhysicsCfg().newton_mjwarp.solver_cfg)"
FAILS = """
        from isaaclab.managers import RewardTermCfg
        self.rewards.fails = RewardTermCfg(func=fail, weight=1.0)
"""


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run the tests with the stand-in for Isaac Sim; return the log of its starts and ends."""
    from rlnb.worker.assets.packs import build

    root = tmp_path_factory.mktemp("kit")
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", os.pathsep.join([str(RIG), os.environ.get("PYTHONPATH", "")]))
    patch.setenv("FAKE_KIT_LOG", str(root / "kit.log"))
    patch.setenv("RLNB_QUEUE", str(root / "queue"))
    patch.setenv("ISAACSIM_ASSET_ROOT", str(build().folder))
    patch.setattr(rlnb.options, "root", root / "rlnb-runs")
    patch.setattr(rlnb.options, "warm", True)
    yield root / "kit.log"
    pool.shut_down()
    patch.undo()


@pytest.fixture
def log(kit: Path) -> Path:
    """The stand-in's log, empty, and no warm simulator."""
    pool.shut_down()
    kit.unlink(missing_ok=True)
    write("Kit")
    return kit


def write(name: str, *edits: tuple[str, str]) -> str:
    """Write a task's module with edits; return the task's name."""
    text = TASK
    for before, after in edits:
        assert before in text
        text = text.replace(before, after)
    source.write_module(rlnb.options.folders, name, text, "test.ipynb")
    return name


def without_kit(name: str = "Plain") -> str:
    """Write the same task with plain Newton physics."""
    return write(name, ("PhysxCfg", "PlainPhysicsCfg"))


def pictures(task: str) -> np.ndarray:
    """Preview a task; return its last picture, of shape (num_envs, height, width, 3)."""
    return rlnb.preview(task, num_envs=2, steps=1, device="cpu").frames["preview"]["rgb"]


def starts(log: Path) -> list[dict[str, Any]]:
    """Return the starts of the stand-in. It was never closed, and no USD was loaded before it."""
    events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    assert not [event for event in events if event["event"] == "close"], "closing Kit ends the process"
    assert not [event for event in events if event["usd"]], "USD was loaded before Kit"
    return events


@pytest.mark.slow
def test_previews_are_served_by_one_process(log: Path) -> None:
    rlnb.task("Kit").card()
    time.sleep(1.5)  # more than IDLE_S: the simulator may rehearse now
    rlnb.simulator().wait()
    assert starts(log) == [], "a rehearsal starts no Isaac Sim"
    first = pictures("Kit")
    process = rlnb.simulator().pid
    for _ in range(19):
        assert np.array_equal(pictures("Kit"), first)
    assert rlnb.simulator().pid == process
    assert {event["pid"] for event in starts(log)} == {process}


def test_a_task_that_needs_isaac_sim_gets_a_fresh_process_and_the_next_one_without_it_too(log: Path) -> None:
    plain = pictures(without_kit())
    first = rlnb.simulator().pid
    shown = pictures("Kit")
    second = rlnb.simulator().pid
    assert {event["pid"] for event in starts(log)} == {second}
    again = pictures("Plain")
    assert len({first, second, rlnb.simulator().pid}) == 3
    assert np.array_equal(plain, shown)
    assert np.array_equal(plain, again)


def test_a_run_that_adopts_a_simulator_with_usd_continues_in_a_fresh_process(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ISAACSIM_ASSET_ROOT")
    rlnb.preview(without_kit(), num_envs=2, steps=0, device="cpu")
    process = rlnb.simulator().pid
    run = rlnb.train("Kit", num_envs=4, max_iterations=2, device="cpu").wait()
    assert run.state == "completed"
    assert "The run continues in a fresh process." in run.logs(10_000)
    assert {event["pid"] for event in starts(log)} == {process}, "the same process id, as the agent needs"
    assert run.jobs[0].result is not None
    assert run.jobs[0].result.checkpoint
    started = files.read_json(run.jobs[0].folder.started)
    assert started is not None
    assert "ISAACSIM_ASSET_ROOT" not in started["asset_root"], "the user has not set it"


@pytest.mark.slow
def test_a_fresh_process_behind_a_wrapper_ends_with_its_agent(log: Path) -> None:
    python = shlex.join([sys.executable, "-c", "from isaaclab.cli import cli; cli()", "-p"])
    rlnb.preview(without_kit(), num_envs=2, steps=0, device="cpu", python=python)
    worker = psutil.Process(rlnb.simulator(python=python).pid)
    run = rlnb.train("Kit", num_envs=4, max_iterations=100_000, device="cpu", python=python)
    deadline = time.monotonic() + 120
    while not run.jobs[0].folder.started.exists():
        assert time.monotonic() < deadline, run.logs(50)
        time.sleep(0.2)
    assert worker.cmdline()[-1] == str(run.jobs[0].folder.path), "the process has replaced itself"
    next(process for process in worker.parents() if "rlnb.node" in process.cmdline()).kill()
    assert psutil.wait_procs([worker], timeout=20)[0] == [worker]


@pytest.mark.slow
def test_a_task_that_raises_keeps_its_traceback(log: Path) -> None:
    fault = 'raise ValueError("no such joint")'
    write("Broken", ("TASK = KitCfg", f"def fail(env):\n    {fault}\n\nTASK = KitCfg"), (FORCE, f"{FORCE}\n{FAILS}"))
    run = rlnb.train("Broken", num_envs=4, max_iterations=2, device="cpu", warm=False)
    with pytest.raises(rlnb.RunError, match="in fail: ValueError: no such joint"):
        run.wait()
    with pytest.raises(rlnb.WorkerError, match="in fail: ValueError: no such joint"):
        rlnb.preview("Broken", num_envs=2, steps=1, device="cpu")
    assert rlnb.simulator().state == "idle", "the simulator survives"
    assert starts(log)


@pytest.mark.slow
def test_a_module_that_loads_usd_at_its_top_gets_an_error_that_names_its_imports(log: Path) -> None:
    write("Early", ("TASK = KitCfg", "from isaaclab.envs import ManagerBasedRLEnv\n\nTASK = KitCfg"))
    with pytest.raises(rlnb.RlnbError, match=r"USD \(pxr\) is already loaded.*into functions"):
        rlnb.preview("Early", num_envs=2, steps=0, device="cpu")
    run = rlnb.train("Early", num_envs=4, max_iterations=2, device="cpu")
    with pytest.raises(rlnb.RunError, match=r"USD \(pxr\) is already loaded"):
        run.wait()
    assert starts(log) == []


@pytest.mark.slow
def test_every_verb_leaves_the_same_records_as_without_isaac_sim(log: Path) -> None:
    plain = records(without_kit())
    pool.shut_down()
    assert starts(log) == []
    assert records("Kit") == plain
    assert len({event["pid"] for event in starts(log)}) >= 2, "a training gives its process back to the kernel"


def records(task: str) -> dict[str, Any]:
    """Use every verb on a task; return what each leaves."""
    shown = pictures(task)
    run = rlnb.train(task, num_envs=8, max_iterations=2, device="cpu").wait()
    assert run.jobs[0].result is not None
    evaluation = run.evaluate(episodes=4, num_envs=4)
    film = run.play(num_envs=2)
    exports = run.export("torchscript", "onnx")
    tuner = rlnb.tune(task, num_envs=2, device="cpu")
    tuner.set("rewards.alive.weight", 2.0)
    budget = rlnb.camera_budget(task, sizes=[(32, 24)], envs=[2], frames=2, device="cpu")
    view = rlnb.view(task, num_envs=2, device="cpu")
    alive = view.alive
    view.close()
    return {
        "pictures": shown.tobytes(),
        "outcome": run.jobs[0].result.outcome,
        "checkpoint": run.jobs[0].result.checkpoint,
        "ranks": run.jobs[0].result.values["ranks"],
        "returns": evaluation.returns,
        "film": film.path.stat().st_size > 0,
        "exports": {name: path.name for name, path in exports.items()},
        "terms": tuner.values,
        "costs": [(cost.size, cost.num_envs, len(cost.times_ms), cost.mib) for cost in budget.costs],
        "view": alive,
    }
