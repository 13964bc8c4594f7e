"""The folders of stock Isaac Lab, and their states."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

import rlnb
from rlnb.plugin import Manifest
from rlnb.records.find import find
from rlnb.records.layout import RunDir
from rlnb.records.stock_record import STARTS_WITHIN_S
from rlnb.storage import files
from rlnb.storage.serial import to_json

LONG_AGO_S = 3600.0
STOCK_ENVS, STOCK_HORIZON = 64, 32


def log(folder: Path, steps: int = 3) -> None:
    writer = EventFileWriter(str(folder))
    for step in range(steps):
        tags = ["Train/mean_reward", *(f"Loss/term_{number}" for number in range(10))]
        values = [Summary.Value(tag=tag, simple_value=1.0) for tag in tags]
        writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))
    writer.close()


def stock_run(logs: Path) -> Path:
    """Lay out the folder that stock `isaaclab train` writes."""
    run = logs / "rsl_rl" / "cartpole" / "2026-01-01_00-00-00"
    (run / "params").mkdir(parents=True)
    (run / "params" / "env.yaml").write_text(
        "viewer: !!python/object:isaaclab.envs.common.ViewerCfg\n  lookat: !!python/tuple [0.0]\n"
        f"scene:\n  num_envs: {STOCK_ENVS}\n"
    )
    (run / "params" / "agent.yaml").write_text(f"seed: 42\nnum_steps_per_env: {STOCK_HORIZON}\n")
    files.write_once(
        run / "run.json",
        {"task": "Isaac-Cartpole-Direct", "library": "rsl_rl", "created_at": "2026-01-01T00:00:00+00:00"},
    )
    log(run)
    (run / "model_2.pt").touch()
    return run


@pytest.mark.parametrize("below", ["", "rsl_rl", "rsl_rl/cartpole", "rsl_rl/cartpole/2026-01-01_00-00-00"])
def test_the_logs_of_stock_isaaclab_are_listed(tmp_path: Path, below: str) -> None:
    folder = stock_run(tmp_path / "logs")
    (run,) = rlnb.runs(tmp_path / "logs" / below)
    assert (run.task, run.library, run.path) == ("Isaac-Cartpole-Direct", "rsl_rl", folder)
    assert run.created.year == 2026
    assert "Isaac-Cartpole-Direct" in repr(run)
    assert folder.name in run._repr_html_()


@pytest.mark.parametrize(
    ("library", "names"),
    [
        ("sb3", ["model_200_steps.zip", "model_1000_steps.zip", "model.zip"]),
        ("skrl", ["checkpoints/best_agent.pt", "checkpoints/agent_80.pt", "checkpoints/agent_160.pt"]),
        (
            "rl_games",
            [
                "nn/cartpole_direct.pth",
                "nn/last_cartpole_direct_ep_9_rew_4.pth",
                "nn/last_cartpole_direct_ep_10_rew_2.pth",
            ],
        ),
        ("rsl_rl", ["model_2.pt", "model_10.pt"]),
    ],
)
def test_the_checkpoints_of_every_library_are_found_the_newest_last(
    tmp_path: Path, library: str, names: list[str]
) -> None:
    folder = stock_run(tmp_path / "logs")
    (folder / "run.json").write_text(f'{{"task": "Isaac-Cartpole-Direct", "library": "{library}"}}')
    (folder / "model_2.pt").unlink()
    for name in reversed([*names, "model_vecnormalize.pkl", "params/model.txt"]):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    (run,) = rlnb.runs(tmp_path / "logs")
    assert [path.relative_to(folder).as_posix() for path in run.checkpoints] == names


def test_a_stock_run_has_metrics_in_frames(tmp_path: Path) -> None:
    stock_run(tmp_path / "logs")
    (run,) = rlnb.runs(tmp_path / "logs")
    frames = STOCK_ENVS * STOCK_HORIZON
    assert run.metrics["Train/mean_reward"].frames == [frames, 2 * frames, 3 * frames]


def test_a_stock_run_is_running_while_its_files_grow(tmp_path: Path) -> None:
    folder = stock_run(tmp_path / "logs")
    (run,) = rlnb.runs(tmp_path / "logs")
    assert run.state == "running"
    for path in folder.glob("*tfevents*"):
        os.utime(path, (time.time() - LONG_AGO_S,) * 2)
    assert run.state == "completed"


def test_task_and_library_of_a_stock_run_without_run_json_come_from_its_path(tmp_path: Path) -> None:
    (stock_run(tmp_path / "logs") / "run.json").unlink()
    (run,) = rlnb.runs(tmp_path / "logs")
    assert (run.task, run.library) == ("cartpole", "rsl_rl")


@pytest.mark.parametrize("verb", [lambda run: run.evaluate(10), lambda run: run.resume()], ids=["evaluate", "resume"])
def test_a_stock_run_is_only_read(tmp_path: Path, verb: Callable[[rlnb.Run], object]) -> None:
    folder = stock_run(tmp_path / "logs")
    for path in folder.glob("*tfevents*"):
        os.utime(path, (time.time() - LONG_AGO_S,) * 2)
    (run,) = rlnb.runs(tmp_path / "logs")
    before = sorted(folder.rglob("*"))
    with pytest.raises(rlnb.RlnbError, match="only reads"):
        verb(run)
    assert sorted(folder.rglob("*")) == before


def test_runs_and_stock_runs_are_found_side_by_side_and_once(root: Path) -> None:
    run = RunDir(root / "runs" / "20260101-000000-echo")
    manifest = Manifest(run_id=run.path.name, created="", task=rlnb.Task(id="Echo"), library="echo")
    run.path.mkdir(parents=True)
    files.write_once(run.manifest, to_json(manifest))
    (run.logs / "params").mkdir(parents=True)  # a training of rlnb writes these too
    (run.logs / "params" / "env.yaml").touch()
    (run.logs / "params" / "agent.yaml").touch()
    stock = stock_run(root / "logs")
    assert [record.path for record in find(root)] == [run.path, stock]
    assert [record.path for record in find(root / "runs")] == [run.path]
    assert [record.path for record in find(run.path)] == [run.path]


def write_events(folder: Path, host: str, pid: int) -> None:
    """Replace the event file of a stock run by one of another process."""
    for path in folder.glob("*tfevents*"):
        path.rename(folder / f"events.out.tfevents.1795668202.{host}.{pid}.0")


def let_rest(folder: Path) -> None:
    """Make the event files 20 s old."""
    for path in folder.glob("*tfevents*"):
        os.utime(path, (time.time() - 20.0,) * 2)


def test_a_stock_run_whose_event_files_were_deleted_has_completed(tmp_path: Path) -> None:
    folder = stock_run(tmp_path / "logs")
    for path in folder.glob("*tfevents*"):
        path.unlink()
    (run,) = rlnb.runs(tmp_path / "logs")
    assert run.state == "completed"


def test_a_stock_run_whose_process_has_ended_is_not_running(tmp_path: Path) -> None:
    folder = stock_run(tmp_path / "logs")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (run,) = rlnb.runs(tmp_path / "logs")
    write_events(folder, socket.gethostname(), os.getpid())
    assert run.state == "running"
    write_events(folder, socket.gethostname(), ended.pid)
    assert run.state == "running", "its file has just grown: a container may have other numbers of processes"
    let_rest(folder)
    assert run.state == "completed", "its process was on this host, and is gone"
    write_events(folder, "another-host", ended.pid)
    let_rest(folder)
    assert run.state == "running", "whether a process of another host lives is not known here"


def test_a_stock_run_that_failed_at_its_start_is_listed(tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "rsl_rl" / "cartpole" / "2026-01-01_00-00-00"
    folder.mkdir(parents=True)
    record = {"task": "Isaac-Cartpole-Direct", "library": "rsl_rl", "created_at": "2026-01-01T00:00:00+00:00"}
    files.write_once(folder / "run.json", record)
    (run,) = rlnb.runs(tmp_path / "logs")
    assert (run.task, run.library, run.state) == ("Isaac-Cartpole-Direct", "rsl_rl", "starting")
    os.utime(folder, (time.time() - STARTS_WITHIN_S - 1,) * 2)
    assert run.state == "failed"
    with pytest.raises(rlnb.RunError, match="It has no checkpoint"):
        run.evaluate(10)


@pytest.mark.parametrize("text", ["[]", "{}", '{"library": 1, "task": "a"}', "{"])
def test_another_programs_run_json_is_not_a_run(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    assert list(find(tmp_path)) == []


def test_a_refusal_of_a_stock_run_names_what_works(tmp_path: Path) -> None:
    folder = stock_run(tmp_path / "logs")
    (folder / "model_3.pt").write_bytes(b"")
    (run,) = rlnb.runs(tmp_path / "logs")
    with pytest.raises(rlnb.RunError) as raised:
        run.evaluate(10)
    checkpoint = str(folder / "model_3.pt")
    assert f"rlnb.train('Isaac-Cartpole-Direct', library='rsl_rl', init_from={checkpoint!r})" in str(raised.value)
    assert f"use checkpoint={checkpoint!r} with a run" in str(raised.value)
    with pytest.raises(rlnb.RunError, match=r"init_from='.*/model_2\.pt'"):
        run.evaluate(10, checkpoint="model_2.pt")
    with pytest.raises(rlnb.RunError, match=r"It has no checkpoint model_9\.pt"):
        run.evaluate(10, checkpoint="model_9.pt")
