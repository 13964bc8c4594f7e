"""The relay waits for a job, and says why, until the job listens or has ended."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rlnb.records.layout import JobDir
from rlnb.simulation.key import write_key
from rlnb.spec import Result
from rlnb.storage import files


@pytest.fixture
def job(tmp_path: Path) -> JobDir:
    write_key(JobDir(tmp_path).key)
    return JobDir(tmp_path)


def test_a_job_that_waits_is_reported_until_it_has_ended(job: JobDir) -> None:
    argv = [sys.executable, "-m", "rlnb.simulation.relay", str(job.path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as relay:
        assert relay.stdout is not None
        assert json.loads(relay.stdout.readline()) == {"waits": "the job starts"}
        files.write_anew(job.waits, {"what": "PENDING (Resources)", "since": files.now()})
        deadline = time.monotonic() + 20
        while json.loads(relay.stdout.readline()) != {"waits": "PENDING (Resources)"}:
            assert time.monotonic() < deadline
        files.write_once(job.result, Result(outcome="cancelled", ended=files.now()))
        assert relay.wait(20) == 0


def test_a_node_that_cannot_be_reached_is_named_with_its_address(
    job: JobDir, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from rlnb.simulation import relay

    monkeypatch.setattr(relay, "UNREACHED_S", 0.5)
    files.write_anew(job.address, {"hosts": ["127.0.0.1"], "port": 1})
    assert relay.main([str(job.path)]) == 0
    *_, last = capfd.readouterr().out.splitlines()
    assert "The living simulator cannot be reached at 127.0.0.1:1: " in json.loads(last)["hangs"]
