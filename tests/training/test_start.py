"""A training from its arguments to its run, and the deep check of a task."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import rlnb
from rlnb import options
from rlnb.launch.slots import queue_folder
from rlnb.launchers import LocalLauncher
from rlnb.machine.cores import available
from rlnb.plugin import Problem, Result
from rlnb.records.layout import RunDir
from rlnb.records.lineage import Lineage, LineageRun
from rlnb.records.source_diff import SourceDiff
from rlnb.results import AgentConfig, Comparison, Diagnosis, EnvStep, Evaluation, Symptom
from rlnb.simulation.pool import pool
from rlnb.spec import Manifest
from rlnb.storage import files
from rlnb.storage.serial import to_json
from rlnb.training.start import examine

WORKER = """
import json, os, sys
replies = os.open(sys.argv[-1], os.O_WRONLY)
for line in sys.stdin:
    call = json.loads(line)
    asked = call["payload"]
    findings = [
        {"level": "warning", "what": f"{asked['num_envs']} envs, {asked['steps']} steps", "fix": "none"},
        {"level": "note", "what": "a term was 0", "fix": ""},
    ]
    answer = {"value": {"findings": findings}}
    if asked["task"]["id"] == "Broken":
        answer = {"error": "ValueError: no such joint", "place": "/puck.py, line 3, in step", "own": "x = 1"}
    os.write(replies, json.dumps({"id": call["id"], **answer}).encode() + b"\\n")
"""


@pytest.fixture
def python(tmp_path: Path) -> Iterator[str]:
    """Command of an interpreter that starts the stand-in."""
    (tmp_path / "worker.py").write_text(WORKER)
    yield f"{sys.executable} {tmp_path / 'worker.py'}"
    pool.shut_down()


def manifest(python: str, task: rlnb.Task) -> Manifest:
    return Manifest(run_id="r", created="2026-01-01T00:00:00+00:00", task=task, library="rsl_rl", python=python)


def test_findings_become_problems_and_notes(python: str) -> None:
    found = examine(manifest(python, rlnb.Task(id="Demo")), warm=True)
    assert found == [
        Problem(what="16 envs, 200 steps", fix="none"),
        Problem(what="a term was 0", note=True),
    ]


def test_no_more_envs_are_made_than_the_training_has(python: str) -> None:
    found = examine(manifest(python, rlnb.Task(id="Demo", num_envs=4)), warm=True)
    assert found[0].what == "4 envs, 200 steps"


def test_an_error_in_the_tasks_own_code_is_a_problem(python: str) -> None:
    (found,) = examine(manifest(python, rlnb.Task(id="Broken")), warm=True)
    assert found.what.splitlines()[0] == "/puck.py, line 3, in step: ValueError: no such joint"


@pytest.mark.usefixtures("root")
def test_what_has_no_isaac_lab_task_has_no_env_to_step() -> None:
    assert rlnb.check("Echo", library="echo", deep=True) == []


# -- train -----------------------------------------------------------------------------------------------------------


ITERATIONS = 10
HORIZON, NUM_ENVS = 16, 4
WAIT_S = 60.0
SLOW = {"iteration_s": 0.1}
LONG = 1000
EPISODES = 20
HOSTILE = "<script>alert('ü')</script>"


def echo(**arguments: Any) -> rlnb.Run:
    return rlnb.train("Echo", library="echo", **{"max_iterations": ITERATIONS, **arguments})


def until(condition: Callable[[], object], timeout_s: float = WAIT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"the condition did not hold within {timeout_s:g} s"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rlnb.Run]:
    """Provide one finished run with an evaluation, for tests that only read."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLNB_QUEUE", str(folder / "queue"))
        patch.setattr(options, "root", folder / "rlnb-runs")
        patch.setattr(options, "warm", False)
        run = echo(tags=("seen", HOSTILE), seed=3).wait(WAIT_S)
        run.evaluate(EPISODES)
        yield run


def test_a_damaged_run_does_not_hide_the_others(root: Path) -> None:
    run, other = echo().wait(60), echo().wait(60)
    for path, values in (
        (run.jobs[0].folder.started, {"frames_per_step": 0}),
        (run.path / "manifest.json", {"tags": [1]}),
    ):
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    assert len(rlnb.runs().table()) == len(rlnb.runs(where={"seed": 42})) == 2
    assert other.id in rlnb.runs()._repr_html_()


# -- a run


def test_a_run_exists_at_once_and_completes(root: Path) -> None:
    run = echo()
    assert run.state in ("queued", "starting", "running")
    assert run.path == root / "runs" / run.id
    assert run.wait(WAIT_S) is run
    assert run.state == "completed"
    assert run.progress == (ITERATIONS, ITERATIONS)
    assert [path.name for path in run.checkpoints] == ["model_4.json", "model_9.json"]
    assert run.result is not None
    assert run.result.checkpoint == "logs/model_9.json"


def test_the_manifest_records_the_request(finished: rlnb.Run) -> None:
    request = finished.manifest
    assert (request.task.id, request.library, request.seed, request.max_iterations) == ("Echo", "echo", 3, ITERATIONS)
    assert request.tags == ("seen", HOSTILE)
    assert request.versions["rlnb"] == rlnb.__version__
    assert request.versions["rlnb-echo"] == metadata.version("rlnb-echo")
    assert finished.id.startswith(f"{finished.created.astimezone():%Y%m%d}-")
    assert "-m rlnb.worker train" in finished.command


def test_metrics_count_frames_over_all_envs(finished: rlnb.Run) -> None:
    reward = finished.metrics["reward"]
    assert len(reward) == ITERATIONS
    assert reward.frames == [HORIZON * NUM_ENVS * done for done in range(1, ITERATIONS + 1)]
    assert set(finished.metrics.names) == {"reward", "episode_length", "success_rate", "fps"}


def test_the_end_of_a_log_is_returned(finished: rlnb.Run) -> None:
    assert finished.logs(1, job=0).startswith(f"iteration {ITERATIONS - 1} of {ITERATIONS}")
    assert len(finished.logs(3, job=0).splitlines()) == 3
    assert repr(finished.logs(3, job=0)) == finished.logs(3, job=0), "a cell shows lines"
    with pytest.raises(rlnb.NotFoundError, match=r"No job named '7'.*0-train, 1-evaluate"):
        finished.logs(job=7)


def test_the_error_of_a_failed_run_names_the_reason_the_log_and_the_next_call(root: Path) -> None:
    run = echo(agent={"crash_at": 7})
    with pytest.raises(rlnb.RunError) as caught:
        run.wait(WAIT_S)
    message = str(caught.value)
    assert run.state == "failed"
    assert "RuntimeError: echo crashes at iteration 7" in message
    assert str(run.path / "jobs" / "0-train" / "node0.log") in message
    assert f"rlnb.get_run({run.id!r}).resume()" in message
    assert "Traceback" in message


def test_waiting_can_end_before_the_run_does(root: Path) -> None:
    run = echo(max_iterations=LONG, agent=SLOW)
    with pytest.raises(TimeoutError, match=f"{run.id} is still .* It continues"):
        run.wait(timeout_s=0.1)
    run.cancel()
    assert run.wait(WAIT_S).state == "cancelled"


@pytest.mark.parametrize("wanted", [None, 2, ITERATIONS])
def test_a_finished_run_cannot_be_resumed_without_more_iterations(finished: rlnb.Run, wanted: int | None) -> None:
    with pytest.raises(rlnb.RunError, match=rf"nothing is left.*max_iterations={2 * ITERATIONS}\)"):
        finished.resume(max_iterations=wanted)
    assert [job.kind for job in finished.jobs].count("train") == 1


def test_a_cancelled_run_keeps_its_checkpoints_and_resumes_as_one_curve(root: Path) -> None:
    run = echo(max_iterations=LONG, agent={"iteration_s": 0.03})
    until(lambda: run.checkpoints)
    with pytest.raises(rlnb.RunError, match=r"is still .* run\.cancel\(\)"):
        run.resume()
    assert run.cancel() is run
    until(lambda: run.state == "cancelled")
    at = int(run.checkpoints[-1].stem.removeprefix("model_"))
    run.resume(max_iterations=at + 4).wait(WAIT_S)
    assert [job.kind for job in run.jobs] == ["train", "train"]
    assert run.started is not None
    assert run.started.first_iteration == at + 1
    assert run.metrics["reward"].iterations == list(range(at + 4))
    assert run.progress == (at + 4, at + 4)


def test_a_cancelled_run_cannot_be_resumed_to_an_earlier_iteration(root: Path) -> None:
    run = echo(max_iterations=LONG, agent={"iteration_s": 0.03})
    until(lambda: len(run.checkpoints) > 3)
    run.cancel()
    with pytest.raises(rlnb.RunError, match="nothing is left to do"):
        run.resume(max_iterations=2)
    for wrong in ("many", 0):
        with pytest.raises(rlnb.RunError, match="is not a positive whole number"):
            run.resume(max_iterations=wrong)  # type: ignore[arg-type]
    assert [job.kind for job in run.jobs] == ["train"]


def test_a_run_without_a_simulator_cannot_be_filmed(finished: rlnb.Run) -> None:
    for film in (finished.play, lambda: finished.evaluate(4, video=True)):
        with pytest.raises(rlnb.RunError, match="echo has no simulator"):
            film()


def test_cancelling_an_ended_run_changes_nothing(finished: rlnb.Run) -> None:
    before = sorted(finished.path.rglob("*"))
    assert finished.cancel().state == "completed"
    assert sorted(finished.path.rglob("*")) == before


def test_a_run_that_waits_in_the_queue_can_be_cancelled(root: Path) -> None:
    first = echo(max_iterations=LONG, agent=SLOW, launcher=LocalLauncher(max_running=1))
    until(lambda: first.state == "running")
    second = echo(launcher=LocalLauncher(max_running=1))
    until(lambda: [*(queue_folder() / "tickets").glob("[!.]*")])
    time.sleep(0.3)  # a few polls of its agent
    assert second.state == "queued"
    second.cancel()
    until(lambda: second.state == "cancelled")
    with pytest.raises(rlnb.RunError, match=rf"^{second.id} \(train\) cancelled while it waited in the queue\n"):
        second.wait(check=True)
    assert first.state == "running"
    first.cancel()
    until(lambda: first.state == "cancelled")


def test_two_trainings_at_once_share_the_cores(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    run = echo(max_iterations=LONG, agent=SLOW, launcher=LocalLauncher(max_running=2))
    until(lambda: run.state == "running")
    processes = [process.info for process in psutil.process_iter(["cmdline", "environ"])]
    (environ,) = (info["environ"] for info in processes if {"rlnb.worker", str(run.path)} <= {*(info["cmdline"] or ())})
    run.cancel()
    assert environ["OMP_NUM_THREADS"] == str(available().each(2))
    assert environ["RLNB_THREADS"].endswith(" for 2 trainings at once")


def test_a_walltime_ends_a_run_with_outcome_timeout(root: Path) -> None:
    run = echo(max_iterations=LONG, agent=SLOW, launcher=LocalLauncher(walltime_s=1.5))
    with pytest.raises(rlnb.RunError, match="timeout: stopped after its walltime"):
        run.wait(WAIT_S)


def test_an_evaluation_is_a_job_of_the_run_with_intervals(finished: rlnb.Run) -> None:
    (found,) = finished.evaluations
    assert found.episodes == EPISODES
    assert found.checkpoint == "logs/model_9.json"
    assert found.success_rate == pytest.approx(0.95)
    assert found.success_interval is not None
    assert found.success_interval[0] < 0.95 < found.success_interval[1]
    assert [job.folder.path.name for job in finished.jobs] == ["0-train", "1-evaluate"]


def test_a_checkpoint_can_be_chosen_by_name_or_path(root: Path) -> None:
    run = echo().wait(WAIT_S)
    early = run.evaluate(EPISODES, checkpoint="model_4.json")
    assert early.checkpoint == "logs/model_4.json"
    assert run.evaluate(EPISODES, checkpoint=run.checkpoints[0]) == early
    with pytest.raises(rlnb.NotFoundError, match=r"No checkpoint named 'model_5.json'.*model_4.json, model_9.json"):
        run.evaluate(checkpoint="model_5.json")
    assert len(run.evaluations) == 2


def test_zero_episodes_are_refused_before_anything_is_written(finished: rlnb.Run) -> None:
    with pytest.raises(rlnb.RlnbError, match="episodes=0"):
        finished.evaluate(0)
    assert len(finished.jobs) == 2


def test_a_run_without_a_checkpoint_cannot_be_evaluated(root: Path) -> None:
    run = echo(agent={"crash_at": 1})
    with pytest.raises(rlnb.RunError):
        run.wait(WAIT_S)
    for verb in (lambda: run.evaluate(EPISODES), run.resume):
        with pytest.raises(rlnb.RunError, match=r"ended before its first checkpoint.*with rlnb\.train\("):
            verb()
    assert len(run.jobs) == 1


def test_numbers_of_numpy_and_whole_floats_are_numbers(root: Path) -> None:
    run = echo(max_iterations=np.float64(6.0), seed=np.uint32(3)).wait(WAIT_S)
    assert (run.manifest.max_iterations, run.manifest.seed) == (6, 3)
    assert run.resume(max_iterations=np.float64(8.0)).wait(WAIT_S).progress == (8, 8)
    assert run.evaluate(np.int64(EPISODES), seed=np.float64(7.0)).seed == 7
    assert rlnb.task("Echo", num_envs=np.float32(16.0)).num_envs == 16
    assert run.logs(np.float64(1.0), job=np.int64(0)).count("\n") == 0
    with pytest.raises(rlnb.CheckError, match=r"max_iterations=6\.5 is not a positive whole number"):
        echo(max_iterations=6.5)


def test_a_format_that_the_library_does_not_export_is_refused(finished: rlnb.Run) -> None:
    with pytest.raises(rlnb.NotFoundError, match=r"No export format named 'onnx'. echo: none"):
        finished.export("onnx")


# -- finding runs


def lay_out(root: Path, name: str, created: str, **changes: Any) -> RunDir:
    run = RunDir(root / "runs" / name)
    run.path.mkdir(parents=True)
    manifest = rlnb.plugin.Manifest(run_id=name, created=created, task=rlnb.Task(id="Echo"), library="echo")
    files.write_once(run.manifest, to_json(dataclasses.replace(manifest, **changes)))
    return run


@pytest.fixture
def three(root: Path) -> Path:
    """Write three runs: an old one, one with a tag and a result, and a new one of another task and library."""
    lay_out(root, "a-old", "2026-01-01T00:00:00+00:00")
    middle = lay_out(root, "c-middle", "2026-01-02T00:00:00+00:00", tags=("best",))
    job = middle.next_job("train")
    files.write_once(job.result, to_json(Result(outcome="failed")))
    lay_out(root, "b-new", "2026-01-03T00:00:00+00:00", task=rlnb.Task(id="Lift"), library="other")
    return root


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({}, ["b-new", "c-middle", "a-old"]),
        ({"task": "Echo"}, ["c-middle", "a-old"]),
        ({"library": "other"}, ["b-new"]),
        ({"state": "failed"}, ["c-middle"]),
        ({"state": "created"}, ["b-new", "a-old"]),
        ({"tag": "best"}, ["c-middle"]),
        ({"task": "Echo", "tag": "worst"}, []),
    ],
)
def test_runs_are_listed_newest_first_and_filtered(three: Path, filters: dict[str, str], ids: list[str]) -> None:
    assert [run.id for run in rlnb.runs(**filters)] == ids
    assert [run.id for run in rlnb.runs(three, **filters)] == ids


def test_an_unknown_state_is_refused_with_the_closest_name(three: Path) -> None:
    with pytest.raises(rlnb.NotFoundError, match=r"No state named 'faild'.*Did you mean 'failed'"):
        rlnb.runs(state="faild")


def test_runs_are_a_sequence(three: Path) -> None:
    found = rlnb.runs()
    assert (len(found), found[0].id, found[-1].id) == (3, "b-new", "a-old")
    assert [run.id for run in found[:2]] == ["b-new", "c-middle"]
    assert repr(found[:2]) == "Runs(2)"
    assert list(found.table().id) == ["b-new", "c-middle", "a-old"]


def test_a_damaged_record_does_not_hide_the_others(three: Path, caplog: pytest.LogCaptureFixture) -> None:
    (three / "runs" / "a-old" / "manifest.json").write_text('{"run_id"')
    assert [run.id for run in rlnb.runs()] == ["b-new", "c-middle"]
    assert "a-old" in caplog.text


def test_a_run_of_a_newer_rlnb_does_not_hide_the_others(three: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = three / "runs" / "a-old" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 99}))
    assert [run.id for run in rlnb.runs()] == ["b-new", "c-middle"]
    assert "Update rlnb" in caplog.text


def test_get_run_accepts_an_id_a_part_of_it_or_a_folder(three: Path) -> None:
    assert rlnb.get_run("c-middle").id == "c-middle"
    assert rlnb.get_run("middle").id == "c-middle"
    assert rlnb.get_run(str(three / "runs" / "c-middle")).id == "c-middle"


def test_an_ambiguous_or_unknown_id_is_an_error(three: Path) -> None:
    with pytest.raises(rlnb.NotFoundError, match="'-' matches 3 runs: a-old, b-new, c-middle"):
        rlnb.get_run("-")
    with pytest.raises(rlnb.NotFoundError, match=r"No run named 'c-mittle'.*Did you mean 'c-middle'"):
        rlnb.get_run("c-mittle")


def test_without_a_root_there_are_no_runs(root: Path) -> None:
    assert len(rlnb.runs()) == 0
    assert not root.exists()


# -- looking at runs


def test_a_run_is_shown_as_one_line_and_as_a_small_table(finished: rlnb.Run) -> None:
    assert repr(finished) == f"Run({finished.id!r}, task='Echo', library='echo', completed)"
    html = finished._repr_html_()
    assert f"{ITERATIONS} of {ITERATIONS}" in html
    assert "success_rate" in html


def test_hostile_text_is_escaped_in_every_table(root: Path) -> None:
    lay_out(root, "hostile", "2026-01-01T00:00:00+00:00", task=rlnb.Task(id=HOSTILE), library=HOSTILE)
    (run,) = rlnb.runs()
    evaluation = Evaluation(
        returns=(1.0,), lengths=(1,), timeouts=(True,), successes=None, checkpoint=HOSTILE, num_envs=1, seed=1
    )
    comparison = Comparison(runs={HOSTILE: [run]}, evaluations={HOSTILE: [evaluation]})
    config = AgentConfig(task=HOSTILE, library=HOSTILE, source=HOSTILE, values={HOSTILE: HOSTILE}, others=(HOSTILE,))
    symptom = Symptom(name=HOSTILE, metric=HOSTILE, what=HOSTILE, fix=HOSTILE)
    diagnosis = Diagnosis(run=HOSTILE, points=1, symptoms=(symptom,))
    step = EnvStep(arrays={HOSTILE: np.ones(1)}, log={HOSTILE: 1.0})
    healthy = Diagnosis(run=HOSTILE, points=99)
    changed = SourceDiff([f"+{HOSTILE}"])
    relative = LineageRun(id=HOSTILE, name=HOSTILE, origin=HOSTILE, changes={HOSTILE: HOSTILE})
    lineage = Lineage(id=HOSTILE, runs=(relative,))
    for shown in (run, rlnb.runs(), evaluation, comparison, config, diagnosis, healthy, step, changed, lineage):
        html = shown._repr_html_()
        assert "<script" not in html
        assert "&lt;script&gt;" in html


def test_every_table_of_the_public_api_is_tested_with_hostile_text() -> None:
    names = {name: module for module in (rlnb, rlnb.results) for name in module.__all__}
    tables = {name for name, module in names.items() if hasattr(getattr(module, name), "_repr_html_")}
    # The first two show no text from the user. The tests of the others are in test_budget.py, test_tuner.py,
    # test_sweep.py, test_card_html.py, test_debugger.py, test_replay.py, test_goodput.py, test_notes.py,
    # test_pruning.py, test_verify.py and test_video.py.
    elsewhere = {"TaskCard", "Notes", "Pruning", "Synchronisation", "Video"}
    elsewhere |= {"Simulator", "ScalingStudy", "CameraBudget", "Tuner", "Sweep", "Task", "Stop", "Replay", "Goodput"}
    here = {"AgentConfig", "Comparison", "Diagnosis", "EnvStep", "Evaluation", "Lineage", "Run", "Runs", "SourceDiff"}
    assert tables == here | elsewhere
