"""MLflow follows real trainings, and its local store then has the values of the run's event files."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rlnb_mlflow import tracker

import rlnb
from rlnb.launchers import LocalLauncher

if TYPE_CHECKING:
    from mlflow.entities import Run as MlflowRun

mlflow = pytest.importorskip("mlflow", reason="constraints.txt and MLflow exclude each other: make test-trackers")

WAIT_S = 120.0
Train = Callable[..., rlnb.Run]
Wait = Callable[[rlnb.Run], None]


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a store without runs. MLflow takes seconds to make one, which most tests need not wait for."""
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    file = tmp_path_factory.mktemp("store") / "mlflow.db"
    mlflow.MlflowClient(f"sqlite:///{file}").create_experiment("rlnb")
    return file.read_bytes()


@pytest.fixture
def store(empty_store: bytes, root: Path) -> Path:
    file = root / "runs" / "mlflow.db"
    file.parent.mkdir(parents=True)
    file.write_bytes(empty_store)
    return file


def of(run: rlnb.Run, uri: str = "", experiment: str = "rlnb") -> MlflowRun:
    """Return the one MLflow run of a run."""
    client = mlflow.MlflowClient(uri or f"sqlite:///{run.path.parent / 'mlflow.db'}")
    number = client.get_experiment_by_name(experiment).experiment_id
    (found,) = client.search_runs([number], f"tags.rlnb_run = '{run.id}'")
    assert found.info.run_name == run.id
    return found


def curve(run: rlnb.Run, key: str, uri: str = "", experiment: str = "rlnb") -> list[tuple[int, float]]:
    client = mlflow.MlflowClient(uri or f"sqlite:///{run.path.parent / 'mlflow.db'}")
    history = client.get_metric_history(of(run, uri, experiment).info.run_id, key)
    return sorted((point.step, point.value) for point in history)


def logged(run: rlnb.Run, name: str) -> list[tuple[float, float]]:
    series = run.metrics[name]
    return list(zip(series.frames, series.values, strict=True))


@pytest.mark.usefixtures("store")
def test_the_store_has_the_values_of_the_event_files(train: Train, wait_for_agent: Wait) -> None:
    run = train("mlflow", "mine", seed=7, max_iterations=100).wait(WAIT_S)
    wait_for_agent(run)
    for name in ("reward", "episode_length", "success_rate", "fps", "Train/mean_reward"):
        assert curve(run, name) == logged(run, name)
    frames, iterations = run.metrics["reward"].frames, run.metrics["reward"].iterations
    assert curve(run, "iteration") == list(zip(frames, iterations, strict=True))
    assert curve(run, "frames") == list(zip(frames, frames, strict=True))
    found = of(run)
    assert found.data.params.items() >= {
        "task.id": "Echo", "library": "echo", "seed": "7", "agent.iteration_s": "0.3", "max_iterations": "100"
    }.items()  # fmt: skip
    assert not {"tags", "run_id", "parent"} & {*found.data.params}
    assert found.data.tags["rlnb_tags"] == "mlflow, mine"
    assert found.data.tags["mlflow.user"]
    assert (found.info.status, found.data.tags["rlnb_outcome"]) == ("FINISHED", "completed")
    assert found.data.tags["rlnb_checkpoint"] == run.result.checkpoint  # type: ignore[union-attr]
    assert [run.id for run in rlnb.runs()] == [run.id], "the store among the runs is no run"


def test_trainings_that_start_at_once_share_a_new_store(train: Train, wait_for_agent: Wait) -> None:
    launcher = LocalLauncher(max_running=3)
    runs = [train("mlflow", seed=seed, max_iterations=150, launcher=launcher) for seed in range(3)]
    for run in runs:
        wait_for_agent(run.wait(WAIT_S))
    assert [of(run).info.status for run in runs] == ["FINISHED"] * 3


def values_of(run: rlnb.Run) -> list[tuple[int, float]]:
    """Return the curve so far; empty as long as MLflow has no run."""
    try:
        return curve(run, "reward")
    except ValueError:
        return []


def kill_between_checkpoints(run: rlnb.Run) -> None:
    """Wait until the tracker has values, then kill the training two or more iterations after its last checkpoint."""
    deadline = time.monotonic() + WAIT_S
    while (
        not run.checkpoints
        or not values_of(run)
        or int(re.findall(r"iteration (\d+) of", run.logs())[-1]) % 5 not in (2, 3)
    ):
        assert time.monotonic() < deadline, run.logs()
        time.sleep(0.1)
    os.kill(int(re.findall(r"pid (\d+)", run.logs())[-1]), signal.SIGKILL)


@pytest.mark.usefixtures("store")
def test_a_killed_run_has_failed_and_goes_on_in_the_same_mlflow_run(train: Train, wait_for_agent: Wait) -> None:
    run = train("mlflow", max_iterations=10_000)
    kill_between_checkpoints(run)
    wait_for_agent(run)
    first, before = of(run), curve(run, "reward")
    assert (first.info.status, first.data.tags["rlnb_outcome"]) == ("FAILED", "failed")
    assert before == logged(run, "reward")[: len(before)]
    run.resume(max_iterations=run.progress[0] + 40).wait(WAIT_S)
    wait_for_agent(run)
    second, after = of(run), curve(run, "reward")
    assert second.info.run_id == first.info.run_id
    assert (second.info.status, second.data.tags["rlnb_outcome"]) == ("FINISHED", "completed")
    assert after[: len(before)] == before
    frames, begin = run.metrics["reward"].frames, before[-1][0]
    assert min(frames[run.started.first_iteration :]) <= begin, "the resumed job repeats logged iterations"  # type: ignore[union-attr]
    assert [step for step, _ in after] == frames, "each number of frames is there once"
    assert after[len(before) :] == [point for point in logged(run, "reward") if point[0] > begin]
    assert len(curve(run, "iteration")) == len(after)


@pytest.mark.usefixtures("store")
def test_a_training_that_raises_is_a_failed_mlflow_run(train: Train, wait_for_agent: Wait) -> None:
    run = train("mlflow", max_iterations=100, agent={"crash_at": 60})
    with pytest.raises(rlnb.RunError):
        run.wait(WAIT_S)
    wait_for_agent(run)
    assert of(run).info.status == "FAILED"
    assert of(run).data.tags["rlnb_outcome"] == "failed"
    assert "echo crashes at iteration 60" in of(run).data.tags["rlnb_error"]
    assert curve(run, "reward") == logged(run, "reward")


@pytest.mark.usefixtures("store")
def test_a_cancelled_run_is_a_killed_mlflow_run(train: Train, wait_for_agent: Wait) -> None:
    run = train("mlflow", max_iterations=10_000)
    deadline = time.monotonic() + WAIT_S
    while not values_of(run):
        assert time.monotonic() < deadline, run.logs()
        time.sleep(0.5)
    run.cancel()
    wait_for_agent(run)
    assert (of(run).info.status, of(run).data.tags["rlnb_outcome"]) == ("KILLED", "cancelled")
    assert curve(run, "reward") == logged(run, "reward")[: len(curve(run, "reward"))]


@pytest.mark.usefixtures("store")
def test_the_command_sends_a_job_that_was_not_sent(train: Train, wait_for_agent: Wait) -> None:
    run = train("mine").wait(WAIT_S)
    wait_for_agent(run)
    argv = [sys.executable, "-m", "rlnb_mlflow.tracker", str(run.path)]
    for _ in range(2):  # the second time there is nothing left to send
        subprocess.run(argv, stdin=subprocess.DEVNULL, check=True)
        assert curve(run, "reward") == logged(run, "reward")
        assert len(curve(run, "fps")) == len(curve(run, "frames")) == len(logged(run, "fps"))
    assert of(run).info.status == "FINISHED"


def test_a_folder_as_the_users_own_uri_and_experiment(
    train: Train, wait_for_agent: Wait, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "my-experiment")
    run = train("mlflow", max_iterations=100).wait(WAIT_S)
    wait_for_agent(run)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = (tmp_path / "mlruns").as_uri()
    assert curve(run, "reward", uri, "my-experiment") == logged(run, "reward")
    assert not (run.path.parent / "mlflow.db").exists()


def test_a_server_that_does_not_answer_leaves_a_warning_and_a_completed_run(
    train: Train, wait_for_agent: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    run = train("mlflow", max_iterations=100).wait(WAIT_S)
    wait_for_agent(run)
    assert run.state == "completed"
    assert len(run.metrics["reward"]) == 100
    assert "MLflow no longer follows this run: MlflowException" in run.logs(200)


def test_the_names_are_ones_that_mlflow_accepts() -> None:
    assert tracker.metric_key("Loss/value_function") == "Loss/value_function"
    assert tracker.metric_key("Reward / Total reward (mean)") == "Reward / Total reward _mean_"
    assert tracker.metric_key("/a//b/../c") == "a/c"
    assert len(tracker.metric_key("x" * 300)) == 250
