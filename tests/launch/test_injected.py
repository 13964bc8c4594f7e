"""The launcher for clusters that start the nodes themselves."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from rlnb.launch.injected import InjectedLauncher
from rlnb.records.layout import JobDir
from rlnb.spec import Manifest, Task

MANIFEST = Manifest(run_id="r", created="2026-01-01T00:00:00+00:00", task=Task(id="T"), library="echo")


def test_its_settings_recreate_the_launcher() -> None:
    launcher = InjectedLauncher(nodes=3, nproc_per_node=8, walltime_s=60.0, max_restarts=1)
    settings = {"nodes": 3, "nproc_per_node": 8, "walltime_s": 60.0, "max_restarts": 1}
    assert InjectedLauncher(**launcher.settings).settings == settings  # type: ignore[arg-type]
    assert repr(launcher) == "InjectedLauncher(nodes=3, nproc_per_node=8)"


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "2"])
def test_every_count_that_is_not_a_positive_whole_number_is_a_problem(value: Any) -> None:
    problems = InjectedLauncher(nodes=value, nproc_per_node=value).check(MANIFEST)
    assert [problem.what for problem in problems] == [
        f"nodes={value!r} is not a positive whole number.",
        f"nproc_per_node={value!r} is not a positive whole number.",
    ]
    assert not InjectedLauncher(nodes=2).check(MANIFEST), "the training may set the number of ranks"


def test_a_number_of_restarts_may_be_zero() -> None:
    assert not InjectedLauncher(max_restarts=0).check(MANIFEST)
    (problem,) = InjectedLauncher(max_restarts=-1).check(MANIFEST)
    assert problem.what == "max_restarts=-1 is not a whole number of at least 0."


def test_a_job_lives_until_a_pod_starts_and_then_its_heartbeat_decides(tmp_path: Path) -> None:
    launcher = InjectedLauncher()
    handle = launcher.submit(None, tmp_path)
    assert (handle, list(tmp_path.iterdir())) == ({}, []), "no process is started"
    assert launcher.alive(handle, tmp_path) is True
    JobDir(tmp_path).running(0).write_text('{"host": "pod-0"}')
    assert launcher.alive(handle, tmp_path) is None


def test_an_interrupted_job_goes_on_as_long_as_a_pod_beats_and_the_first_does_not_refuse(tmp_path: Path) -> None:
    launcher, job = InjectedLauncher(), JobDir(tmp_path)
    job.running(0).write_text('{"host": "pod-0"}')
    job.result.write_text("{}")
    assert launcher.alive({}, tmp_path) is False
    job.alive(1).touch()
    assert launcher.alive({}, tmp_path) is True
    long_ago = time.time() - 3600
    os.utime(job.alive(1), (long_ago, long_ago))
    assert launcher.alive({}, tmp_path) is False
    job.alive(1).touch()
    job.refusal("node0").touch()
    assert launcher.alive({}, tmp_path) is False
