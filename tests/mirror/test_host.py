"""A run on another machine is mirrored here, whatever happens to the connection and to the mirror."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

import rlnb
from rlnb.mirror import host as module
from rlnb.mirror.frames import Closed, Frame
from rlnb.mirror.host import Host, lock
from rlnb.mirror.launcher import is_locked
from rlnb.records import remote
from rlnb.records.layout import JobDir, RunDir
from rlnb.results import TensorBoard
from rlnb.spec import Command, Job, Manifest, Task
from rlnb.storage import files

WAIT_S = 60.0


def until(fact: Callable[[], object], within_s: float = WAIT_S) -> None:
    deadline = time.monotonic() + within_s
    while not fact():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def train(door: Any, iterations: int = 1000) -> rlnb.Run:
    """Start a training with a fiftieth of a second per iteration behind the door."""
    return rlnb.train("Echo", library="echo", max_iterations=iterations, agent={"iteration_s": 0.02}, launcher=door)


def processes(module: str, run: rlnb.Run) -> list[psutil.Process]:
    """Return the mirrors of a run, or the other ends of their connections."""
    mirrors = [
        process
        for process in psutil.process_iter(["cmdline"])
        if "rlnb.mirror.host" in (process.info["cmdline"] or ()) and run.id in " ".join(process.info["cmdline"])
    ]
    if module == "rlnb.mirror.host":
        return mirrors
    children = (child for mirror in mirrors for child in mirror.children())
    return [child for child in children if module in child.cmdline()]


def far(door: Any, run: rlnb.Run) -> Path:
    """Return the folder of a run behind the door."""
    return Path(door.root) / "runs" / run.id


def test_a_run_is_trained_evaluated_and_trained_on_behind_the_door(door: Any) -> None:
    run = train(door, 5).wait(WAIT_S)
    assert (run.state, run.progress) == ("completed", (5, 5))
    assert [path.name for path in run.checkpoints] == ["model_4.json"]
    assert not run.checkpoints[0].exists(), "it is copied only on request"
    assert run.evaluate(episodes=4).episodes == 4
    run.resume(max_iterations=8).wait(WAIT_S)
    assert run.progress == (8, 8)
    assert run.metrics["reward"].iterations == [float(number) for number in range(8)]
    until(lambda: not processes("rlnb.mirror.host", run))
    assert not is_locked(RunDir(run.path))
    assert (far(door, run) / "manifest.json").exists()
    assert 'launcher": "local"' in (far(door, run) / "manifest.json").read_text()


def test_tensorboard_shows_a_run_that_was_trained_behind_the_door(door: Any) -> None:
    pytest.importorskip("tensorboard")
    run = train(door, 20).wait(WAIT_S)
    board = run.tensorboard(reload_s=1)
    until(lambda: _points(board, run) == 20)
    board.close()


def _points(board: TensorBoard, run: rlnb.Run) -> int:
    """Return the number of points of a curve that TensorBoard has read."""
    url = f"{board.url}data/plugin/scalars/scalars?run={run.id}&tag=Train%2Fmean_reward"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return len(json.load(answer))
    except urllib.error.HTTPError:  # it has not read the run yet
        return 0


def test_the_curves_are_whole_after_a_time_without_a_connection(door: Any) -> None:
    run = train(door)
    until(lambda: run.state == "running")
    shut = Path(door.place) / "shut"
    shut.touch()
    for process in processes("rlnb.mirror", run):
        process.kill()
    until(lambda: "no connection to" in run.record.reason and "the door is shut" in run.record.reason)
    assert run.state == "running"
    assert run.record.reason.endswith("the job goes on there")
    reached = run.progress[0]
    until(lambda: len((far(door, run) / "jobs" / "0-train" / "node0.log").read_text().splitlines()) > reached + 50)
    assert run.progress[0] == reached
    shut.unlink()
    until(lambda: run.progress[0] > reached + 50)
    iterations = run.metrics["reward"].iterations
    assert iterations == [float(number) for number in range(len(iterations))]
    run.cancel()
    until(lambda: run.state == "cancelled")


def test_a_mirror_that_was_killed_is_started_by_the_next_look(door: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = train(door)
    until(lambda: run.state == "running")
    door._started.clear()  # another process than the one that has started the training
    (mirror,) = processes("rlnb.mirror.host", run)
    mirror.kill()
    mirror.wait(WAIT_S)
    assert run.state == "running"
    until(lambda: processes("rlnb.mirror.host", run))
    reached = run.progress[0]
    until(lambda: run.progress[0] > reached)
    run.cancel(save_s=0)
    until(lambda: run.state == "cancelled")


def test_a_run_whose_agent_was_killed_there_is_lost_here(door: Any) -> None:
    run = train(door)
    until(lambda: run.state == "running")
    os.kill(int((far(door, run) / "jobs" / "0-train" / "handle.json").read_text().split('"pid": ')[1].split(",")[0]), 9)
    until(lambda: run.state == "lost")
    until(lambda: not processes("rlnb.mirror.host", run))


def test_a_job_that_never_left_this_machine_is_cancelled_at_once(door: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(door), "check", lambda self, manifest: [])
    (Path(door.place) / "shut").touch()
    run = rlnb.train("Echo", library="echo", max_iterations=1000, launcher=door)
    until(lambda: "no connection" in run.record.reason)
    run.cancel()
    until(lambda: run.state == "cancelled")
    result = run.jobs[0].result
    assert result is not None
    assert result.error == f"cancelled before it was sent to {door.place}"


def test_a_mirror_ends_with_the_folder_of_its_run(door: Any) -> None:
    run = train(door)
    until(lambda: run.state == "running")
    (far(door, run) / "jobs" / "0-train" / "cancel.json").write_text("{}")
    hidden = run.path.with_name("removed")
    run.path.rename(hidden)
    until(lambda: not processes("rlnb.mirror.host", run))
    assert not run.path.exists(), "it is not made anew"


def test_a_frame_that_cannot_be_used_ends_the_connection_and_not_the_mirror(door: Any, tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    run.path.mkdir()
    files.write_once(run.manifest, Manifest(run_id="run", created="", task=Task(id="Echo"), library="echo"))
    with pytest.raises(Closed, match="cannot be used"):
        Host(run, door)._receive(Frame(kind="grow", path="logs/events.out.tfevents.1", mtime_ns=10**40))


def test_an_end_that_fails_at_its_start_is_tried_less_and_less_often(
    door: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDir(tmp_path / "run")
    run.path.mkdir()
    files.write_once(run.manifest, Manifest(run_id="run", created="", task=Task(id="Echo"), library="echo"))
    job = run.next_job("train", lambda name: {"command.json": Command(argv=("x",))})
    Path(door.root).touch()  # no folder of runs can be made there
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.1)
    host, reasons = Host(run, door), []

    def wait(self: Host) -> None:
        reasons.append((self._pause_s, self._why))
        self._pause_s *= 2
        if len(reasons) == 3:
            job.path.rename(tmp_path / "removed")

    monkeypatch.setattr(Host, "_wait", wait)
    host.run()
    assert [pause_s for pause_s, _ in reasons] == [0.1, 0.2, 0.4]
    assert all("Not a directory" in why or "File exists" in why for _, why in reasons), reasons


def test_what_cannot_be_written_here_is_no_lack_of_a_connection(
    door: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDir(tmp_path / "run")
    run.path.mkdir()
    files.write_once(run.manifest, Manifest(run_id="run", created="", task=Task(id="Echo"), library="echo"))
    job = run.next_job("train", lambda name: {"command.json": Command(argv=("x",))})
    events = Path(door.root) / "runs" / "run" / "logs" / "events.out.tfevents.1"
    events.parent.mkdir(parents=True)
    events.write_bytes(b"points")
    run.logs.touch()  # as good as a full disk
    host, reasons = Host(run, door), []

    def wait(self: Host) -> None:
        reasons.append((self._what, self._why))
        job.path.rename(tmp_path / "removed")

    monkeypatch.setattr(Host, "_wait", wait)
    host.run()
    ((what, why),) = reasons
    assert what == f"what {door.place} sends cannot be written here"
    assert str(run.logs) in why


@pytest.mark.parametrize(
    ("argv", "why"), [(["sleep", "60"], "it does not answer"), (["/none/ssh"], "No such file or directory")]
)
def test_an_end_that_says_nothing_gets_no_job_and_is_tried_with_longer_and_longer_pauses(
    door: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str], why: str
) -> None:
    run = RunDir(tmp_path / "run")
    run.path.mkdir()
    files.write_once(run.manifest, Manifest(run_id="run", created="", task=Task(id="Echo"), library="echo"))
    job = run.next_job("train", lambda name: {"job.json": Job(kind="train"), "command.json": Command(argv=("x",))})
    files.write_once(remote.order(job), Job(kind="train"))
    monkeypatch.setattr(type(door), "argv", lambda self: argv)
    for name, value_s in {"HELLO_S": 0.5, "FIRST_PAUSE_S": 0.1, "LONGEST_PAUSE_S": 0.3}.items():
        monkeypatch.setattr(module, name, value_s)
    host, reasons = Host(run, door), []
    wait = Host._wait

    def wait_and_look(self: Host) -> None:
        wait(self)
        reasons.append((self._pause_s, self._why))
        if len(reasons) == 2:
            job.path.rename(tmp_path / "removed")

    monkeypatch.setattr(Host, "_wait", wait_and_look)
    host.run()
    assert [pause_s for pause_s, _ in reasons] == [0.2, 0.3]
    assert all(why in reason for _, reason in reasons), reasons
    assert not remote.sent(JobDir(tmp_path / "removed")).exists()


class Busy:
    """A connection, and its channel, on which frames arrive without a pause until this end sends one."""

    def __init__(self) -> None:
        self.channel, self.heard_s = self, time.monotonic()
        self.sent: list[str] = []
        self.count = 0

    def send(self, frame: Frame) -> None:
        self.sent.append(frame.kind)

    def receive(self, timeout_s: float) -> Frame:
        self.count += 1
        time.sleep(0.02)
        if self.count > 50 or "ping" in self.sent:
            raise Closed("enough")
        return Frame(kind="news")

    def forget(self) -> None: ...


def test_the_other_end_hears_of_this_one_also_while_much_arrives(
    door: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BEAT_S", "PING_S"):
        monkeypatch.setattr(module, name, 0.05)
    run, busy = RunDir(tmp_path / "run"), Busy()
    run.path.mkdir()
    files.write_once(run.manifest, Manifest(run_id="run", created="", task=Task(id="Echo"), library="echo"))
    run.next_job("train", lambda name: {"command.json": Command(argv=("x",))})
    with pytest.raises(Closed, match="enough"):
        Host(run, door)._serve(busy)  # type: ignore[arg-type]
    assert busy.sent == ["serve", "ping"]


def test_one_process_mirrors_a_run(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    assert not is_locked(run)
    with lock(run) as first, lock(run) as second:
        assert (first, second) == (True, False)
        assert is_locked(run)
    assert not is_locked(run)
