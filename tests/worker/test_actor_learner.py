"""The example with one learner and two actors trains, resumes, and is compared by role."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

import rlnb
from rlnb.hooks import registry
from rlnb.plugin import ENDED
from rlnb.records.ranks import ranks_of
from rlnb.studies import verify_sync

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "rlnb-actor-learner" / "src"
TASK = "Isaac-Cartpole-Direct"
pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the example as its pyproject.toml does, for this process and for workers."""
    info = tmp_path / "rlnb_actor_learner-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: rlnb-actor-learner\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[rlnb]\nactor_learner = rlnb_actor_learner.plugin\n")
    places = [str(tmp_path), str(EXAMPLE)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*places, os.environ.get("PYTHONPATH", "")]))
    for place in places:
        monkeypatch.syspath_prepend(place)
    registry.registry.cache_clear()
    yield
    registry.registry.cache_clear()


def check_restored(reports: Mapping[str, str]) -> None:
    """Check that the learner has restored everything. The actors begin at their seeds, which is stated."""
    lost = [part for part, report in reports.items() if not report.startswith("restored")]
    assert len(lost) == 1, reports
    assert lost[0].startswith("random state of ranks 1"), reports


def ranks_in(run: rlnb.Run) -> dict[int, psutil.Process]:
    """Return the process of each rank of a run."""
    handle = run.jobs[-1].handle
    assert handle is not None
    workers = {}
    for process in psutil.Process(handle["pid"]).children(recursive=True):
        rank = process.environ().get("RANK")
        if rank is not None and "rlnb.worker" in process.cmdline():
            workers[int(rank)] = process
    return workers


def libraries_of(process: psutil.Process) -> set[str]:
    """Return the native libraries that a process has loaded, of the simulator's packages."""
    paths = [entry.path for entry in process.memory_maps()]
    return {name for name in ("warp", "pxr", "mujoco") if any(f"/{name}/" in path for path in paths)}


RANK = """
import json, os, sys
from pathlib import Path
from types import SimpleNamespace
import torch
import rlnb
from rlnb.records.layout import JobDir, RunDir
from rlnb.records.options import TrainOptions
from rlnb.storage.serial import to_json
from rlnb.worker.jobs import ranks
from rlnb.worker.jobs.context import Context
from rlnb.worker.jobs.train import exchange
from rlnb_actor_learner.backend import ActorLearner
from rlnb_actor_learner.plugin import config

class Env:
    "Eight envs with random observations, whose episodes last four steps."

    single_observation_space = {"policy": SimpleNamespace(shape=(3,))}
    single_action_space = SimpleNamespace(shape=(1,))

    def __init__(self):
        self.unwrapped, self.steps = self, 0

    def reset(self):
        return {"policy": torch.rand(8, 3)}, {}

    def step(self, action):
        self.steps += 1
        ends = torch.full((8,), self.steps % 4 == 0)
        return {"policy": torch.rand(8, 3)}, -action[:, 0].abs(), ends, torch.zeros(8, dtype=torch.bool), {}

folder, job, checkpoint = Path(sys.argv[1]), sys.argv[2], sys.argv[3] or None
manifest = rlnb.plugin.Manifest(
    run_id="r", created="", task=rlnb.Task(id="T"), library="actor_learner", max_frames=500 if checkpoint else 250,
    resources=rlnb.launchers.Resources(device="cpu", nproc_per_node=3),
)
ctx = Context(RunDir(folder), JobDir(folder / "jobs" / job), manifest, TrainOptions(checkpoint=checkpoint))
ctx.device = "cpu"
env = None
if ctx.has_env:
    env, ctx.num_envs_here = Env(), 8
with ranks.process_group("cpu", role=ctx.role):
    agent_cfg = exchange(ctx, config() if ctx.has_env else None)
    ctx.count_frames(agent_cfg["horizon"])
    modules = ActorLearner().train(env, agent_cfg, ctx)
    digests = ranks.compare(modules, "seen" if ctx.has_env else "", roles=[role.name for role in ctx.roles])
if ctx.rank == 0:
    (folder / f"{job}.json").write_text(json.dumps(to_json(digests)))
os._exit(0)
"""


def train_on_random_observations(tmp_path: Path, job: str, checkpoint: str = "") -> tuple[Any, Any]:
    """Return the digests and the record of the start of a training with three ranks, without a simulator."""
    (tmp_path / "jobs" / job).mkdir(parents=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    ranks = []
    for rank in map(str, range(3)):
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "3", "RANK": rank, "LOCAL_RANK": rank}
        argv = [sys.executable, "-c", RANK, str(tmp_path), job, checkpoint]
        ranks.append(subprocess.Popen(argv, env={**os.environ, **place}, stderr=subprocess.PIPE, text=True))
    errors = [rank.communicate(timeout=280)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0, 0], "\n".join(errors)
    started = json.loads((tmp_path / "jobs" / job / "started.json").read_text())
    return json.loads((tmp_path / f"{job}.json").read_text()), started


@pytest.mark.timeout(600)
def test_the_example_trains_and_resumes_without_a_simulator(tmp_path: Path, example: None) -> None:
    digests, started = train_on_random_observations(tmp_path, "0-train")
    assert (started["num_envs"], started["max_iterations"]) == (16, 1), "an iteration has 256 frames"
    assert digests["roles"] == ["learner", "actor", "actor"]
    assert len(set(digests["parameters"])) == 1, "here the learner has the same model as the actors"
    assert digests["observations"] == ["", "seen", "seen"]
    _, started = train_on_random_observations(tmp_path, "1-train", "logs/model_0.pt")
    assert (started["first_iteration"], started["max_iterations"]) == (1, 2)
    check_restored(started["restored"])
    assert (tmp_path / "logs" / "model_1.pt").exists()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_one_learner_and_two_actors_train_resume_and_are_compared_by_role(root: Path, example: None) -> None:
    run = rlnb.train(
        TASK,
        library="actor_learner",
        num_envs=16,
        nproc_per_node=3,
        max_frames=20 * 256 - 100,
        agent={"save_interval": 5},
        device="cpu",
    )
    deadline = time.monotonic() + 600.0
    while not run.metrics.names and run.state not in ENDED:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    workers = ranks_in(run)
    loaded = {rank: libraries_of(process) for rank, process in workers.items()}
    memory = {rank: round(process.memory_info().rss / 2**20) for rank, process in workers.items()}
    print("memory of the ranks in MiB:", json.dumps(memory))
    run.wait(timeout_s=600.0, check=True)
    assert loaded[0] == set(), "the learner has loaded a simulator"
    assert {"warp"} <= loaded[1] & loaded[2]
    assert memory[0] < 0.7 * min(memory[1], memory[2])

    started = run.started
    assert started is not None
    assert started.roles == ("learner", "actor", "actor")
    assert (started.world_size, started.num_envs, started.frames_per_step) == (3, 16, 16 * 16)
    assert started.max_iterations == 20, "the learner counts the frames of the actors"
    assert started.devices == ("cpu", "cpu", "cpu")
    assert started.asset_root, "the learner records what the actors use"
    assert run.metrics["fps"].frames[-1] == 20 * 16 * 16
    compared = ranks_of(run.result)
    assert compared is not None
    assert compared.roles == started.roles
    assert compared.parameters[1] == compared.parameters[2]
    assert compared.observations[0] == ""
    assert compared.observations[1] != compared.observations[2]
    assert len(set(compared.observations)) == 3
    assert (run.path / "logs" / "params" / "env.yaml").exists()

    run.resume(max_iterations=25)
    run.wait(timeout_s=600.0, check=True)
    started = run.started
    assert started is not None
    assert started.first_iteration == 20
    check_restored(started.restored)
    assert run.metrics["fps"].iterations == pytest.approx(range(25))
    assert run.evaluate(episodes=8, num_envs=8).episodes == 8


def test_too_few_ranks_are_a_problem_before_anything_starts(root: Path, example: None) -> None:
    problems = rlnb.check(TASK, library="actor_learner", num_envs=16, device="cpu")
    assert [(problem.what, problem.fix) for problem in problems] == [
        ("actor_learner gives its only rank the role learner, which has no env.", "nproc_per_node=2")
    ]
    (problem,) = rlnb.check(TASK, library="actor_learner", num_envs=16, nproc_per_node=4, device="cpu")
    assert problem.what == "16 envs cannot be shared by 3 ranks that step envs."
    assert problem.fix == "num_envs=15"
    assert rlnb.check(TASK, library="actor_learner", num_envs=16, nproc_per_node=3, device="cpu") == []
    with pytest.raises(rlnb.RlnbError, match=r"The 2 ranks of actor_learner have 2 different roles"):
        verify_sync(TASK, "actor_learner", 2, num_envs=16, device="cpu")
