"""W&B follows real trainings, offline: what its own file then holds is what the run's event files hold."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlnb

ITERATIONS, MORE_ITERATIONS = 12, 18
ITERATION_S = 0.3
"""Slow enough for W&B to be there before the end: a training's end waits for it only so long."""
WAIT_S = 60.0
LOST_S = 10.0
"""What a kill may take: the pause between looks, W&B's flush, and some for a busy machine."""
PROJECT = "my-project"


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A root of its own; no W&B settings or credentials of the user; no tracker is left behind."""
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    monkeypatch.setenv("RLNB_QUEUE", str(tmp_path / "queue"))
    monkeypatch.setattr(rlnb.options, "root", tmp_path / "rlnb-runs")
    monkeypatch.setattr(rlnb.options, "warm", False)
    yield tmp_path / "rlnb-runs"
    for run in rlnb.runs():
        left(run)


def train(*tags: str, **arguments: Any) -> rlnb.Run:
    agent = {"iteration_s": ITERATION_S, **arguments.pop("agent", {})}
    return rlnb.train("Echo", library="echo", tags=tags, agent=agent, **{"max_iterations": ITERATIONS, **arguments})


def left(run: rlnb.Run) -> None:
    """Wait until the newest job's agent, and so everything below it, has ended."""
    handle, deadline = run.jobs[-1].handle, time.monotonic() + WAIT_S
    assert handle is not None
    while rlnb.LocalLauncher().alive(handle, run.jobs[-1].folder.path):
        assert time.monotonic() < deadline, "the agent of the job does not end"
        time.sleep(0.05)


def stores(run: rlnb.Run) -> list[Path]:
    return sorted(run.path.glob("wandb/*/run-*.wandb"))


def records(store: Path) -> dict[str, list[dict[str, Any]]]:
    """Return what W&B's file holds, by kind of record, as W&B's own reader tells it."""
    argv = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(store)]
    lines = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    found: dict[str, list[dict[str, Any]]] = {"history": [], "exit": [], "run": [], "metric": [], "summary": []}
    for line in map(json.loads, lines):
        found.setdefault(line["type"], []).append(line[line["type"]])
    return found


def curve(rows: list[dict[str, Any]], name: str) -> list[tuple[float, float]]:
    return [(row["item"]["frames"], row["item"][name]) for row in rows if name in row["item"]]


def logged(run: rlnb.Run, name: str) -> list[tuple[float, float]]:
    series = run.metrics[name]
    return list(zip(series.frames, series.values, strict=True))


def test_what_wandb_holds_is_what_the_event_files_hold(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_PROJECT", PROJECT)
    run = train("wandb-offline", "mine").wait(WAIT_S)
    left(run)
    (store,) = stores(run)
    found = records(store)
    for name in ("reward", "episode_length", "success_rate", "fps", "Train/mean_reward"):
        assert curve(found["history"], name) == logged(run, name)
    assert len(found["history"]) == len(run.metrics["reward"]) == ITERATIONS
    assert [row["item"]["iteration"] for row in found["history"]] == run.metrics["reward"].iterations
    assert {"glob_name": "*", "step_metric": "frames"}.items() <= found["metric"][-1].items()
    (begun,) = found["run"]
    assert (begun["run_id"], begun["display_name"], begun["project"]) == (run.id, run.id, PROJECT)
    config = begun["config"]["update"]
    assert (config["task"]["id"], config["seed"], config["tags"]) == ("Echo", 42, ["wandb-offline", "mine"])
    assert found["exit"][0]["exit_code"] == 0
    summary = {key: value for record in found["summary"] for key, value in record["update"].items()}
    assert (summary["outcome"], summary["checkpoint"]) == ("completed", run.result.checkpoint)  # type: ignore[union-attr]


def test_a_resumed_run_goes_on_in_the_same_wandb_run(root: Path) -> None:
    run = train("wandb-offline").wait(WAIT_S)
    left(run)
    run.resume(max_iterations=MORE_ITERATIONS).wait(WAIT_S)
    left(run)
    first, second = map(records, stores(run))
    assert first["run"][0]["run_id"] == second["run"][0]["run_id"] == run.id
    assert second["run"][0]["resume"] is True
    assert len(second["history"]) == MORE_ITERATIONS - ITERATIONS
    assert curve(first["history"] + second["history"], "reward") == logged(run, "reward")
    steps = [row["item"]["_step"] for row in first["history"] + second["history"]]
    assert steps == sorted(set(steps)), "W&B wants steps that rise, over jobs too"


def test_a_training_that_raises_is_a_failed_wandb_run(root: Path) -> None:
    run = train("wandb-offline", agent={"crash_at": 7})
    with pytest.raises(rlnb.RunError):
        run.wait(WAIT_S)
    left(run)
    found = records(stores(run)[0])
    assert found["exit"][0]["exit_code"] == 1
    assert len(found["history"]) > 0
    assert curve(found["history"], "reward") == logged(run, "reward")


@pytest.mark.parametrize("how", ["killed", "cancelled"])
def test_what_is_stopped_leaves_a_file_that_can_be_synced(root: Path, how: str) -> None:
    run = train("wandb-offline", max_iterations=10_000)
    deadline = time.monotonic() + WAIT_S
    while not stores(run):
        assert time.monotonic() < deadline, run.logs()
        time.sleep(0.1)
    time.sleep(LOST_S)
    if how == "killed":
        pid = re.findall(r"pid (\d+)", run.logs())[-1]
        os.kill(int(pid), signal.SIGKILL)
    else:
        run.cancel()
    left(run)
    (store,) = stores(run)
    kept, whole = curve(records(store)["history"], "reward"), logged(run, "reward")
    assert kept
    assert kept == whole[: len(kept)]
    times = run.metrics["reward"].wall_time_s
    assert times[-1] - times[len(kept) - 1] < LOST_S
    argv = [sys.executable, "-m", "wandb", "sync", "--dry-run", str(store.parent)]
    told = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert store.name in told.stdout + told.stderr


def test_it_is_off_unless_it_is_asked_for(root: Path) -> None:
    run = train("wandbish").wait(WAIT_S)
    left(run)
    assert not (run.path / "wandb").exists()
    code = (
        "import pathlib, subprocess, sys; from rlnb import Manifest, Task; import rlnb_wandb.plugin as plugin\n"
        "def refuse(*_, **__): raise AssertionError('it starts a process')\n"
        "subprocess.Popen = refuse\n"
        "manifest = Manifest(run_id='r', created='', task=Task(id='Echo'), library='echo', tags=('mine',))\n"
        "assert plugin.rlnb_check(manifest) == []\n"
        "plugin.rlnb_run_started(pathlib.Path('.'), manifest)\n"
        "plugin.rlnb_run_finished(pathlib.Path('.'))\n"
        "print(*sorted({'wandb', 'tensorboard', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def problem_of(*tags: str, **arguments: Any) -> rlnb.Problem:
    with pytest.raises(rlnb.CheckError) as caught:
        train(*tags, **arguments)
    (problem,) = caught.value.problems
    return problem


def test_a_missing_package_is_said_before_anything_starts(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = f"{getattr(sys, '_base_executable', sys.executable)} -S"  # a Python without any package
    assert "rlnb-wandb" in problem_of("wandb-offline", python=bare).what
    info = tmp_path / "site/rlnb_wandb-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rlnb-wandb\nVersion: 1.0\n")
    monkeypatch.setenv("PYTHONPATH", str(info.parent))
    problem = problem_of("wandb", python=bare)
    assert problem.what.endswith("No package metadata was found for wandb")
    assert problem.fix == f"{bare} -m pip install rlnb-wandb wandb"
    assert not root.exists()


def test_missing_credentials_are_said_before_anything_starts(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    problem = problem_of("wandb")
    assert "No API key configured" in problem.what
    assert "wandb login" in problem.fix
    assert not root.exists()


def test_a_wandb_that_fails_leaves_a_warning_and_a_completed_run(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "site/wandb"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise RuntimeError('wandb is broken today')\n")
    monkeypatch.setenv("PYTHONPATH", str(broken.parent))
    run = train("wandb-offline").wait(WAIT_S)
    left(run)
    assert run.state == "completed"
    assert "W&B follows this run no more: RuntimeError: wandb is broken today" in run.logs(200)


@pytest.mark.slow
def test_a_server_out_of_reach_has_it_go_on_offline(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    run = train("wandb", max_iterations=80, agent={"iteration_s": 1.0}).wait(2 * WAIT_S)
    left(run)
    (offline,) = run.path.glob("wandb/offline-run-*/run-*.wandb")
    assert curve(records(offline)["history"], "reward") == logged(run, "reward")
