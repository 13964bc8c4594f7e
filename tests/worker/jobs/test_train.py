"""A training in this process, from its manifest to its result."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import rlnb
from rlnb.backend import TrainContext
from rlnb.errors import NotFiniteError
from rlnb.hooks import plugins
from rlnb.hooks.registry import manager
from rlnb.launchers import Resources
from rlnb.plugin import Manifest, Role, hookimpl
from rlnb.records.last_points import points_of
from rlnb.records.layout import JobDir
from rlnb.records.options import TrainOptions
from rlnb.records.ranks import ranks_of
from rlnb.records.record import JobRecord, RunRecord
from rlnb.spec import ENDED, Job, Result
from rlnb.storage import files
from rlnb.storage.serial import to_json
from rlnb.worker.flight import guard
from rlnb.worker.jobs import train as training
from rlnb.worker.jobs.job import work
from rlnb.worker.jobs.train import end_training, train

LEARNER, ACTOR = Role(name="learner", env=False), Role(name="actor")
ON_CPU = Role(name="actor", cpu=True)


def job_of(run: Path, number: int, options: TrainOptions) -> JobDir:
    job = JobDir(run / "jobs" / f"{number}-train")
    job.path.mkdir(parents=True)
    files.write_once(job.job, to_json(Job(kind="train", options=to_json(options))))
    return job


@pytest.fixture
def run(tmp_path: Path) -> Path:
    manifest = Manifest(run_id="r", created="", task=rlnb.Task(id="Echo"), library="echo", max_iterations=6)
    files.write_once(tmp_path / "manifest.json", to_json(manifest))
    return tmp_path


def test_the_result_names_the_newest_checkpoint_and_the_record_of_the_start(run: Path) -> None:
    job = job_of(run, 0, TrainOptions())
    train(job.path)
    record = JobRecord(job, "local")
    assert record.result is not None
    assert (record.result.outcome, record.result.checkpoint) == ("completed", "logs/model_5.json")
    assert record.result.values == {}, "without a simulator there are no digests of ranks"
    assert record.started is not None
    assert (record.started.first_iteration, record.started.max_iterations) == (0, 6)


def test_options_of_the_job_take_precedence_over_the_manifest(run: Path) -> None:
    train(job_of(run, 0, TrainOptions()).path)
    job = job_of(run, 1, TrainOptions(checkpoint="logs/model_4.json", max_iterations=8))
    train(job.path)
    started = JobRecord(job, "local").started
    assert started is not None
    assert (started.first_iteration, started.max_iterations) == (5, 8)


@pytest.mark.parametrize("broken", ["model_4.json", "model_4.buffer.npz"])
def test_a_checkpoint_or_its_companion_that_is_not_finite_is_refused(
    run: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    train(job_of(run, 0, TrainOptions()).path)
    asked: list[str] = []
    monkeypatch.setattr(guard.weights, "fault_of", lambda path: asked.append(path.name) or path.name == broken)
    np.savez(run / "logs" / "model_4.buffer.npz", reward=np.zeros(3))
    echo = dataclasses.replace(plugins.library("echo"), checkpoint_companions=("{stem}.buffer.npz",))
    monkeypatch.setattr(plugins, "library", lambda name: echo)
    with pytest.raises(NotFiniteError, match=f"{broken} is not finite"):
        train(job_of(run, 1, TrainOptions(checkpoint="logs/model_4.json", max_iterations=8)).path)
    assert broken in asked


def test_a_rank_that_is_not_the_first_writes_no_record(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    job = job_of(run, 0, TrainOptions())
    train(job.path)
    assert {path.name for path in job.path.iterdir()} == {"job.json"}


def test_plugins_get_the_result_at_the_end(run: Path) -> None:
    heard: list[tuple[Path, str]] = []

    class Listener:
        @hookimpl
        def rlnb_run_finished(self, run_dir: Path, manifest: Manifest, result: rlnb.plugin.Result) -> None:
            heard.append((run_dir, json.dumps(to_json(result))))

    listener = Listener()
    manager().register(listener)
    try:
        job = job_of(run, 0, TrainOptions())
        train(job.path)
    finally:
        manager().unregister(listener)
    ((folder, result),) = heard
    assert folder == run
    assert json.loads(result) == files.read_json(job.result)


def test_a_companion_with_python_objects_is_refused_before_the_library_reads_it(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(job_of(run, 0, TrainOptions()).path)
    buffered = dataclasses.replace(plugins.library("echo"), checkpoint_companions=("{stem}.buffer.npz",))
    monkeypatch.setattr(plugins, "library", lambda name: buffered)
    np.savez(run / "logs" / "model_4.buffer.npz", actions=np.array([{}], dtype=object))
    job = job_of(run, 1, TrainOptions(checkpoint="logs/model_4.json", max_iterations=8, trust=True))
    with pytest.raises(rlnb.RlnbError, match=r"actions\.npy holds Python objects"):
        train(job.path)
    assert not job.started.exists()


@pytest.mark.parametrize(("rank", "device"), [(0, "cuda:0"), (1, "cpu"), (2, "cuda:1")])
def test_the_roles_of_a_library_without_a_simulator_decide_its_devices(
    run: Path, monkeypatch: pytest.MonkeyPatch, rank: int, device: str
) -> None:
    pytest.importorskip("torch")
    library = dataclasses.replace(plugins.library("echo"), roles=f"{__name__}:roles")
    monkeypatch.setattr(plugins, "library", lambda name: library)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["resources"] = {"device": "cuda", "nproc_per_node": 3}
    (run / "manifest.json").unlink()
    files.write_once(run / "manifest.json", manifest)
    devices: list[str] = []

    def note(self: object, env: None, agent_cfg: object, ctx: TrainContext) -> None:
        devices.append(ctx.device)
        ctx.started(horizon=1, frames_per_step=1.0, max_iterations=1, num_envs=1)

    monkeypatch.setattr(plugins.load(library.backend), "train", note)
    for name, value in {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 3}.items():
        monkeypatch.setenv(name, str(value))
    train(job_of(run, 0, TrainOptions()).path)
    assert devices == [device]
    if rank == 0:
        started = JobRecord(JobDir(run / "jobs" / "0-train"), "local").started
        assert started is not None
        assert started.devices == ("cuda:0", "cpu", "cuda:1")


def roles(world_size: int, agent: object) -> list[Role]:
    return [
        Role(name="learner"),
        Role(name="generator", cpu=True),
        Role(name="learner"),
    ]


@pytest.mark.parametrize(
    ("roles", "devices"),
    [
        ((), ["cuda:own"] * 4),
        ((LEARNER, ACTOR, ACTOR, ACTOR), ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]),
        ((LEARNER, ON_CPU, ON_CPU, LEARNER), ["cuda:0", "cpu", "cpu", "cuda:0"]),
    ],
)
def test_the_ranks_of_a_node_take_its_gpus_in_order_but_those_of_a_role_on_the_cpu(
    roles: tuple[Role, ...], devices: list[str]
) -> None:
    def device_of(name: str, index: int | None) -> str:
        return f"{name}:{'own' if index is None else index}"

    resources = Resources(device="cuda", nodes=2, nproc_per_node=2)
    manifest = Manifest(run_id="r", created="", task=rlnb.Task(id="T"), library="echo", resources=resources)
    assert [training._device(manifest, roles, rank, device_of) for rank in range(4)] == devices


THEIRS = """
import os, sys
from pathlib import Path

import torch
import torch.distributed as dist
import rlnb
from rlnb.plugin import Library, Role

LIBRARY = Library(name="theirs", backend="theirs:Theirs", simulator=False, distributed=True, roles="theirs:roles")

def roles(world_size, agent):
    return [Role(name="generator"), *[Role(name="learner")] * (world_size - 1)]

class Plugin:
    @staticmethod
    @rlnb.plugin.hookimpl
    def rlnb_libraries():
        return [LIBRARY]

class Theirs:
    def train(self, env, agent_cfg, ctx):
        dist.init_process_group("gloo")
        ctx.started(horizon=1, frames_per_step=1.0, max_iterations=1, num_envs=1)
        return [] if ctx.role == "generator" else [torch.nn.Linear(2, 1)]

if __name__ == "__main__":
    from rlnb.worker.jobs.train import train

    rlnb.register(Plugin)
    train(Path(sys.argv[1]))
    os._exit(0)
"""


def test_ranks_of_a_role_that_learns_nothing_do_not_keep_the_others_waiting(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "theirs.py").write_text(THEIRS)
    resources = Resources(device="cpu", nproc_per_node=3)
    task = rlnb.Task(id="Echo")
    manifest = Manifest(run_id="r", created="", task=task, library="theirs", resources=resources)
    files.write_once(tmp_path / "manifest.json", to_json(manifest))
    job = job_of(tmp_path, 0, TrainOptions())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": "3"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "theirs.py", str(job.path)],
            env={**os.environ, **place, "RANK": rank, "LOCAL_RANK": rank, "PYTHONPATH": os.pathsep.join(sys.path)},
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in ("0", "1", "2")
    ]
    errors = [rank.communicate(timeout=200)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0, 0], errors
    compared = ranks_of(JobRecord(job, "local").result)
    assert compared is not None
    assert compared.roles == ("generator", "learner", "learner")
    started = JobRecord(job, "local").started
    assert started is not None
    assert started.devices == ("cpu", "cpu", "cpu")


def test_a_training_removes_what_a_killed_one_has_left(run: Path) -> None:
    (run / "logs" / "nn" / ".part-step_4").mkdir(parents=True)
    (run / "logs" / "nn" / ".part-step_4" / "weights").touch()
    (run / "logs" / ".part-model_4.replay_buffer.npz").touch()
    (run / "logs" / ".removed-step_2").mkdir()
    train(job_of(run, 0, TrainOptions()).path)
    assert [path.name for path in (run / "logs").rglob(".*-*")] == []
    assert (run / "logs" / "model_5.json").exists()


# -- ending ----------------------------------------------------------------------------------------------------------


WAIT_S = 60.0


def last_job(run: rlnb.Run) -> JobDir:
    return run.jobs[-1].folder


def until_ended(run: rlnb.Run) -> None:
    """Wait for a run without a look at its values, which this process would then know."""
    deadline = time.monotonic() + WAIT_S
    while run.state not in ENDED:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_believed(run: rlnb.Run) -> bool:
    """Return whether a list believes the summary of a run's newest training."""
    summary = last_job(run).last_points
    if not summary.exists():
        return False
    data = json.loads(summary.read_text())
    (tag, *_), *_ = data["points"]
    summary.write_text(json.dumps({**data, "points": [[tag, "", 2, -7.5]]}))
    record = RunRecord(run.path)
    return record.newest(run.state).last(tag) == -7.5 and record.metrics.last(tag) != -7.5


@pytest.mark.parametrize("how", ["completed", "failed", "resumed"])
def test_a_training_leaves_a_summary_that_lists_believe(root: Path, how: str) -> None:
    agent = {"crash_at": 2} if how == "failed" else {}
    run = rlnb.train("Echo", library="echo", max_iterations=3, agent=agent)
    until_ended(run)
    if how == "resumed":
        until_ended(run.resume(max_iterations=6))
        assert len(run.jobs) == 2
    text = last_job(run).last_points.read_text()
    assert is_believed(run)
    event_file = next(path for path in run.record.folder.event_files())
    os.utime(event_file)  # what was believed in this process is forgotten
    newest = RunRecord(run.path).newest(run.state)
    points = {tag: value for tag, _, _, value in json.loads(text)["points"]}
    assert points == {tag: newest.last(tag) for tag in newest.tags}
    assert {name: newest.last(name) for name in newest.names} == {n: run.metrics.last(n) for n in run.metrics.names}
    assert newest.iteration == run.metrics.iteration


def test_nothing_is_written_after_the_result(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=3).wait(WAIT_S)
    job = last_job(run)
    assert job.last_points.stat().st_mtime_ns <= job.result.stat().st_mtime_ns


def test_a_training_without_a_manifest_has_a_result(tmp_path: Path) -> None:
    job = JobDir(tmp_path / "jobs" / "0-train")
    job.path.mkdir(parents=True)
    with pytest.raises(rlnb.RlnbError, match="Manifest"):
        work("train", job.path)
    assert files.read_json(job.result) is not None


def test_a_result_that_exists_stays_and_so_does_its_summary(tmp_path: Path) -> None:
    job = JobDir(tmp_path / "jobs" / "0-train")
    job.path.mkdir(parents=True)
    files.write_once(job.result, Result(outcome="completed", ended="2026-01-01T00:00:00+00:00"))
    end_training(job, Result(outcome="failed", ended="2026-01-01T00:00:00+00:00"))
    assert (files.read_json(job.result) or {})["outcome"] == "completed"
    assert not job.last_points.exists()
    assert points_of(tmp_path / "logs", {}, job.last_points) == []
