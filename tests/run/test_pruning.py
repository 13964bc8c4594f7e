"""Pruning: which checkpoints and runs are deleted, and which are kept."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import rlnb
from rlnb.hooks import plugins
from rlnb.records.record import RunRecord
from rlnb.run import pruning
from rlnb.run.pruning import Pruning, remove_leftovers
from rlnb.storage import clock

WAIT_S = 60.0


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "the condition was never met"
        time.sleep(0.05)


def echo(**arguments: object) -> rlnb.Run:
    return rlnb.train("Echo", library="echo", **arguments)  # type: ignore[arg-type]


def test_a_resumed_run_is_not_removed(root: Path) -> None:
    run, other = echo(max_iterations=10).wait(WAIT_S), echo(max_iterations=10).wait(WAIT_S)
    plan = rlnb.runs().prune(whole=True)
    run.resume(max_iterations=1000)
    with pytest.raises(rlnb.RlnbError, match=f"{run.id}: is active again"):
        plan.apply()
    assert run.path.exists()
    assert not other.path.exists()
    run.cancel()
    until(lambda: run.state == "cancelled")


def test_a_run_that_is_resumed_in_the_last_moment_is_not_removed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = echo(max_iterations=10).wait(WAIT_S)
    real = secrets.token_hex

    def resume_first(count: int) -> str:
        monkeypatch.setattr(secrets, "token_hex", real)
        run.resume(max_iterations=20)
        return real(count)

    plan = rlnb.runs().prune(whole=True)
    monkeypatch.setattr(secrets, "token_hex", resume_first)
    with pytest.raises(rlnb.RlnbError, match=f"{run.id}: is active again and was kept"):
        plan.apply()
    assert [folder.name for folder in run.path.parent.iterdir()] == [run.id]
    assert run.wait(WAIT_S).progress == (20, 20)


def test_a_whole_run_is_removed_while_its_agent_exits(root: Path) -> None:
    run = echo(max_iterations=10).wait(WAIT_S)
    leaving = threading.Event()
    alive = run.jobs[0].folder.alive(0)

    def leave() -> None:
        while not leaving.is_set():
            with contextlib.suppress(OSError):
                alive.touch()

    agent = threading.Thread(target=leave)
    agent.start()
    try:
        rlnb.runs().prune(whole=True).apply()
    finally:
        leaving.set()
        agent.join()
    assert not list(run.path.parent.glob("*")), "hidden files are removed too"


def test_remnants_of_a_removed_run_are_deleted_with_a_later_one(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [echo(max_iterations=2, tags=[str(number)]).wait(WAIT_S) for number in range(3)]
    theirs = runs[0].path.with_name(".of-another.removed")
    theirs.mkdir()

    def busy(*_: object, **__: object) -> None:
        raise OSError(16, "Device or resource busy", ".nfs0001")

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", busy)
        with pytest.raises(rlnb.RlnbError) as caught:
            rlnb.runs(tag="0").prune(whole=True).apply()
    (left,) = runs[0].path.parent.glob(f".{runs[0].id}.*")
    why = f".nfs0001: Device or resource busy. The remaining files are in {left}"
    assert str(caught.value) == f"Some items could not be removed:\n  {runs[0].path}: {why}"
    with monkeypatch.context() as patch:
        real = time.time
        patch.setattr(time, "time", lambda: real() + 7200.0)  # a machine whose clock is not that of the file server
        patch.setattr(clock, "_offsets", {})
        rlnb.runs(tag="1").prune(whole=True).apply()
    assert left.exists(), "another process may be removing it"
    monkeypatch.setattr(pruning, "LEFT_S", -1.0)
    rlnb.runs(tag="2").prune(whole=True).apply()
    assert [child.name for child in theirs.parent.iterdir()] == [theirs.name]


def test_a_run_behind_a_symbolic_link_is_not_removed(root: Path, tmp_path: Path) -> None:
    run = echo(max_iterations=2).wait(WAIT_S)
    run.path.rename(tmp_path / "elsewhere")
    run.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(rlnb.RlnbError, match=f"{run.id}: is a link to .*/elsewhere. Remove it yourself"):
        rlnb.runs().prune(whole=True).apply()
    assert [run.id for run in rlnb.runs()] == [run.id]


def test_the_result_of_apply_lists_the_removed_files(root: Path) -> None:
    run = echo(max_iterations=20).wait(WAIT_S)
    done = rlnb.runs().prune().apply()
    assert [name for _, name, _ in done.rows()] == ["logs/model_4.json", "logs/model_9.json", "logs/model_14.json"]
    assert "freed" in done._repr_html_()
    assert "to be freed" not in done._repr_html_()
    assert run.path.exists()


def test_a_companion_is_freed_with_its_checkpoint(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = echo(max_iterations=10).wait(WAIT_S)
    library = dataclasses.replace(plugins.library("echo"), checkpoint_companions=("{stem}.buffer.npz",))
    monkeypatch.setattr(RunRecord, "library_spec", library)
    spare, last = (path.with_suffix(".buffer.npz") for path in run.checkpoints)
    for path in (spare, last):
        path.write_bytes(b"x" * 1000)
    spared = rlnb.runs().prune()
    assert spared.size == 1000 + run.checkpoints[0].stat().st_size
    spared.apply()
    assert (spare.exists(), last.exists()) == (False, True)
    assert [path.name for path in run.checkpoints] == ["model_9.json"]


# -- leftovers -------------------------------------------------------------------------------------------------------


OLD_S = pruning.LEFT_S + 60.0


def folder(parent: Path, name: str, age_s: float = OLD_S) -> Path:
    """Make a folder with a file, in which nothing has changed for some seconds."""
    path = parent / name
    path.mkdir(parents=True)
    (path / "worker.log").touch()
    for changed in (path / "worker.log", path):
        os.utime(changed, (time.time() - age_s,) * 2)
    return path


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return tmp_path / "tmp"


def test_old_drafts_of_runs_are_removed_and_nothing_else_is(tmp_path: Path, temporary: Path) -> None:
    runs = tmp_path / "runs"
    old = folder(runs, ".20260101-000000-echo-echo-0000")
    kept = {
        folder(runs, ".20260101-000000-echo-echo-1111", age_s=60.0),
        folder(runs, "20260101-000000-echo-echo-2222"),
        folder(runs, ".ipynb_checkpoints"),
        folder(temporary, "rlnb-bench-01234567"),
    }
    link = runs / ".20260101-000000-link"
    link.symlink_to(tmp_path)
    remove_leftovers(runs)
    assert not old.exists()
    assert {path for path in (*runs.iterdir(), *temporary.iterdir())} == kept | {link}


def test_the_folder_of_a_living_process_is_kept(tmp_path: Path, temporary: Path) -> None:
    dead, living = folder(temporary, "rlnb-warm-01234567"), folder(temporary, "rlnb-warm-abcdefgh")
    argv = [sys.executable, "-c", "input()", str(living / "worker.log")]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE)
    try:
        remove_leftovers(tmp_path / "runs")
        assert (dead.exists(), living.exists()) == (False, True)
    finally:
        process.communicate()
    remove_leftovers(tmp_path / "runs")
    assert not living.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_folder_of_another_user_is_kept(tmp_path: Path, temporary: Path) -> None:
    theirs = folder(temporary, "rlnb-warm-01234567")
    os.chown(theirs, 65_534, 65_534)
    remove_leftovers(tmp_path / "runs")
    assert theirs.exists()


def test_pruning_removes_leftovers(root: Path, temporary: Path) -> None:
    draft, warm = folder(root / "runs", ".20260101-000000-a-b-0000"), folder(temporary, "rlnb-warm-01234567")
    plan = rlnb.runs().prune()
    assert draft.exists()
    plan.apply()
    assert not draft.exists()
    assert not warm.exists()


def test_the_table_escapes_the_names_of_runs_and_files() -> None:
    page = Pruning(items=(("<script>a", Path("/runs/<script>b"), 1),), unfinished=0)._repr_html_()
    assert "&lt;script&gt;a" in page
    assert "<script" not in page
