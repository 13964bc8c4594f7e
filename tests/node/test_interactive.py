"""The addresses of a node. The server itself is tested with its client, in ``tests/simulation/test_far.py``."""

from __future__ import annotations

import math
import socket
from pathlib import Path

import pytest

from rlnb.node.agent import ENDS
from rlnb.node.interactive import InteractiveJob, addresses
from rlnb.records.layout import JobDir
from rlnb.storage import files


def test_the_name_of_the_machine_comes_first_and_loopback_last() -> None:
    assert addresses(loopback=True) == ["127.0.0.1"]
    found = addresses(loopback=False)
    assert found[0] == socket.gethostname()
    assert found[-1].startswith("127.")


def test_the_cluster_knows_the_end_of_a_job_better_than_its_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = InteractiveJob(JobDir(tmp_path), ["python"], math.inf, loopback=True)
    assert job.ends_s() is None
    monkeypatch.setenv(ENDS, "100.5")
    assert job.ends_s() == 100.5
    files.write_anew(JobDir(tmp_path).deadline, {"time_s": 90.0})
    assert job.ends_s() == 90.0
    JobDir(tmp_path).deadline.write_text("damaged")
    assert job.ends_s() == 100.5
