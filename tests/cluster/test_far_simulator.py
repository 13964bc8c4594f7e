"""A warm simulator in a job of a real Slurm: it answers, and ends with its node, its kernel, or its idleness."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from far_node import interpreter, processes, until_gone
from runs_on_nodes import wait_until

import rlnb
from rlnb.protocol import requests
from rlnb.simulation.pool import pool
from rlnb.simulation.process import SimulatorProcess
from rlnb.simulation.remote_job import SharedJob

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
WALLTIME = "00:10:00"


@pytest.fixture
def living(slurm: Any, clean: Path, tmp_path: Path) -> Iterator[SimulatorProcess]:
    process = pool.running(interpreter(tmp_path), None, rlnb.slurm(walltime=WALLTIME))
    process.request(requests.Ping())
    yield process
    pool.shut_down()
    wait_until(lambda: not slurm.jobs(), 60)


def test_a_job_of_the_queue_holds_the_simulator_and_leaves_with_it(living: SimulatorProcess, slurm: Any) -> None:
    assert living.job is not None
    assert str(living.job).startswith("slurm job ")
    assert " until " in str(living.job), "the walltime is known"
    assert len(slurm.jobs()) == 1
    pool.shut_down()
    assert wait_until(lambda: not slurm.jobs(), 60) < 60.0
    until_gone(living.job.folder.path, 60.0)


def test_a_node_that_is_killed_is_named_within_ten_seconds_and_the_next_request_gets_another(
    living: SimulatorProcess, slurm: Any
) -> None:
    assert isinstance(living.job, SharedJob)
    (number,) = living.job._record.submission.jobs
    begin_s = time.monotonic()
    subprocess.run(["scancel", "--signal=KILL", "--full", number], check=True)
    with pytest.raises(rlnb.WorkerError, match=r"warm simulator on .* (has ended|does not answer)") as raised:
        living.request(requests.Card(task=rlnb.Task(id="endless")))
    assert time.monotonic() - begin_s < 10.0
    print(raised.value)
    again = pool.running(living.python, living.asset_root, living.job.launcher)
    again.request(requests.Ping())
    assert again.job is not living.job


KERNEL = """
import sys
import rlnb
from rlnb.protocol import requests
from rlnb.simulation.pool import pool
process = pool.running({python!r}, None, rlnb.slurm(walltime="00:10:00"))
process.request(requests.Ping())
print(process.job.folder.path, flush=True)
sys.stdin.read()
"""


def test_nothing_is_left_in_the_queue_a_minute_after_the_kernel_was_killed(
    slurm: Any, clean: Path, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KERNEL.format(python=interpreter(tmp_path))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "RLNB_ROOT": str(clean)},
    ) as kernel:
        assert kernel.stdout is not None
        job_dir = Path(kernel.stdout.readline().decode().strip())
        assert processes(job_dir)
        assert slurm.jobs()
        kernel.kill()
    begin_s = time.monotonic()
    wait_until(lambda: not slurm.jobs(), 60)
    until_gone(job_dir, 60.0 - (time.monotonic() - begin_s))


@pytest.mark.isaaclab
@pytest.mark.timeout(900)
@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
def test_frames_and_evaluations_on_a_node_equal_those_here(
    slurm: Any, clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, gpu = "Isaac-Cartpole-Direct", rlnb.slurm(walltime="00:20:00")
    monkeypatch.setattr(rlnb.options, "warm", True)
    run = rlnb.train(task, num_envs=16, max_iterations=2, device="cpu", warm=False).wait()
    previews, evaluations = [], []
    for place in (None, gpu):
        monkeypatch.setattr(rlnb.options, "simulator", place)
        previews.append(rlnb.preview(run, num_envs=2, steps=5, device="cpu"))
        evaluations.append(run.evaluate(episodes=4))
    assert "slurm job" in repr(rlnb.simulator())
    rlnb.simulator().close()
    near, there = (preview.clip for preview in previews)
    assert all(np.array_equal(near[camera][kind], there[camera][kind]) for camera in near for kind in near[camera])
    assert evaluations[0].returns == evaluations[1].returns
