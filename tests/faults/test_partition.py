"""A training that was taken for lost, and continued elsewhere, is seen again."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import psutil

import rlnb
from rlnb.launchers import LocalLauncher
from rlnb.records import record

WAIT_S = 60.0


def wait_until(condition: Callable[[], object], timeout_s: float = WAIT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_what_a_lost_training_logs_later_is_on_no_curve(root: Path) -> None:
    two = LocalLauncher(max_running=2)  # the frozen one keeps its place
    agent_config = {"iteration_s": 0.02}
    run = rlnb.train("Echo", library="echo", max_iterations=150, agent=agent_config, launcher=two, warm=False)
    wait_until(lambda: run.progress[0] > 40)
    job = run.record.training.folder
    agent = psutil.Process(json.loads(job.handle.read_text())["pid"])
    frozen = [agent, *agent.children(recursive=True)]
    for process in frozen:
        process.suspend()
    try:
        job.handle.write_text(json.dumps({**json.loads(job.handle.read_text()), "host": "elsewhere"}))
        then = time.time() - record.SILENT_AFTER_S - 1.0
        for path in (*job.path.glob("*.alive"), job.command):
            os.utime(path, (then, then))
        assert run.state == "lost"
        run.resume(max_iterations=160)
        again = run.record.training
        assert again.options["logged"], "the sizes of the event files are in the record of the job"
        wait_until(lambda: run.started and len(run.metrics["reward"]) > 45)
    finally:
        for process in frozen:
            process.resume()
    while run.state not in ("completed", "failed", "cancelled", "lost"):
        seen = run.metrics["reward"].iterations
        assert all(earlier < later for earlier, later in itertools.pairwise(seen))
        time.sleep(0.05)
    run.wait(WAIT_S)
    wait_until(lambda: rlnb.get_run(run.id).metrics["reward"].iterations == list(range(160)))
    wait_until(lambda: not any(map(lives, frozen)))


def test_the_progress_of_a_run_stays_while_a_resumed_training_starts(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=12, warm=False).wait(WAIT_S)
    run.resume(max_iterations=30)
    assert run.progress[0] >= 12
    run.cancel()
    run.wait(WAIT_S)
    assert run.progress[0] >= 12
