"""Trackio follows real trainings, and its local database then has the values of the run's event files."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rlnb

pytest.importorskip("trackio", reason="constraints.txt and Trackio exclude each other: make test-trackers")

WAIT_S = 120.0
Train = Callable[..., rlnb.Run]
Wait = Callable[[rlnb.Run], None]


class Store:
    """The one run in Trackio's local database of a project."""

    def __init__(self, tmp_path: Path, project: str = "rlnb") -> None:
        self._file = tmp_path / "trackio" / f"{project}.db"

    def rows(self, columns: str, table: str) -> list[tuple[str, ...]]:
        """Return columns of a table in the order in which the rows were written; empty without a database."""
        if not self._file.exists():
            return []
        connection = sqlite3.connect(self._file)
        try:
            return connection.execute(f"SELECT {columns} FROM {table} ORDER BY rowid").fetchall()
        except sqlite3.OperationalError:  # the tables are still to be made
            return []
        finally:
            connection.close()

    def curve(self, name: str) -> list[tuple[int, float]]:
        rows = [(step, json.loads(metrics)) for step, metrics in self.rows("step, metrics", "metrics")]
        return [(int(step), metrics[name]) for step, metrics in rows if name in metrics]

    @property
    def names(self) -> set[tuple[str, ...]]:
        """The id and the name of each run."""
        return {*self.rows("run_id, run_name", "metrics")}

    @property
    def config(self) -> dict[str, Any]:
        ((text,),) = self.rows("config", "configs")
        values: dict[str, Any] = json.loads(text)
        return values

    @property
    def alerts(self) -> list[tuple[str, ...]]:
        return self.rows("level, title, text", "alerts")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def logged(run: rlnb.Run, name: str) -> list[tuple[float, float]]:
    series = run.metrics[name]
    return list(zip(series.frames, series.values, strict=True))


def wait_for(run: rlnb.Run, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, run.logs()
        time.sleep(0.1)


def test_the_database_has_the_values_of_the_event_files(
    train: Train, wait_for_agent: Wait, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKIO_PROJECT", "my-project")
    run = train("trackio", "mine", seed=7, max_iterations=40).wait(WAIT_S)
    wait_for_agent(run)
    store = Store(tmp_path, "my-project")
    for name in ("reward", "episode_length", "success_rate", "fps", "Train/mean_reward"):
        assert store.curve(name) == logged(run, name)
    frames, iterations = run.metrics["reward"].frames, run.metrics["reward"].iterations
    assert store.curve("iteration") == list(zip(frames, iterations, strict=True))
    ((_, name),) = store.names
    assert name == run.id
    config = store.config
    assert (config["task"]["id"], config["seed"], config["tags"]) == ("Echo", 7, ["trackio", "mine"])
    assert config["agent"] == {"iteration_s": 0.3}
    assert store.alerts == [("info", "completed", run.result.checkpoint)]  # type: ignore[union-attr]
    assert store.rows("metrics", "system_metrics") == []


def test_a_killed_run_has_failed_and_goes_on_in_the_same_trackio_run(
    train: Train, wait_for_agent: Wait, store: Store
) -> None:
    run = train("trackio", max_iterations=10_000)
    wait_for(run, lambda: run.checkpoints and store.names)
    # two or more iterations after the last checkpoint, so that the resumed job repeats some
    wait_for(run, lambda: int(re.findall(r"iteration (\d+) of", run.logs())[-1]) % 5 in (2, 3))
    os.kill(int(re.findall(r"pid (\d+)", run.logs())[-1]), signal.SIGKILL)
    wait_for_agent(run)
    before = store.curve("reward")
    assert before == logged(run, "reward")[: len(before)]
    assert store.alerts == [("error", "failed", "")]
    run.resume(max_iterations=run.progress[0] + 40).wait(WAIT_S)
    wait_for_agent(run)
    after = store.curve("reward")
    assert len(store.names) == 1
    assert after[: len(before)] == before
    frames, begin = run.metrics["reward"].frames, before[-1][0]
    assert min(frames[run.started.first_iteration :]) <= begin, "the resumed job repeats logged iterations"  # type: ignore[union-attr]
    assert [step for step, _ in after] == frames, "each number of frames is there once"
    assert after[len(before) :] == [point for point in logged(run, "reward") if point[0] > begin]
    assert store.alerts[1:] == [("info", "completed", run.result.checkpoint)]  # type: ignore[union-attr]


def test_a_training_that_raises_has_an_alert_with_the_error(train: Train, wait_for_agent: Wait, store: Store) -> None:
    run = train("trackio", max_iterations=100, agent={"crash_at": 60})
    with pytest.raises(rlnb.RunError):
        run.wait(WAIT_S)
    wait_for_agent(run)
    ((level, title, text),) = store.alerts
    assert (level, title) == ("error", "failed")
    assert "echo crashes at iteration 60" in text
    assert store.curve("reward") == logged(run, "reward")


def test_a_cancelled_run_has_an_alert(train: Train, wait_for_agent: Wait, store: Store) -> None:
    run = train("trackio", max_iterations=10_000)
    wait_for(run, lambda: store.names)
    run.cancel()
    wait_for_agent(run)
    ((level, title, _),) = store.alerts
    assert (level, title) == ("warn", "cancelled")
    part = store.curve("reward")
    assert part == logged(run, "reward")[: len(part)]


def test_the_command_sends_a_job_that_was_not_sent(train: Train, wait_for_agent: Wait, store: Store) -> None:
    run = train("mine").wait(WAIT_S)
    wait_for_agent(run)
    assert store.names == set()
    argv = [sys.executable, "-m", "rlnb_trackio.tracker", str(run.path)]
    for _ in range(2):  # the second time there is nothing left to send
        subprocess.run(argv, stdin=subprocess.DEVNULL, check=True)
        assert store.curve("reward") == logged(run, "reward")


def test_a_server_that_does_not_answer_leaves_a_warning_and_a_completed_run(
    train: Train, wait_for_agent: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKIO_SERVER_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("TRACKIO_WRITE_TOKEN", "token")
    run = train("trackio", max_iterations=40).wait(WAIT_S)
    wait_for_agent(run)
    assert run.state == "completed"
    assert len(run.metrics["reward"]) == 40
    assert "could not create a remote client for 'http://127.0.0.1:9'" in run.logs(300)
