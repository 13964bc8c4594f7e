"""The connection over a real SSH server: how fast, how whole, and what is said when there is none."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.launchers import make_launcher

pytestmark = pytest.mark.slow
WAIT_S = 60.0
ARRIVES_S = 2.0
"""Seconds within which a scalar that was written there is here."""


def until(fact: Callable[[], object], within_s: float = WAIT_S) -> None:
    deadline = time.monotonic() + within_s
    while not fact():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def gpu(far: Any, root: Path) -> Any:
    """Provide a launcher of the account."""
    return rlnb.ssh(far.place, python=far.python, root=str(far.runs), options=far.options)


@pytest.fixture
def run(gpu: Any, far: Any) -> Any:
    """Provide a training of the account that runs, and end it."""
    found = rlnb.train("Echo", library="echo", max_iterations=10_000, agent={"iteration_s": 0.1}, launcher=gpu)
    until(lambda: found.state == "running")
    yield found
    found.cancel(save_s=0)
    until(lambda: found.state == "cancelled" and not far.processes(found.id))


def there(far: Any, run: rlnb.Run) -> Path:
    """Return the folder of a run in the account."""
    return far.runs / "runs" / run.id  # type: ignore[no-any-return]


def test_a_scalar_arrives_soon_and_the_account_shares_no_folder(far: Any, run: rlnb.Run) -> None:
    (events,) = (there(far, run) / "logs").glob("*tfevents*")
    delays = []
    for _ in range(5):
        size = events.stat().st_size
        until(lambda size=size: events.stat().st_size > size)
        begin_s, size = time.monotonic(), events.stat().st_size
        until(lambda size=size: (run.path / "logs" / events.name).stat().st_size >= size)
        delays.append(time.monotonic() - begin_s)
    assert statistics.median(delays) < ARRIVES_S
    assert there(far, run).stat().st_uid == far.uid
    assert run.path.stat().st_uid != far.uid


def test_the_curves_are_whole_after_a_time_without_a_connection(far: Any, run: rlnb.Run) -> None:
    far.stop()
    until(lambda: "no connection to far" in run.record.reason)
    assert run.state == "running"
    begin_s = time.monotonic()
    for _ in range(10):
        assert run.state == "running"
    assert time.monotonic() - begin_s < 1.0, "no look waits for the machine"
    reached = run.progress[0]
    time.sleep(3.0)
    assert run.progress[0] <= reached + 1
    far.start()
    until(lambda: run.progress[0] > reached + 20)
    iterations = run.metrics["reward"].iterations
    assert iterations == [float(number) for number in range(len(iterations))]


def test_large_checkpoints_are_copied_only_on_request(far: Any, run: rlnb.Run) -> None:
    large = there(far, run) / "logs" / "model_900000.json"
    large.write_bytes(b'{"weights": "' + b"x" * (96 << 20) + b'"}')
    until(lambda: any(path.name == large.name for path in run.checkpoints))
    time.sleep(2.0)
    assert not (run.path / "logs" / large.name).exists()
    assert sum(path.stat().st_size for path in run.path.rglob("*") if path.is_file()) < 10 << 20
    path = run.fetch(large.name)
    assert path.read_bytes() == large.read_bytes()
    large.unlink()
    path.unlink()


def test_every_obstacle_is_named_with_its_fix(far: Any, gpu: Any) -> None:
    settings = {**gpu.settings, "place": far.place}

    def problem(**changes: Any) -> Any:
        (found,) = rlnb.check("Echo", library="echo", launcher=make_launcher("ssh", {**settings, **changes}))
        return found

    assert "has no interpreter ~/none/python" in problem(python="~/none/python").what
    assert "has no module rlnb" in problem(python="/usr/bin/python3").what
    assert "cannot be written" in problem(root="/proc/runs").what
    assert "is unknown here" in problem(options=[*far.options, "-o", "UserKnownHostsFile=/dev/null"]).what
    assert "does not accept a key" in problem(options=[*far.options, "-l", "daemon"]).what
    assert "there is no connection to far" in problem(options=[*far.options, "-p", "1"]).what
    assert rlnb.check("Echo", library="echo", launcher=gpu) == []
