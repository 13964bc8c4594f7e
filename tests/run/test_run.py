"""The verbs of a run: wait, resume, evaluate, export."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.hooks import plugins
from rlnb.jobs.jobs import what_is_left
from rlnb.records.options import TrainOptions
from rlnb.records.record import RunRecord

WAIT_S = 60.0


SLOW = {"iteration_s": 0.1}


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "the condition was never met"
        time.sleep(0.05)


def echo(**arguments: object) -> rlnb.Run:
    return rlnb.train("Echo", library="echo", **arguments)  # type: ignore[arg-type]


def test_an_extended_run_is_resumed_up_to_its_extended_end(root: Path) -> None:
    run = echo(max_iterations=5, agent={"iteration_s": 0.05}).wait(WAIT_S)
    run.resume(max_iterations=100)
    until(lambda: run.progress[0] > 10)
    run.cancel()
    until(lambda: run.state == "cancelled")
    run.resume().wait(WAIT_S)
    assert run.progress == (100, 100)
    assert run.metrics["reward"].iterations == list(range(100))


@pytest.fixture(scope="module")
def run(echo_root: Path) -> rlnb.Run:
    """A completed run of five iterations."""
    return echo(max_iterations=5).wait(WAIT_S)


def test_wait_has_a_time_limit_and_the_run_continues(root: Path) -> None:
    slow = echo(max_iterations=1000, agent=SLOW)
    with pytest.raises(TimeoutError, match=rf"{slow.id} is still \w+ after 0.1 s. It continues."):
        slow.wait(timeout_s=0.1)
    assert slow.result is None
    slow.cancel()
    assert slow.wait(WAIT_S).state == "cancelled"
    with pytest.raises(rlnb.RunError) as raised:
        slow.wait(check=True)
    assert str(raised.value).startswith(f"{slow.id} (train) cancelled")
    assert "cancelled: cancelled" not in str(raised.value)
    assert "\n  next: " in str(raised.value)
    with pytest.warns(FutureWarning, match=r"wait\(check=True\)"), pytest.raises(rlnb.RunError, match="cancelled"):
        slow.wait_for_completion()


def test_a_run_without_iterations_left_is_not_resumed(run: rlnb.Run) -> None:
    with pytest.raises(
        rlnb.RunError, match=r"has finished 5 iterations and would end at 5.*run\.resume\(max_iterations=10\)"
    ):
        run.resume()
    with pytest.raises(rlnb.RunError, match="max_iterations=0 is not a positive whole number"):
        run.resume(max_iterations=0)
    assert len(run.jobs) == 1


def test_resume_starts_from_the_newest_checkpoint(run: rlnb.Run) -> None:
    assert what_is_left(run, max_iterations=8, trust=True) == TrainOptions(
        checkpoint="logs/model_4.json", trust=True, max_iterations=8
    )


def test_the_error_for_a_missing_checkpoint_lists_the_existing_ones(run: rlnb.Run) -> None:
    with pytest.raises(rlnb.NotFoundError, match=r"No checkpoint named 'model_5\.json'.*model_4\.json"):
        run.evaluate(checkpoint="model_5.json")


def test_an_evaluation_of_no_episodes_or_with_settings_of_envs_is_refused(run: rlnb.Run) -> None:
    with pytest.raises(rlnb.RlnbError, match="episodes=0 is not a whole number from 1"):
        run.evaluate(episodes=0)
    with pytest.raises(rlnb.RunError, match="no simulator, so it has no use for num_envs=4 and video=True"):
        run.play()
    with pytest.raises(rlnb.RunError, match=r"use for camera='front' and record=9\. Leave them out\."):
        run.evaluate(camera="front", record=9)
    with pytest.raises(rlnb.RunError, match=r"no simulator, so it has no use for mode='play'\. Leave it out\."):
        run.evaluate(mode="play")
    assert len(run.jobs) == 1
    assert run.evaluate(episodes=2).mode is None


def test_a_library_without_formats_exports_nothing(run: rlnb.Run) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"echo exports nothing: it has no simulator\. Use run\.checkpoints\."):
        run.export()
    with pytest.raises(rlnb.NotFoundError, match="No export format named 'onnx'"):
        run.export("onnx")


def test_a_notebook_shows_a_run_as_a_table(run: rlnb.Run) -> None:
    html = run._repr_html_()
    for text in ("Echo", "completed", "5 of 5", str(run.path)):
        assert text in html
    run.name = "first try"
    assert f"<b>first try ({run.id})</b>" in run._repr_html_()
    run.name = ""


@pytest.mark.parametrize("arguments", [{"max_iterations": 9}, {"checkpoint": "model_4.json"}])
def test_a_library_that_cannot_resume_is_refused_before_a_job_is_made(
    run: rlnb.Run, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any]
) -> None:
    library = dataclasses.replace(plugins.library("echo"), resumes=False)
    monkeypatch.setattr(RunRecord, "library_spec", library)
    with pytest.raises(rlnb.RunError, match=rf"'echo' cannot resume a training, so {run.id} does not continue"):
        run.resume(**arguments)
    assert [job.folder.path.name for job in rlnb.Run(run.path).jobs] == [job.folder.path.name for job in run.jobs]


def test_the_next_call_after_a_failure_is_one_that_the_library_can_do(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = echo(max_iterations=9, agent={"crash_at": 7})
    with pytest.raises(rlnb.RunError, match=r"\.resume\(\)"):
        failing.wait(WAIT_S)
    library = dataclasses.replace(plugins.library("echo"), resumes=False)
    monkeypatch.setattr(RunRecord, "library_spec", library)
    with pytest.raises(rlnb.RunError, match=r"next: .*\.logs\(200\)"):
        failing.wait(WAIT_S)
