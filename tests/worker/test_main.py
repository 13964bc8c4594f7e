"""The worker as the process that an agent starts."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rlnb
from rlnb.machine import cores, threads
from rlnb.plugin import Manifest
from rlnb.records.layout import JobDir
from rlnb.records.record import JobRecord
from rlnb.storage import files
from rlnb.storage.serial import to_json


@pytest.fixture
def job(tmp_path: Path) -> JobDir:
    manifest = Manifest(run_id="r", created="", task=rlnb.Task(id="Echo"), library="echo", max_iterations=2)
    files.write_once(tmp_path / "manifest.json", to_json(manifest))
    folder = JobDir(tmp_path / "jobs" / "0-train")
    folder.path.mkdir(parents=True)
    return folder


def worker(kind: str, job: JobDir) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "rlnb.worker", kind, str(job.path.parent.parent), str(job.path)]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


def test_it_does_the_job_and_exits_with_its_status(job: JobDir) -> None:
    process = worker("train", job)
    assert process.returncode == 0
    assert "iteration 1 of 2" in process.stdout
    result = JobRecord(job, "local").result
    assert result is not None
    assert result.outcome == "completed"


def test_an_unknown_kind_of_job_is_a_failure_with_a_result(job: JobDir) -> None:
    assert worker("trian", job).returncode == 1
    result = JobRecord(job, "local").result
    assert result is not None
    assert "No kind of job named 'trian'" in result.error


NAMELESS = """
import contextlib, getpass, os, pwd
from rlnb.worker import __main__

pwd.getpwuid = lambda uid: {}[uid]
for name in ("LOGNAME", "LNAME", "USERNAME"):
    os.environ.pop(name, None)
with contextlib.suppress(IndexError):
    __main__.main([])
print(getpass.getuser())
"""


@pytest.mark.parametrize("name", ["", "ann"])
def test_a_user_id_without_a_name_has_its_number_as_name(name: str) -> None:
    """torch's compiler cannot be imported if ``getpass.getuser`` fails."""
    argv, env = [sys.executable, "-c", NAMELESS], {**os.environ, "USER": name}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == (name or str(os.getuid()))


PARSING = """
import argparse

def train(job_dir):
    argparse.ArgumentParser().parse_args(["--task"])
"""
WAITING = """
import os, time

def train(job_dir):
    print(os.environ.get("GOMP_SPINCOUNT"), "libgomp" in open("/proc/self/maps").read(), flush=True)
"""
OTHER = """
import sys
from rlnb.worker import __main__
from rlnb.worker.jobs import job

job.JOB_FUNCTIONS = {"train": "other:train"}
sys.exit(__main__.main(sys.argv[1:]))
"""
"""A worker whose job is the function of another module."""


def other_job(source: str, job: JobDir) -> subprocess.CompletedProcess[str]:
    (job.path / "other.py").write_text(source)
    argv = [sys.executable, "-c", OTHER, "train", str(job.path.parent.parent), str(job.path)]
    env = {name: value for name, value in os.environ.items() if name not in (threads.OMP_THREADS, *threads.BY_USER)}
    env["PYTHONPATH"] = str(job.path)
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=60)


def test_the_result_has_the_sentence_of_argparse(job: JobDir) -> None:
    assert other_job(PARSING, job).returncode == 1
    result = JobRecord(job, "local").result
    assert result is not None
    assert "argparse says: unrecognized arguments: --task." in result.error


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed here")
@pytest.mark.skipif(cores.bound() < 2, reason="One thread waits for no other.")
def test_a_worker_sees_to_the_waits_of_its_threads_before_its_job(job: JobDir) -> None:
    assert other_job(WAITING, job).stdout.split() == ["3000", "True"], "libgomp is there before torch is imported"
