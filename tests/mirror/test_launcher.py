"""The base of launchers for other machines: checks, requests, and whether a job lives."""

from __future__ import annotations

import dataclasses
import fcntl
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

import rlnb
from rlnb.launchers import make_launcher
from rlnb.mirror import launcher as module
from rlnb.mirror.host import lock
from rlnb.records import incidents, remote
from rlnb.records.layout import JobDir, RunDir
from rlnb.spec import Job, Manifest, Task
from rlnb.storage import files

MANIFEST = Manifest(run_id="run", created="", task=Task(id="Echo"), library="echo", python="/opt/python")


def test_a_machine_that_is_away_is_a_problem_and_nothing_is_written(door: Any, root: Path) -> None:
    assert rlnb.check("Echo", library="echo", launcher=door) == []
    (Path(door.place) / "shut").touch()
    with pytest.raises(rlnb.CheckError, match="the door is shut"):
        rlnb.train("Echo", library="echo", launcher=door)
    assert not rlnb.runs()
    assert not Path(door.root).exists()


def test_the_problems_of_the_other_machine_name_it(door: Any, tmp_path: Path) -> None:
    Path(door.root).touch()
    (problem,) = door.check(MANIFEST)
    assert problem.what == f"{door.place}: the folder {door.root} cannot be written."
    other = make_launcher("door", {**door.settings, "queue": {"name": "none", "settings": {}}})
    with pytest.raises(rlnb.CheckError, match="'none' is not a launcher"):
        other.check(MANIFEST)


def test_other_versions_are_problems(door: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "versions", lambda: {"rlnb": "9.9", "rlnb-echo": "9.9", "rlnb-only-here": "1"})
    assert [problem.what.partition(" and this")[0] for problem in door.check(MANIFEST)] == [
        f"{door.place} has rlnb {rlnb.__version__},",
        f"{door.place} has rlnb-echo 0.1.0,",
    ]


def test_a_machine_that_does_not_answer_is_a_problem(door: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECK_S", 0.2)
    monkeypatch.setattr(type(door), "argv", lambda self: ["sleep", "60"])
    (problem,) = door.check(MANIFEST)
    assert "no answer within 0 s" in problem.what
    monkeypatch.setattr(type(door), "argv", lambda self: ["/none/ssh"])
    (problem,) = door.check(MANIFEST)
    assert "status 127" in problem.what


def test_a_request_names_the_launcher_of_the_other_machine(door: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLNB_ALERT_WEBHOOK", "https://hook")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    wish = door.wish("check", MANIFEST)
    assert (wish.kind, wish.data["env"]) == ("check", {"RLNB_ALERT_WEBHOOK": "https://hook"})
    manifest: Any = wish.data["manifest"]
    assert (manifest["launcher"], manifest["launcher_settings"], manifest["python"]) == ("local", {}, "/opt/python")
    queue = {"name": "local", "settings": {"max_running": 3, "walltime_s": None}}
    other: Any = make_launcher("door", {**door.settings, "queue": queue, "env": {"A": "b"}})
    data: Any = other.wish("serve", MANIFEST, {"have": {}}).data
    assert data["manifest"]["launcher_settings"] == queue["settings"]
    assert (data["env"], data["have"]) == ({"RLNB_ALERT_WEBHOOK": "https://hook", "A": "b"}, {})
    assert (other.nodes, other.nproc_per_node) == (1, None)


def test_a_module_of_rlnb_runs_on_the_other_machine_with_its_interpreter(door: Any) -> None:
    assert door.argv("rlnb.x", "--a", "b c")[-6:] == [sys.executable, "-P", "-m", "rlnb.x", "--a", "b c"]
    other: Any = make_launcher("door", {**door.settings, "python": "/opt/isaaclab.sh -p"})
    assert other.argv()[-5:] == ["/opt/isaaclab.sh", "-p", "-P", "-m", "rlnb.mirror"]


def test_a_run_is_there_if_it_is_mirrored_from_there(door: Any, root: Path) -> None:
    run = RunDir(root / "runs" / "lift")
    files.make_folder(run.path)
    manifest = dataclasses.replace(MANIFEST, launcher="door", launcher_settings=door.settings)
    files.write_once(run.manifest, manifest)
    assert door.run_there(run.path) is None, "it is a run of this machine"
    remote.write(run, remote.Remote(place=door.place))
    assert door.run_there(run.path) == f"{door.root}/runs/lift"
    for change in ({"place": "elsewhere"}, {"root": "/elsewhere"}):
        other: Any = make_launcher("door", {**door.settings, **change})
        assert other.run_there(run.path) is None
    other = make_launcher("door", {**door.settings, "python": "python3.12", "env": {"A": "1"}})
    assert other.run_there(run.path) == f"{door.root}/runs/lift"


def test_whether_a_job_lives_is_known_without_the_other_machine(door: Any, tmp_path: Path) -> None:
    job = JobDir(tmp_path / "runs" / "r1" / "jobs" / "0-train")
    job.path.mkdir(parents=True)
    run, handle = RunDir(tmp_path / "runs" / "r1"), {"host": socket.gethostname()}
    job.command.touch()
    assert door.alive({"host": "elsewhere"}, job.path) is None
    remote.lock_of(run).touch()
    with open(remote.lock_of(run), "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        times_s = []
        for _ in range(5):
            begin_s = time.monotonic()
            assert door.alive(handle, job.path) is True
            times_s.append(time.monotonic() - begin_s)
        assert min(times_s) < 0.1  # the others are those of a busy machine
    files.write_once(remote.settled(job), {})
    assert door.alive(handle, job.path) is False


def test_a_mirror_is_independent_of_the_notebook_and_its_folder(
    door: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "logging.py").write_text("raise ValueError('a file of the user')")
    monkeypatch.chdir(tmp_path / "notebooks")
    run = RunDir(tmp_path / "runs" / "r1")
    job = JobDir(run.jobs_folder / "0-train")
    job.path.mkdir(parents=True)
    files.write_once(run.manifest, dataclasses.replace(MANIFEST, launcher="local"))
    assert door.alive({"host": socket.gethostname()}, job.path) is True
    _, mirror = door._started[run.path]
    assert os.getsid(mirror.pid) != os.getsid(0), "an interrupt of the kernel does not reach it"
    assert mirror.wait(60) == 1
    assert "is not a run of another machine" in (job.path / remote.LOG).read_text()


def test_a_run_goes_on_when_this_machine_has_a_new_name(door: Any) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1000, agent={"iteration_s": 0.02}, launcher=door)
    while run.state != "running":
        time.sleep(0.05)
    job = run.jobs[0].folder
    (mirror,) = (process for _, process in [door._started[run.path]])
    mirror.kill()
    mirror.wait()
    job.handle.unlink()
    files.write_once(job.handle, {"host": "its-name-of-yesterday"})
    assert door.alive({"host": "its-name-of-yesterday"}, job.path) is None, "it may be another machine"
    os.utime(job.host_alive, (1.0, 1.0))
    door._started.clear()
    run.cancel(save_s=0)
    while run.state != "cancelled":
        time.sleep(0.05)


def test_a_mirror_that_has_ended_is_no_process_any_more_once_another_one_starts(door: Any, tmp_path: Path) -> None:
    jobs = [JobDir(tmp_path / "runs" / name / "jobs" / "0-train") for name in ("r1", "r2")]
    for job in jobs:  # of runs without a manifest
        job.path.mkdir(parents=True)
    door._start_mirror(jobs[0].path)
    mirror = psutil.Process(door._started[tmp_path / "runs" / "r1"][1].pid)
    while mirror.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.05)
    door._start_mirror(jobs[1].path)
    assert not mirror.is_running()
    assert door._started[tmp_path / "runs" / "r1"][1].poll() == 1, "a crash is counted by the next look"
    door._started[tmp_path / "runs" / "r2"][1].wait(60)


def test_a_mirror_that_crashes_again_and_again_says_why(door: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "START_S", 0.0)
    job = JobDir(tmp_path / "runs" / "r1" / "jobs" / "0-train")  # of a run without a manifest
    job.path.mkdir(parents=True)
    for crashes in range(module.MOST_CRASHES):
        assert door.alive({"host": socket.gethostname()}, job.path) is True
        door._started[tmp_path / "runs" / "r1"][1].wait()
        assert incidents.read_waits(job) is None, crashes
    assert door.alive({"host": socket.gethostname()}, job.path) is True
    record = incidents.read_waits(job)
    assert record is not None
    assert "has ended 3 times: rlnb.errors.RlnbError" in record.what
    mirror = door._started[tmp_path / "runs" / "r1"]
    assert door.alive({"host": socket.gethostname()}, job.path) is True
    assert door._started[tmp_path / "runs" / "r1"] is mirror, "not before a minute has passed"
    job.waits.unlink()
    with lock(RunDir(tmp_path / "runs" / "r1")) as ours:
        assert ours
        assert door.alive({"host": socket.gethostname()}, job.path) is True
    assert incidents.read_waits(job) is None, "a mirror is at work"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_run_of_another_user_is_looked_at_without_its_command(door: Any, tmp_path: Path) -> None:
    run = RunDir(tmp_path / "runs" / "r1")
    job = JobDir(run.jobs_folder / "0-train")
    job.path.mkdir(parents=True)
    files.write_once(job.job, Job(kind="train"))
    files.write_once(run.manifest, dataclasses.replace(MANIFEST, launcher="door", launcher_settings=door.settings))
    os.chown(run.manifest, 65_534, 65_534)
    assert door.alive({"host": socket.gethostname()}, job.path) is None
    for act in (lambda: door.submit(None, job.path), lambda: door.fetch(run.path, ["logs/model.pt"])):
        with pytest.raises(rlnb.RunError, match="belongs to the user 65534"):
            act()
    with pytest.raises(rlnb.RunError, match="who alone reaches"):
        door.cancel({"host": socket.gethostname()}, job.path)
    assert sorted(path.name for path in job.path.iterdir()) == ["job.json"]
    host = subprocess.run([sys.executable, "-m", "rlnb.mirror.host", str(job.path)], capture_output=True, text=True)
    assert "belongs to the user 65534" in host.stderr
    assert not remote.lock_of(run).exists()


def test_the_log_and_the_lock_of_a_mirror_are_no_links(door: Any, tmp_path: Path) -> None:
    run, precious = RunDir(tmp_path / "runs" / "r1"), tmp_path / "precious"
    job = JobDir(run.jobs_folder / "0-train")
    job.path.mkdir(parents=True)
    files.write_once(run.manifest, MANIFEST)
    for link in (job.path / remote.LOG, remote.lock_of(run)):
        link.symlink_to(precious)
    with pytest.raises(OSError, match="symbolic"):
        door.alive({"host": socket.gethostname()}, job.path)
    with pytest.raises(OSError, match="symbolic"), lock(run):
        pass
    assert not precious.exists()


def test_a_checkpoint_is_copied_on_request_and_refused_where_it_is_needed_before(door: Any) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=2, launcher=door).wait(60)
    (path,) = run.checkpoints
    with pytest.raises(rlnb.CheckError, match=rf"fetch\('{path.name}'\) first"):
        rlnb.train("Echo", library="echo", init_from=run, max_iterations=1)
    part = path.with_name(f".{path.name}.copy")
    part.mkdir()
    with pytest.raises(rlnb.RlnbError, match=rf"{path.name} could not be written below .*: .*Free space"):
        run.fetch()
    part.rmdir()
    assert run.fetch() == path
    assert path.read_bytes() == (Path(door.root) / "runs" / run.id / "logs" / path.name).read_bytes()
    assert run.fetch(path.name) == path, "it is here"
    assert rlnb.check("Echo", library="echo", init_from=run, max_iterations=1) == []
    (Path(door.place) / "shut").touch()
    path.unlink()
    with pytest.raises(rlnb.RlnbError, match="could not be copied"):
        run.fetch()
