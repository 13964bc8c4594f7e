"""Everything that can be read from the folder of a run."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

import rlnb
from rlnb.curves import progress
from rlnb.hooks import plugins
from rlnb.records import remote
from rlnb.records.facts import checkpoint_of
from rlnb.records.record import RunRecord
from rlnb.records.remote import Remote
from rlnb.spec import Job
from rlnb.storage import files
from rlnb.storage.serial import to_json

WAIT_S = 60.0


SLOW = {"iteration_s": 0.1}


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "the condition was never met"
        time.sleep(0.05)


def echo(**arguments: object) -> rlnb.Run:
    return rlnb.train("Echo", library="echo", **arguments)  # type: ignore[arg-type]


def warm_job(run: rlnb.Run) -> Path:
    """Create an evaluation in the living simulator whose kernel died, so that it has no command and no result."""
    folder = run.record.folder.next_job("evaluate")
    files.write_once(folder.job, to_json(Job(kind="evaluate", options={})))
    return folder.path


def test_cancel_reaches_the_training_past_an_abandoned_evaluation(root: Path) -> None:
    run = echo(max_iterations=1000, agent=SLOW)
    until(lambda: run.state == "running")
    left = warm_job(run)
    run.cancel()
    until(lambda: run.state == "cancelled")
    assert not (left / "cancel.json").exists()


def test_logs_are_those_of_the_newest_job_with_a_log(root: Path) -> None:
    run = echo(max_iterations=5).wait(WAIT_S)
    before = run.logs()
    warm_job(run)
    assert before
    assert run.logs() == before


def test_a_queued_run_names_the_runs_it_waits_for(root: Path) -> None:
    slowly = {"max_iterations": 100, "agent": {"iteration_s": 0.1}}
    first = rlnb.train("Echo", library="echo", **slowly)
    while first.state not in ("starting", "running"):
        time.sleep(0.05)
    second = rlnb.train("Echo", library="echo", **slowly)
    until(lambda: second.waits_for)
    assert (second.state, second.waits_for, first.waits_for) == ("queued", [first.id], [])
    assert (second.reason, first.reason) == (f"waits for {first.id}", "")
    assert progress.standing(second) == f"queued: waits for {first.id}"
    assert f", queued: waits for {first.id})" in repr(second)
    assert f"<td style='text-align:left'>waits for {first.id}</td>" in second._repr_html_()
    assert f">waits for {first.id}<" in rlnb.runs()._repr_html_()
    assert [row.reason for row in rlnb.runs()._rows(2)] == [f"waits for {first.id}", ""]
    first.cancel()
    until(lambda: second.state in ("starting", "running"))
    assert not second.jobs[0].folder.waits.exists()
    second.cancel()
    until(lambda: first.result and second.result)


class Elsewhere(rlnb.LocalLauncher):
    """A launcher of another machine that notes the requests."""

    names: ClassVar[list[str]] = []

    def fetch(self, run_dir: Path, names: Sequence[str]) -> None:
        self.names.extend(names)


def with_library(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> None:
    """Change the description of the echo library."""
    monkeypatch.setattr(RunRecord, "library_spec", dataclasses.replace(plugins.library("echo"), **fields))


def test_the_companions_of_a_checkpoint_are_fetched_before_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = echo(max_iterations=1).wait(WAIT_S)
    with_library(monkeypatch, checkpoint_companions=("{stem}.buffer.npz",))
    sizes = {"logs/model_4.json": 1, "logs/model_4.buffer.npz": 2, "logs/model_0.buffer.npz": 2}
    remote.write(run.record.folder, Remote(place="gpu7", files=sizes))
    monkeypatch.setattr(plugins, "launcher_of", lambda manifest: Elsewhere())
    assert run.fetch() == run.path / "logs/model_4.json"
    assert Elsewhere.names == ["logs/model_4.buffer.npz", "logs/model_4.json"]
    Elsewhere.names.clear()
    assert run.fetch("model_0.json") == run.path / "logs/model_0.json"
    assert Elsewhere.names == ["logs/model_0.buffer.npz"], "the checkpoint itself is here"


def test_a_checkpoint_is_of_the_kind_of_its_library(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = echo(max_iterations=1).wait(WAIT_S)
    folder = run.path / "logs" / "step_3"
    folder.mkdir()
    (folder / "weights.json").write_text("{}")
    with pytest.raises(rlnb.NotFoundError, match="step_3"):
        checkpoint_of(run.record, folder)
    with_library(monkeypatch, checkpoint_is_folder=True, checkpoint_glob="step_*", checkpoint_pattern=r"step_(\d+)")
    assert checkpoint_of(run.record, None) == checkpoint_of(run.record, "step_3") == "logs/step_3"
    assert run.checkpoints.iterations == [3]
    with pytest.raises(rlnb.NotFoundError, match="model_0"):
        checkpoint_of(run.record, run.path / "logs/model_0.json")
    (folder / "weights.json").write_text("{")
    with pytest.raises(rlnb.RunError, match="step_3 is not a complete checkpoint"):
        checkpoint_of(run.record, "step_3")
