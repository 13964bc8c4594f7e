"""Run folders that version 0.1.0 wrote, and a job whose agent still has that version.

The folders in ``of_0_1_0`` are unchanged since that version wrote them: four of the library echo and one of RSL-RL.
Only paths, host and interpreter are placeholders, and files that no test needs are removed.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

import rlnb
from rlnb.records.evaluation import EvaluateOptions
from rlnb.records.layout import JobDir, run_dir_of
from rlnb.records.options import ExportOptions, export_files_of, options_of
from rlnb.records.ranks import ranks_of

FOLDERS = Path(__file__).with_name("of_0_1_0")
COMPLETED, CANCELLED = "20261124-134119-echo-echo-865d", "20261124-134121-echo-echo-5991"
FAILED, RUNNING = "20261124-134121-echo-echo-aa1e", "20261124-134123-echo-echo-622c"
SIMULATED = "20261124-140205-cartpole-direct-rsl_rl-1c77"
STATES = {
    COMPLETED: "completed",
    CANCELLED: "cancelled",
    FAILED: "failed",
    RUNNING: "running",
    SIMULATED: "completed",
}
WAIT_S = 60.0

AGENT = """
import json, sys, time
from pathlib import Path
job = Path(sys.argv[1])
while not (job / "cancel.json").exists():
    (job / "node0.alive").touch()
    time.sleep(0.1)
(job / "result.json").write_text(json.dumps({"outcome": "cancelled", "error": "cancelled"}))
"""
"""The part of an idle version 0.1.0 agent that touches its job's folder."""


@dataclass(frozen=True)
class Agent:
    """The agent of the running job, with a command line of version 0.1.0."""

    process: subprocess.Popen[bytes]
    job: JobDir


@pytest.fixture
def older_runs(root: Path) -> Path:
    """Copies of the folders in a fresh root, with the placeholders filled in."""
    values = {"@ROOT@": str(root), "@HOST@": socket.gethostname(), "@PYTHON@": sys.executable, "@SOURCES@": "/gone"}
    shutil.copytree(FOLDERS, root / "runs")
    for path in (*root.rglob("*.json"), *root.rglob("*.running"), *root.rglob("*.log")):
        text = path.read_text(encoding="utf-8")
        for name, value in values.items():
            text = text.replace(name, value)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def agent(older_runs: Path, tmp_path: Path) -> Iterator[Agent]:
    """A stand-in for the agent, started and recorded as in version 0.1.0."""
    job = JobDir(older_runs / "runs" / RUNNING / "jobs" / "0-train")
    package = tmp_path / "sources" / "rlnb"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "job.py").write_text(AGENT)
    argv = [sys.executable, "-P", "-m", "rlnb.job", str(job.path)]
    process = subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": str(package.parent)}, start_new_session=True)
    handle = {
        "host": socket.gethostname(),
        "pid": process.pid,
        "created_s": psutil.Process(process.pid).create_time(),
    }
    job.handle.write_text(json.dumps(handle))
    for path in run_dir_of(job.path).event_files():
        path.touch()  # the training has logged since it began
    yield Agent(process, job)
    process.kill()
    process.wait()


def processes_of(run: rlnb.Run) -> list[int]:
    """Return the ids of all processes whose command line names a run."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and any(run.id in part for part in process.info["cmdline"] or ())
    ]


def test_older_runs_are_listed_with_their_states_tags_and_rewards(older_runs: Path, agent: Agent) -> None:
    runs = rlnb.runs()
    assert {run.id: run.state for run in runs} == STATES
    table = runs.table("seed", "agent.goal").set_index("id")
    assert table.loc[COMPLETED, "tags"] == "baseline, kept"
    assert table.loc[COMPLETED, "iteration"] == "10/10"
    assert table.loc[COMPLETED, "reward"] == pytest.approx(2.0 * 0.95, abs=0.05)
    assert [run.id for run in rlnb.runs(tag="kept", where={"agent.goal": 2.0})] == [COMPLETED]
    assert rlnb.get_run(COMPLETED).notes[0].text == "It rises."


def test_a_job_without_its_process_is_lost(older_runs: Path) -> None:
    heartbeat = older_runs / "runs" / RUNNING / "jobs" / "0-train" / "node0.alive"
    past_s = time.time() - 3600.0
    for path in (heartbeat, heartbeat.with_name("command.json")):
        os.utime(path, (past_s, past_s))
    assert rlnb.get_run(RUNNING).state == "lost"


def test_the_curves_of_older_runs_are_drawn(older_runs: Path) -> None:
    figure = rlnb.get_run(COMPLETED).plot(["reward"])
    assert list(figure.data[0].x) == [64.0 * (iteration + 1) for iteration in range(10)]
    assert figure.data[0].y[-1] == pytest.approx(2.0 * 0.95, abs=0.05)


def test_the_cause_of_a_failed_training_is_reported(older_runs: Path) -> None:
    with pytest.raises(rlnb.RunError, match=r"failed: RuntimeError: echo crashes at iteration 7[\s\S]*Traceback"):
        rlnb.get_run(FAILED).wait()


def test_an_evaluation_is_read_and_a_new_one_agrees_with_it(older_runs: Path) -> None:
    run = rlnb.get_run(COMPLETED)
    (older,) = run.evaluations
    options = options_of(EvaluateOptions, run.jobs[1].folder)
    assert (options.episodes, options.num_envs, options.checkpoint) == (8, 4, "logs/model_9.json")
    assert (options.mode, older.mode) == ("train", "train"), "the only one that version 0.1.0 had"
    newer = run.evaluate(episodes=8)
    assert (newer.returns, newer.successes, newer.checkpoint) == (older.returns, older.successes, older.checkpoint)
    assert older.success_rate == 1.0
    assert len(run.evaluations) == 2


def test_a_cancelled_training_is_resumed_and_its_curves_are_joined(older_runs: Path) -> None:
    run = rlnb.get_run(CANCELLED)
    run.resume(max_iterations=12).wait(WAIT_S)
    assert run.started is not None
    assert (run.state, run.started.first_iteration) == ("completed", 10)
    assert run.metrics["reward"].iterations == pytest.approx(range(12))
    assert [job.kind for job in run.jobs] == ["train", "train"]


def test_a_job_with_a_running_agent_is_neither_resumed_nor_pruned(older_runs: Path, agent: Agent) -> None:
    run = rlnb.get_run(RUNNING)
    with pytest.raises(rlnb.RunError, match=r"is still running\. Wait for it, or cancel it"):
        run.resume()
    pruning = rlnb.runs().prune(whole=True)
    assert pruning.unfinished == 1
    assert RUNNING not in {id for id, _, _ in pruning.items}
    assert [job.folder.path.name for job in run.jobs] == ["0-train"]
    assert processes_of(run) == [agent.process.pid]


def test_a_running_agent_obeys_cancel_and_the_run_can_then_be_resumed(older_runs: Path, agent: Agent) -> None:
    run = rlnb.get_run(RUNNING).cancel()
    assert json.loads(agent.job.cancel.read_text()).keys() == {"time", "save_s"}
    assert agent.process.wait(WAIT_S) == 0
    assert run.state == "cancelled"
    run.resume(max_iterations=11).wait(WAIT_S)
    assert (run.state, run.progress) == ("completed", (11, 11))


def test_the_records_of_a_training_in_the_simulator_are_read(older_runs: Path) -> None:
    run = rlnb.get_run(SIMULATED)
    ranks = ranks_of(run.result)
    assert ranks is not None
    assert (len(ranks.parameters), len(ranks.observations), ranks.communication) == (1, 1, ())
    assert (run.manifest.deterministic, run.manifest.task.launcher_args) == (False, {})
    assert run.metrics["fps"].frames == [64.0, 128.0]
    assert run.config["env.sim.dt"] == run.config["sim.dt"] == 0.01
    (evaluation,) = run.evaluations
    assert (evaluation.lengths, evaluation.success_rate, evaluation.video) == ((77, 92), 0.0, None)
    export = run.jobs[2]
    assert options_of(ExportOptions, export.folder).formats == ("onnx",)
    assert export.result is not None
    assert [(file.format, file.path) for file in export_files_of(export.result, run.record.folder)] == [
        ("onnx", run.path / "exports" / "policy.onnx")
    ]


@pytest.mark.isaaclab
def test_a_training_in_the_simulator_is_resumed_evaluated_and_exported(older_runs: Path) -> None:
    run = rlnb.get_run(SIMULATED)
    run.resume(max_iterations=3).wait(300.0)
    assert run.started is not None
    assert run.started.first_iteration == 2
    assert {report.partition(":")[0] for report in run.started.restored.values()} == {"restored"}
    assert run.metrics["fps"].iterations == pytest.approx(range(3))
    (older,) = run.evaluations
    newer = run.evaluate(episodes=2, num_envs=2, checkpoint="model_1.pt", mode="train")
    assert (older.mode, newer.mode) == ("train", "train")
    assert newer.returns == pytest.approx(older.returns, rel=1e-3)
    assert run.export("onnx")["onnx"].is_file()
