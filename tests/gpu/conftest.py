"""Fixtures of the tests on an NVIDIA GPU. ``make test-gpu`` runs them, ``make test-gpu DEVICE=cpu`` rehearses them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rlnb
from rlnb.launch.local import gpu_count

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

DEVICE = os.environ.get("RLNB_TEST_DEVICE", "")
"""Device of the tests; empty if it was not requested, so that a machine without a GPU skips them."""
MOST_S = 600.0
"""Longest time of all tests together, in seconds."""

Measured = Callable[[str, str, str, bool], None]


@pytest.fixture(scope="session")
def device() -> Iterator[str]:
    """Return the device of the tests. At the end, record the time of all tests."""
    pytest.importorskip("isaaclab")
    if DEVICE != "cpu" and not gpu_count():
        reason = "CUDA offers no GPU. Use make test-gpu DEVICE=cpu to rehearse the tests on a CPU."
        pytest.fail(reason) if DEVICE else pytest.skip(reason)
    start_s = time.monotonic()
    yield DEVICE or "cuda:0"
    passed_s = time.monotonic() - start_s
    _record(DEVICE or "cuda:0", "make test-gpu", f"{passed_s / 60:.1f} min", "<= 10 min", passed_s <= MOST_S)


@pytest.fixture(scope="session")
def measured(device: str) -> Measured:
    """Return a function that records a value with its bound in benchmarks/RESULTS.md and checks the bound.

    A rehearsal prints the value. It records nothing and checks no bound, since the bounds hold for GPUs.
    """

    def check(what: str, value: str, bound: str, holds: bool) -> None:
        _record(device, what, value, bound, holds)
        assert holds or device == "cpu", f"{what}: {value}, not {bound}"

    return check


def _record(device: str, what: str, value: str, bound: str, holds: bool) -> None:
    from results import record

    if device == "cpu":
        print(f"rehearsal: {what}: {value}; must hold on a GPU: {bound}")
    else:
        record(f"GPU, {what}", value, bound, holds)


@pytest.fixture(scope="module")
def folder(device: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Provide a root, a queue, the local assets and a living simulator for the module."""
    from rlnb.simulation import simulator
    from rlnb.worker.assets.packs import build

    root = tmp_path_factory.mktemp("gpu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLNB_QUEUE", str(root / "queue"))
        patch.setenv("ISAACSIM_ASSET_ROOT", str(build().folder))
        patch.setattr(rlnb.options, "root", root / "rlnb-runs")
        patch.setattr(rlnb.options, "warm", True)
        yield root / "rlnb-runs"
        for run in rlnb.runs():
            run.cancel()
        simulator.shut_down()
