"""A call of the task's own code that does not return is ended."""

from __future__ import annotations

import runpy
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlnb.errors import InterruptedRequest, RlnbError
from rlnb.worker.requests import sanity, serve

CODE = """
import time

def loop():
    while True:
        time.sleep(0.001)

def step(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
"""


@pytest.fixture
def task(tmp_path: Path) -> dict[str, Callable[..., None]]:
    """Functions of a task's own file. The test's own frame is taken for a part of rlnb."""
    (tmp_path / "puck.py").write_text(CODE)
    return runpy.run_path(str(tmp_path / "puck.py"))


@pytest.fixture(autouse=True)
def only_the_task(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sanity, "is_library", lambda file: not file.endswith("puck.py"))
    monkeypatch.setattr(sanity, "CALL_LOOK_S", 0.05)
    before = signal.signal(signal.SIGINT, serve._raise)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_endless_loop_is_ended_and_its_place_named(task: dict[str, Callable[..., None]]) -> None:
    begin_s = time.monotonic()
    with (
        pytest.raises(RlnbError, match=r"for 1 s: it is in .*puck\.py, line \d, in loop\."),
        sanity.ends_infinite_loops(1.0),
    ):
        task["loop"]()
    assert time.monotonic() - begin_s < 5.0


def test_many_short_calls_may_take_longer_than_the_limit(task: dict[str, Callable[..., None]]) -> None:
    with sanity.ends_infinite_loops(0.5):
        for _ in range(10):
            task["step"](0.15)


def test_a_call_that_waits_for_a_compiler_may_take_longer(
    task: dict[str, Callable[..., None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sanity, "COMPILERS", ("puck.py",))
    with sanity.ends_infinite_loops(0.3):
        task["step"](1.0)


def test_an_interrupt_of_the_user_stays_one() -> None:
    with pytest.raises(InterruptedRequest), sanity.ends_infinite_loops(10.0):
        raise InterruptedRequest


def test_a_checkout_of_isaac_lab_is_not_the_tasks_own_code(tmp_path: Path) -> None:
    (tmp_path / "puck.py").write_text(CODE)
    step = runpy.run_path(str(tmp_path / "puck.py"), run_name="isaaclab.envs.direct_rl_env")["step"]
    with sanity.ends_infinite_loops(0.3):
        step(1.0)
