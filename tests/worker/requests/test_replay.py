"""Tests of rlnb.worker.requests.replay without a simulator; with one: tests/interactive/test_replay."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from rlnb.errors import RlnbError
from rlnb.protocol.requests import Replay
from rlnb.spec import Task
from rlnb.worker.requests.replay import ReplayEnv


def test_a_damaged_record_is_refused_before_an_env_is_made(tmp_path: Path) -> None:
    request = Replay(task=Task(id="Slow"), run=str(tmp_path), flight=str(tmp_path), device="cpu", out=str(tmp_path))
    with contextlib.ExitStack() as stack, pytest.raises(RlnbError, match="is damaged"):
        ReplayEnv.of_record(request, stack)
