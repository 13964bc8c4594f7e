"""W&B follows real trainings offline, and its file then has the values of the run's event files."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rlnb

ITERATIONS, MORE_ITERATIONS = 12, 18
WAIT_S = 60.0
LOST_S = 10.0
"""Seconds of data that a kill may lose: the pause between reads, W&B's flush, and a margin for a busy machine."""
PROJECT = "my-project"
Train = Callable[..., rlnb.Run]
Wait = Callable[[rlnb.Run], None]


def stores(run: rlnb.Run) -> list[Path]:
    return sorted(run.path.glob("wandb/*/run-*.wandb"))


def records(store: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the records of a W&B file by type, as read by W&B's own reader."""
    argv = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(store)]
    lines = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    parts: dict[str, list[dict[str, Any]]] = {"history": [], "exit": [], "run": [], "metric": [], "summary": []}
    for line in map(json.loads, lines):
        parts.setdefault(line["type"], []).append(line[line["type"]])
    return parts


def curve(rows: list[dict[str, Any]], name: str) -> list[tuple[float, float]]:
    return [(row["item"]["frames"], row["item"][name]) for row in rows if name in row["item"]]


def logged(run: rlnb.Run, name: str) -> list[tuple[float, float]]:
    series = run.metrics[name]
    return list(zip(series.frames, series.values, strict=True))


def test_wandbs_file_has_the_values_of_the_event_files(
    train: Train, wait_for_agent: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_PROJECT", PROJECT)
    run = train("wandb-offline", "mine").wait(WAIT_S)
    wait_for_agent(run)
    (store,) = stores(run)
    parts = records(store)
    for name in ("reward", "episode_length", "success_rate", "fps", "Train/mean_reward"):
        assert curve(parts["history"], name) == logged(run, name)
    assert len(parts["history"]) == len(run.metrics["reward"]) == ITERATIONS
    assert [row["item"]["iteration"] for row in parts["history"]] == run.metrics["reward"].iterations
    assert {"glob_name": "*", "step_metric": "frames"}.items() <= parts["metric"][-1].items()
    (header,) = parts["run"]
    assert (header["run_id"], header["display_name"], header["project"]) == (run.id, run.id, PROJECT)
    config = header["config"]["update"]
    assert (config["task"]["id"], config["seed"], config["tags"]) == ("Echo", 42, ["wandb-offline", "mine"])
    assert parts["exit"][0]["exit_code"] == 0
    summary = {key: value for record in parts["summary"] for key, value in record["update"].items()}
    assert (summary["outcome"], summary["checkpoint"]) == ("completed", run.result.checkpoint)  # type: ignore[union-attr]


def test_a_resumed_run_continues_the_same_wandb_run(train: Train, wait_for_agent: Wait) -> None:
    run = train("wandb-offline").wait(WAIT_S)
    wait_for_agent(run)
    run.resume(max_iterations=MORE_ITERATIONS).wait(WAIT_S)
    wait_for_agent(run)
    first, second = map(records, stores(run))
    assert first["run"][0]["run_id"] == second["run"][0]["run_id"] == run.id
    assert second["run"][0]["resume"] is True
    assert len(second["history"]) == MORE_ITERATIONS - ITERATIONS
    assert curve(first["history"] + second["history"], "reward") == logged(run, "reward")
    steps = [row["item"]["_step"] for row in first["history"] + second["history"]]
    assert steps == sorted(set(steps)), "W&B requires increasing steps, also across jobs"


def test_a_training_that_raises_is_a_failed_wandb_run(train: Train, wait_for_agent: Wait) -> None:
    run = train("wandb-offline", agent={"crash_at": 7})
    with pytest.raises(rlnb.RunError):
        run.wait(WAIT_S)
    wait_for_agent(run)
    parts = records(stores(run)[0])
    assert parts["exit"][0]["exit_code"] == 1
    assert len(parts["history"]) > 0
    assert curve(parts["history"], "reward") == logged(run, "reward")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["killed", "cancelled"])
def test_a_stopped_run_leaves_a_file_that_can_be_synced(train: Train, wait_for_agent: Wait, how: str) -> None:
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
    wait_for_agent(run)
    (store,) = stores(run)
    part, whole = curve(records(store)["history"], "reward"), logged(run, "reward")
    assert part
    assert part == whole[: len(part)]
    times = run.metrics["reward"].wall_time_s
    assert times[-1] - times[len(part) - 1] < LOST_S
    argv = [sys.executable, "-m", "wandb", "sync", "--dry-run", str(store.parent)]
    output = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert store.name in output.stdout + output.stderr


@pytest.mark.slow
def test_an_unreachable_server_makes_the_tracker_go_offline(
    train: Train, wait_for_agent: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    run = train("wandb", max_iterations=80, agent={"iteration_s": 1.0}).wait(2 * WAIT_S)
    wait_for_agent(run)
    (offline,) = run.path.glob("wandb/offline-run-*/run-*.wandb")
    assert curve(records(offline)["history"], "reward") == logged(run, "reward")
