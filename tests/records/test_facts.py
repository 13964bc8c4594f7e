"""Everything that can be read from the folder of a run."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

import rlnb
from rlnb.hooks import plugins
from rlnb.jobs.jobs import what_is_left
from rlnb.launchers import LocalLauncher
from rlnb.records import remote
from rlnb.records.facts import checkpoint_of, differences
from rlnb.records.layout import FILM
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
    """Create an evaluation in the warm simulator whose kernel died, so that it has no command and no result."""
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
    assert second.summary().status == f"queued: waits for {first.id}"
    assert f", queued: waits for {first.id})" in repr(second)
    assert f"<td style='text-align:left'>waits for {first.id}</td>" in second._repr_html_()
    assert f">waits for {first.id}<" in rlnb.runs()._repr_html_()
    assert [summary.reason for summary in rlnb.runs().summaries()] == [f"waits for {first.id}", ""]
    first.cancel()
    until(lambda: second.state in ("starting", "running"))
    assert not second.jobs[0].folder.waits.exists()
    second.cancel()
    until(lambda: first.result and second.result)


class Elsewhere(LocalLauncher):
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
    folder.rename(folder.with_name(".older-step_3"))  # the training was killed while it replaced the folder
    assert what_is_left(rlnb.Run(run.path), 30).checkpoint == "logs/step_3"
    (folder / "weights.json").write_text("{")
    with pytest.raises(rlnb.RunError, match="step_3 is not a complete checkpoint"):
        checkpoint_of(run.record, "step_3")


# -- differences -----------------------------------------------------------------------------------------------------


@pytest.fixture
def two(root: Path) -> list[rlnb.Run]:
    """Two runs with different seeds; the second starts from the first, and both have dumped their configs."""
    first = rlnb.train("Echo", library="echo", max_iterations=3, seed=1).wait()
    second = rlnb.train("Echo", library="echo", max_iterations=3, seed=2, init_from=first, agent={"goal": 2.0}).wait()
    for run, seed in ((first, 1), (second, 2)):
        dump(run, seed=seed, rate=0.1 * seed)
    return [first, second]


def dump(run: rlnb.Run, *, seed: int, rate: float, **env: Any) -> None:
    """Write configs as Isaac Lab does."""
    folder = run.path / "logs" / "params"
    folder.mkdir(exist_ok=True)
    others = "".join(f"{name}: {value}\n" for name, value in env.items())
    (folder / "env.yaml").write_text(f"seed: {seed}\nlog_dir: {run.path}/logs\nsim:\n  dt: 0.005\n{others}")
    (folder / "agent.yaml").write_text(f"seed: {seed}\nname: {run.id}\nalgorithm:\n  learning_rate: {rate}\n")


def test_only_what_says_something_differs(two: list[rlnb.Run]) -> None:
    first, second = two
    assert differences(two) == {
        "seed": {first.id: 1, second.id: 2},
        "init_from": {first.id: "", second.id: first.id},
        "agent.goal": {first.id: "", second.id: 2.0},
        "agent.algorithm.learning_rate": {first.id: 0.1, second.id: 0.2},
    }


def test_a_config_value_that_differs_from_its_argument_stays(two: list[rlnb.Run]) -> None:
    dump(two[1], seed=3, rate=0.2)
    assert list(differences(two)["env.seed"].values()) == [1, 3]


def test_a_run_that_waits_in_a_queue_is_compared_by_its_arguments(two: list[rlnb.Run]) -> None:
    waiting = rlnb.train("Echo", library="echo", max_iterations=3, seed=3).wait()
    assert [*differences([two[0], waiting])] == ["seed"], "it has no config, which is no difference of values"


def test_a_path_outside_of_the_runs_stays(two: list[rlnb.Run]) -> None:
    for number, run in enumerate(two):
        dump(run, seed=number + 1, rate=0.1, usd=f"/robots/{number}.usd")
    assert list(differences(two)["env.usd"].values()) == ["/robots/0.usd", "/robots/1.usd"]
    assert "env.log_dir" not in differences(two)


def test_modules_of_packages_are_compared_between_the_runs_that_have_imported_them(two: list[rlnb.Run]) -> None:
    modules = [{"mine.rewards": "1" * 64}, {"mine.rewards": "2" * 64, "another_project": "3" * 64}]
    for run, sources in zip(two, modules, strict=True):
        started = run.path / "jobs" / "0-train" / "started.json"
        content = json.loads(started.read_text()) | {"sources": sources}
        started.unlink()
        started.write_text(json.dumps(content))
    found = differences([rlnb.Run(run.path) for run in two])
    assert {name: [*row.values()] for name, row in found.items() if "source" in name} == {
        "source.mine.rewards": ["1" * 7, "2" * 7]
    }


def test_functions_of_a_cell_count_as_equal_if_their_names_are(two: list[rlnb.Run]) -> None:
    for number, run in enumerate(two):
        module = f"rlnb_task_pole_reach_{number:012x}"
        dump(run, seed=number + 1, rate=0.1, func=f"{module}:reach", funcs=f"[{module}:a, {'bc'[number]}]")
    rows = differences(two)
    assert "env.func" not in rows
    assert list(rows["env.funcs"].values()) == [["rlnb_task_pole_reach:a", "b"], ["rlnb_task_pole_reach:a", "c"]]


def test_a_film_of_iterations_that_were_trained_again_is_left_out(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=20).wait()
    media = run.record.folder.media
    media.mkdir(exist_ok=True)
    for number in (5, 15, 18):
        media.joinpath(f"{FILM}{number}.mp4").write_bytes(b"")
    ago = time.time() - 100
    os.utime(media / f"{FILM}18.mp4", (ago, ago))
    assert list(run.films) == [5, 15, 18]
    run.resume(checkpoint="model_9.json", max_iterations=17).wait()
    (media / f"{FILM}15.mp4").touch()
    assert list(run.films) == [5, 15]
