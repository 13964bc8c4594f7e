"""Calls with odd arguments: each ends with a result, or with an RlnbError that names a fix. Nothing is started.

Each call gets a sample of the odd values; all of them with ``RLNB_ODD=all``.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rlnb

WAIT_S = 30.0
LIMIT_S = 30.0
SELF: dict[str, Any] = {}
SELF["a"] = SELF
ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 1.5, 10**30, float("nan"), float("inf"), "", "4", "a\0b", "\ud800", "x" * 10_000, "[/nope]"),
    *(
        b"4",
        [],
        [4],
        {},
        {"a": {1}},
        SELF,
        object(),
        Path("/dev/zero"),
        Path("/"),
        int,
        np.float32(1.5),
        np.array([1, 2]),
    ),
)
SAMPLE = len(ODD) if os.environ.get("RLNB_ODD") == "all" else 7
VALUES = [random.Random(seed).sample(range(len(ODD)), SAMPLE) for seed in range(40)]
"""Numbers of the odd values for each call."""
DEFAULTS = {"library": (0, 8)}
"""Numbers of values that stand for an argument's default, with which a check needs a simulator."""
TRAIN = (
    *(
        "library",
        "max_iterations",
        "num_envs",
        "seed",
        "deterministic",
        "agent",
        "nproc_per_node",
        "device",
        "init_from",
        "inputs",
    ),
    *("keep", "launcher", "tags", "script", "args", "trust"),
)

VERBS: tuple[Callable[[Any, Any], object], ...] = (
    lambda run, value: run.tags.add(value),
    lambda run, value: run.notes.add(value),
    lambda run, value: run.logs(value),
    lambda run, value: run.logs(job=value),
    lambda run, value: run.evaluate(value, checkpoint="none"),
    lambda run, value: run.evaluate(4, seed=value, checkpoint="none"),
    lambda run, value: run.evaluate(4, checkpoint=value if value is not None else "none"),
    lambda run, value: run.resume(max_iterations=value, checkpoint="none"),
    lambda run, value: run.cancel(save_s=value),
    lambda run, value: run.plot(value),
    lambda run, value: run.checkpoints.best(value),
    lambda run, value: rlnb.runs(value if value is not None else "/none"),
    lambda run, value: rlnb.runs(since=value),
    lambda run, value: rlnb.runs(state=value),
    lambda run, value: rlnb.runs(tag=value),
    lambda run, value: rlnb.runs(where=value),
    lambda run, value: rlnb.get_run(value),
    lambda run, value: rlnb.task("Echo", num_envs=value),
    lambda run, value: rlnb.task("Echo", overrides=value),
    lambda run, value: rlnb.task("Echo", overrides={"a": value}),
    lambda run, value: rlnb.Runs([run]).prune(keep=value),
    lambda run, value: rlnb.Runs([run]).table(value),
    lambda run, value: rlnb.Runs([run]).sorted(value),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A completed run of the echo library."""
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("odd")
    patch.setenv("RLNB_QUEUE", str(folder / "queue"))
    patch.setattr(rlnb.options, "root", folder / "root")
    patch.setattr(rlnb.options, "warm", False)
    yield rlnb.train("Echo", library="echo", max_iterations=3).wait(WAIT_S)
    patch.undo()


def outcome(call: Callable[[], object]) -> object:
    """Return the result of a call, or the error that rlnb raised. Any other error fails the test."""
    begin_s = time.monotonic()
    try:
        return call()
    except rlnb.RlnbError as exc:
        return exc
    finally:
        assert time.monotonic() - begin_s < LIMIT_S


@pytest.mark.parametrize(
    ("name", "number"), [(name, number) for name, sample in zip(TRAIN, VALUES, strict=False) for number in sample]
)
def test_a_check_of_a_training_with_an_odd_argument_starts_nothing(run: rlnb.Run, name: str, number: int) -> None:
    if number in DEFAULTS.get(name, ()):
        return
    value, before = ODD[number], os.listdir(run.path.parent)
    task = None if name == "script" else "Echo"
    problems = outcome(lambda: rlnb.check(task, **{"library": "echo", name: value}))
    assert isinstance(problems, list | rlnb.RlnbError)
    assert os.listdir(run.path.parent) == before


@pytest.mark.parametrize(
    ("call", "number"),
    [(call, number) for call, sample in zip(range(len(VERBS)), VALUES, strict=False) for number in sample],
)
def test_a_verb_with_an_odd_argument_says_what_is_wrong(run: rlnb.Run, call: int, number: int) -> None:
    outcome(lambda: VERBS[call](run, ODD[number]))
    assert len(run.jobs) == 1


def test_numbers_of_numpy_are_numbers(run: rlnb.Run) -> None:
    four = np.int64(4)
    assert rlnb.check("Echo", library="echo", max_iterations=four, seed=four, keep=four) == []
    assert rlnb.task("Echo", num_envs=four, overrides={"sim.dt": np.float32(0.5)}).overrides == {"sim.dt": 0.5}
