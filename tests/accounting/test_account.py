"""The account of runs with planted faults: every interruption has its cause, and the lost iterations are exact."""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

import rlnb
from rlnb.accounting.account import Account, Iterations, TimeParts, _gpus, account_of, cause_of, total
from rlnb.hooks import plugins
from rlnb.launchers import DetachedJob, LocalLauncher
from rlnb.node.child import describe_exit
from rlnb.node.peers import HANGS
from rlnb.plugin import ENDED
from rlnb.records.checkpoints import Save, append_save, saves_of
from rlnb.records.options import TrainOptions
from rlnb.records.record import RunRecord
from rlnb.spec import Job, Manifest, Resources, Result, Task
from rlnb.storage import files
from rlnb.storage.serial import to_json

ITERATION_S = 0.3
"""Seconds of an iteration, longer than the echo library keeps a scalar in memory."""
WITHIN_S = 60.0
LAST = 60
CRASH_AT = 8
FRAMES = 16 * 4
"""Env transitions of an iteration of the echo library."""


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, "the condition does not hold in time"
        time.sleep(0.02)


def has_ended(run: rlnb.Run) -> bool:
    return run.state in ENDED


def echo(**arguments: object) -> rlnb.Run:
    agent = {"iteration_s": ITERATION_S, **arguments.pop("agent", {})}  # type: ignore[dict-item]
    usual = {"max_iterations": LAST, "launcher": LocalLauncher(max_running=10)}
    return rlnb.train("Echo", library="echo", agent=agent, **{**usual, **arguments})  # type: ignore[arg-type]


def kill(run: rlnb.Run, *, agent: bool) -> None:
    """Kill the rank or the agent of a run after its eighth iteration. Its checkpoint is of the fifth."""
    until(lambda: run.metrics.iteration >= 7)
    for process in psutil.process_iter(["cmdline"]):
        argv = process.info["cmdline"] or ()
        if any(part.startswith(str(run.path)) for part in argv) and ("rlnb.node" in argv) == agent:
            os.kill(process.pid, signal.SIGKILL)


def cancel(run: rlnb.Run) -> None:
    until(lambda: run.metrics.iteration >= 7)
    run.cancel(save_s=0)


def start_hanging() -> rlnb.Run:
    """Start a training whose agent ends it if nothing is logged for two seconds."""
    run = echo(launcher=rlnb.injected(), agent={"hang_at": CRASH_AT})
    argv = [sys.executable, "-m", "rlnb.node", str(run.jobs[0].folder.path), "--hang-after", "2"]
    with open(run.jobs[0].folder.log(), "ab") as log:
        subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    return run


FAULTS: dict[str, tuple[str, Callable[[], rlnb.Run], Callable[[rlnb.Run], None]]] = {
    "a killed rank": ("process killed", echo, lambda run: kill(run, agent=False)),
    "a killed agent": ("process lost", echo, lambda run: kill(run, agent=True)),
    "the walltime": (
        "walltime",
        lambda: echo(launcher=LocalLauncher(max_running=10, walltime_s=6.0)),
        lambda run: None,
    ),
    "a cancellation": ("cancelled", echo, cancel),
    "a hang": ("hang", start_hanging, lambda run: None),
    "an error of the code": ("error", lambda: echo(agent={"crash_at": CRASH_AT}), lambda run: None),
}
"""The cause that the account names, how the training is started, and how its fault is planted."""


@pytest.fixture(scope="module")
def interrupted(echo_root: object) -> Iterator[dict[str, rlnb.Run]]:
    """Provide a run for each fault. All of them train at the same time, and have ended."""
    runs = {name: start() for name, (_, start, _) in FAULTS.items()}
    for name, run in runs.items():
        FAULTS[name][2](run)
    for run in runs.values():
        until(functools.partial(has_ended, run))
    yield runs
    for run in runs.values():
        run.cancel(save_s=0)


def account(run: rlnb.Run) -> Account:
    result = account_of(run.record)
    assert result is not None
    return result


def iterations(run: rlnb.Run) -> int:
    """Return the number of iterations that the newest job has finished, from what it printed."""
    return max(int(number) for number in re.findall(r"iteration (\d+) of", run.logs(1000))) + 1


@pytest.mark.parametrize("name", FAULTS)
def test_an_interruption_has_its_cause_and_exactly_the_lost_iterations(
    interrupted: dict[str, rlnb.Run], name: str
) -> None:
    run = interrupted[name]
    (interruption,) = account(run).interruptions
    kept = max(int(path.stem.removeprefix("model_")) for path in run.checkpoints) + 1
    assert interruption.cause == FAULTS[name][0]
    assert interruption.lost_iterations == iterations(run) - kept
    assert name == "the walltime" or interruption.lost_iterations > 0
    assert account(run).frames == kept * FRAMES
    assert interruption.lost_iterations * ITERATION_S * 0.9 <= interruption.lost_s


@pytest.mark.parametrize("name", FAULTS)
def test_the_parts_sum_to_the_wall_time(interrupted: dict[str, rlnb.Run], name: str) -> None:
    run = interrupted[name]
    parts = account(run).parts
    end_s = (
        datetime.fromisoformat(run.result.ended).timestamp() if run.result else run.metrics["reward"].wall_time_s[-1]
    )
    assert parts.wall_s == pytest.approx(end_s - run.created.timestamp(), rel=0.01 if run.result else 0.2)
    assert all(seconds >= 0 or math.isnan(seconds) for _, seconds in parts.items())
    assert min(parts.waiting_s, parts.starting_s, parts.useful_s, parts.checkpointing_s) > 0


def test_a_resumed_run_restarts_after_a_pause_and_loses_nothing_more(interrupted: dict[str, rlnb.Run]) -> None:
    run = interrupted["an error of the code"]
    before, pause_s = account(run), time.time() - account(run).interruptions[0].time_s
    with suppress(rlnb.RunError):  # it fails again at the same iteration
        run.resume().wait(WITHIN_S)
    after = account(run)
    assert [interruption.lost_iterations for interruption in after.interruptions] == [CRASH_AT - 5] * 2
    assert after.parts.idle_s == pytest.approx(pause_s, abs=0.5)
    assert after.parts.restarting_s > 0.2
    assert (after.parts.waiting_s, after.parts.useful_s) == pytest.approx(
        (before.parts.waiting_s, before.parts.useful_s), abs=0.05
    )
    end_s = datetime.fromisoformat(run.result.ended).timestamp()  # type: ignore[union-attr]
    assert after.parts.wall_s == pytest.approx(end_s - run.created.timestamp(), rel=0.01)


def test_a_completed_training_is_useful_to_its_end_and_so_is_its_extension(echo_root: object) -> None:
    run = echo(max_iterations=3, agent={"iteration_s": 0.05}).wait(WITHIN_S)
    run.resume(max_iterations=6).wait(WITHIN_S)
    result = account(run)
    assert result.interruptions == ()
    assert result.parts.lost_s == 0.0
    assert result.frames == 6 * FRAMES
    assert result.gpu_hours == 0.0
    assert result.node_hours * 3600 == pytest.approx(result.held_s)
    (save, *_) = saves_of(run.jobs[0].folder) or ()
    for duration_s in (-1e6, math.inf, math.nan):  # a damaged record
        append_save(run.jobs[0].folder, dataclasses.replace(save, duration_s=duration_s))
    assert account(run).parts == result.parts
    for job in run.jobs:  # a run of an older version, which did not record its checkpoints
        job.folder.saves.unlink()
    parts = account(run).parts
    assert math.isnan(parts.checkpointing_s)
    assert parts.wall_s == pytest.approx(result.parts.wall_s)


@pytest.mark.parametrize("reason", ["given_back", "launch_failed"])
def test_a_job_that_gave_its_nodes_back_or_could_not_start_is_no_interruption(echo_root: object, reason: str) -> None:
    run = echo(launcher=rlnb.injected())
    DetachedJob(run.jobs[0].folder.path).end("failed", "the other nodes did not come", **{reason: True})
    result = account(run)
    assert result.interruptions == ()
    assert result.parts.lost_s == 0.0


def test_a_training_that_waits_to_go_on_keeps_the_work_although_its_checkpoint_was_deleted(echo_root: object) -> None:
    run = echo(max_iterations=6, agent={"iteration_s": 0.02}).wait(WITHIN_S)
    following = run.record.folder.next_job("train")
    options = TrainOptions(checkpoint="logs/model_4.json", max_iterations=8)
    files.write_once(following.job, Job(kind="train", options=to_json(options)))
    (run.path / "logs" / "model_4.json").unlink(missing_ok=True)
    assert account(rlnb.Run(run.path)).frames == 5 * FRAMES


@pytest.mark.parametrize("recorded", [True, False])
def test_a_best_checkpoint_includes_the_iterations_that_were_finished_when_it_was_written(
    echo_root: object, recorded: bool
) -> None:
    run = echo(max_iterations=6, agent={"iteration_s": 0.05}).wait(WITHIN_S)
    job, best = run.jobs[0], run.path / "logs" / "model_best.json"  # its name has no number
    span = job.span(run.record.library_spec)
    assert span is not None
    written_s = Iterations(run.record).time_s(span, 3)
    assert written_s is not None
    best.write_text("{}")
    os.utime(best, (written_s, written_s))
    if recorded:
        append_save(job.folder, Save(file=best.name, end_s=written_s, duration_s=0.0, size=2))
        best.unlink()
    following = run.record.folder.next_job("train")
    options = TrainOptions(checkpoint=f"logs/{best.name}", max_iterations=8)
    files.write_once(following.job, Job(kind="train", options=to_json(options)))
    assert account(rlnb.Run(run.path)).frames == 4 * FRAMES


def test_checkpoints_that_were_deleted_count_as_written(echo_root: object, monkeypatch: pytest.MonkeyPatch) -> None:
    run = echo(max_iterations=22, keep=1, agent={"iteration_s": 0.02}).wait(WITHIN_S)
    (left,) = run.checkpoints
    saves = saves_of(run.jobs[0].folder) or []
    assert len(saves) > 3
    assert account(run).checkpoint_bytes == sum(save.size for save in saves) > 2 * left.stat().st_size
    older = left.with_name("model_999.json")
    assert older.name not in {save.file for save in saves}
    older.write_bytes(b"x" * 1000)  # by an older version of rlnb, which recorded nothing
    assert account(rlnb.Run(run.path)).checkpoint_bytes == sum(save.size for save in saves) + 1000
    library = dataclasses.replace(plugins.library("echo"), checkpoint_companions=("{stem}.buffer.npz",))
    monkeypatch.setattr(RunRecord, "library_spec", library)
    buffer = older.with_suffix(".buffer.npz")
    buffer.write_bytes(b"x" * 500)
    assert account(rlnb.Run(run.path)).checkpoint_bytes == sum(save.size for save in saves) + 1500
    older.unlink()
    run.jobs[0].folder.saves.unlink()
    assert account(rlnb.Run(run.path)).checkpoint_bytes == left.stat().st_size


@pytest.mark.parametrize(
    ("arguments", "gpus"),
    [
        ({"device": "cpu"}, 0),
        ({"device": "cuda", "nodes": 2, "nproc_per_node": 4}, 8),
        ({"device": "auto", "nodes": 2}, math.nan),
    ],
)
def test_before_the_first_iteration_the_number_of_gpus_is_that_of_the_request(
    arguments: dict[str, Any], gpus: float
) -> None:
    resources = Resources(**arguments)
    manifest = Manifest(run_id="r", created="", task=Task(id="T"), library="echo", resources=resources)
    assert _gpus(manifest, []) == pytest.approx(gpus, nan_ok=True)
    asked = dataclasses.replace(manifest, launcher_settings={"gpus_per_node": 4})
    assert _gpus(asked, []) == (gpus if resources.device != "auto" else 8)


# -- causes ----------------------------------------------------------------------------------------------------------


LOG = Path("/nowhere/node0.log")


@pytest.mark.parametrize(
    ("result", "cause"),
    [
        (None, "process lost"),
        (Result(outcome="cancelled"), "cancelled"),
        (Result(outcome="timeout", error="stopped after its walltime of 60 s"), "walltime"),
        (Result(outcome="failed", error=describe_exit(-signal.SIGKILL, LOG)), "process killed"),
        (Result(outcome="failed", error=f"rank 1 on node 0 (a): {describe_exit(137, LOG)}"), "process killed"),
        (Result(outcome="failed", error=f"{HANGS} for 900 s: a rank hangs"), "hang"),
        (Result(outcome="failed", error="The worker hangs: it wrote nothing for 900 s while it started"), "hang"),
        (Result(outcome="failed", error="ValueError: nothing was logged"), "error"),
        (Result(outcome="failed", error="OSError: [Errno 28] No space left on device"), "disk full"),
        (
            Result(
                outcome="failed",
                error="node 0 (a) was revoked by the queue: preempted, requeued, or past its walltime",
                values={"interrupted": True},
            ),
            "preempted",
        ),
        (
            Result(
                outcome="failed",
                error="node 0 (a) was killed, and its cluster has started it again",
                values={"interrupted": True},
            ),
            "process killed",
        ),
        (Result(outcome="failed", error="ValueError: the robot: it was preempted"), "error"),
        (
            Result(outcome="failed", error="node 1 (b) is lost: it is down", values={"interrupted": True}),
            "node lost",
        ),
        (Result(outcome="failed", error=describe_exit(1, LOG)), "error"),
    ],
)
def test_a_result_has_one_cause(result: Result | None, cause: str) -> None:
    assert cause_of(result) == cause


REVOKED = "node 0 (a) was revoked by the queue: preempted, requeued, or past its walltime"
LOST = "node 1 (b) is lost: it is down, or its queue has ended the job"


@pytest.mark.parametrize("guess", [REVOKED, LOST])
def test_the_cause_that_slurm_names_is_the_cause(guess: str) -> None:
    with_cause = pytest.importorskip("rlnb_dask.causes").with_cause
    meanings = pytest.importorskip("rlnb_dask.queues.slurm_answers").MEANINGS
    errors = {state: with_cause(guess, f"Slurm's job 7 {meaning}") for state, meaning in meanings.items()}
    assert {
        state: cause_of(Result(outcome="failed", error=error, values={"interrupted": True}))
        for state, error in errors.items()
    } == {
        "CANCELLED": "cancelled",
        "PREEMPTED": "preempted",
        "TIMEOUT": "walltime",
        "NODE_FAIL": "node lost",
        "BOOT_FAIL": "node lost",
        "OUT_OF_MEMORY": "process killed",
        "DEADLINE": "walltime",
        "COMPLETED": "preempted" if guess == REVOKED else "node lost",
    }


# -- iterations ------------------------------------------------------------------------------------------------------


def test_each_job_has_its_own_iterations(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=8, agent={"iteration_s": 0.01}).wait(60)
    run.resume(max_iterations=12, checkpoint="model_4.json").wait(60)
    first, second = (job.span(run.record.library_spec) for job in run.jobs)
    assert first is not None
    assert second is not None
    logged = Iterations(run.record)
    assert (logged.finished(first), logged.finished(second)) == (8, 12)
    times = [logged.time_s(first, iteration) for iteration in range(8)]
    assert times == sorted(times)  # type: ignore[type-var]
    assert logged.time_s(first, 8) is None
    assert logged.time_s(second, 5) > logged.time_s(first, 7)  # type: ignore[operator]
    assert logged.last_s(second) == logged.time_s(second, 11)
    assert logged.first_s(second.start_time) == logged.time_s(second, 5)


def test_a_third_job_replaces_the_work_of_both_before_it(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=8, agent={"iteration_s": 0.01}).wait(60)
    run.resume(max_iterations=12).wait(60)
    run.resume(max_iterations=14, checkpoint="model_4.json").wait(60)
    account = account_of(run.record)
    assert account is not None
    assert account.frames == 14 * 64, "it began at iteration 5, the second job at 8"


def test_a_run_without_scalars_has_no_iterations(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=2).wait(60)
    for path in run.record.folder.event_files():
        os.unlink(path)
    (span,) = (job.span(run.record.library_spec) for job in run.jobs)
    assert span is not None
    logged = Iterations(run.record)
    assert (logged.finished(span), logged.time_s(span, 0), logged.first_s(0.0)) == (0, None, None)
    assert logged.last_s(span) == pytest.approx(span.start_time)


# -- parts -----------------------------------------------------------------------------------------------------------


def test_the_wall_time_is_the_sum_of_the_parts() -> None:
    parts = TimeParts(waiting_s=1.0, starting_s=2.0, useful_s=3.0, lost_s=4.0, restarting_s=5.0, idle_s=6.0)
    assert parts.wall_s == 21.0, "seconds that were not recorded are part of the useful ones"
    assert parts.useful_share == 3 / 21
    assert math.isnan(TimeParts().useful_share)
    assert [name for name, _ in parts.items()] == [
        "waiting",
        "starting",
        "useful",
        "lost",
        "checkpointing",
        "restarting",
        "idle",
    ]


def test_the_total_counts_recorded_seconds_only() -> None:
    assert total([TimeParts(checkpointing_s=2.0, useful_s=1.0), TimeParts(useful_s=3.0)]) == TimeParts(
        checkpointing_s=2.0, useful_s=4.0
    )
    assert math.isnan(total([TimeParts(), TimeParts()]).checkpointing_s)
    assert total([]).wall_s == 0.0
