"""Fixtures of the tests on an NVIDIA GPU, which run in parts that need nothing of each other.

``make test-gpu`` runs them, ``make test-gpu DEVICE=cpu`` rehearses them. A GPU is often borrowed for minutes, so each
test belongs to a part, by the marker ``part``, and a part has a time: no test begins after its end. A row in the
results counts the tests of a part; it is written again after each test.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rlnb
from rlnb.machine.gpus import gpu_count

REPO = Path(__file__).parents[2]
sys.path.append(str(REPO / "benchmarks"))

if TYPE_CHECKING:
    from gpu.part import Part

DEVICE = os.environ.get("RLNB_TEST_DEVICE", "")
"""Device of the tests; empty if it was not requested, so that a machine without a GPU skips them."""
PART, MINUTES = os.environ.get("RLNB_TEST_PART", ""), float(os.environ.get("RLNB_TEST_MINUTES", "60"))
"""Number of the part to run, empty for all, and its time."""
if DEVICE == "cpu":
    os.environ.setdefault("RLNB_RESULTS", str(REPO / "outputs" / "rehearsal.md"))

Measured = Callable[[str, str, str, bool], None]


def part_of(item: pytest.Item) -> int | None:
    """Return the number of the part that a test belongs to; None if it names none."""
    marker = item.get_closest_marker("part")
    return marker.args[0] if marker else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the part, in the order of the parts."""
    ours = [item for item in items if item.path.parent == Path(__file__).parent]
    if homeless := [item.nodeid for item in ours if part_of(item) is None]:
        raise pytest.UsageError(f"These tests belong to no part of make test-gpu: {', '.join(homeless)}")
    if PART:
        others = [item for item in ours if str(part_of(item)) != PART]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]


@pytest.fixture(scope="session")
def device() -> str:
    """Return the device of the tests."""
    pytest.importorskip("isaaclab")
    if DEVICE != "cpu" and not gpu_count():
        reason = "CUDA offers no GPU. Use make test-gpu DEVICE=cpu to rehearse the tests on a CPU."
        pytest.fail(reason) if DEVICE else pytest.skip(reason)
    return DEVICE or "cuda:0"


@pytest.fixture(scope="session")
def part(device: str, request: pytest.FixtureRequest) -> Part:
    """Return the part that is being run."""
    return _part(device, request.config)


def _part(device: str, config: pytest.Config) -> Part:
    from gpu.part import Part

    if _TALLY not in config.stash:
        config.stash[_TALLY] = Tally(Part(device=device, minutes=MINUTES))
    return config.stash[_TALLY].part


class Tally:
    """Counts the tests of a part, and records the count."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self._outcomes: dict[str, str] = {}
        self._late: list[str] = []

    def note(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Note a phase of a test, and record the count once the test has ended."""
        worst = max(self._outcomes.get(item.name, "passed"), report.outcome, key=("passed", "skipped", "failed").index)
        self._outcomes[item.name] = worst
        if report.skipped and OVER in str(report.longrepr):
            self._late.append(item.name)
        if report.when == "teardown":
            self.record(item.session.items)

    def record(self, items: Sequence[pytest.Item]) -> None:
        """Record the count."""
        passed = self._of("passed")
        skipped = [name for name in self._of("skipped") if name not in self._late]
        missing = len({item.name for item in items}) - len(self._outcomes) + len(self._late)
        parts = [f"{len(passed)} passed"]
        parts += [f"failed: {', '.join(failed)}"] if (failed := self._of("failed")) else []
        parts += [f"{len(skipped)} skipped"] if skipped else []
        parts += [f"{missing} not run"] if missing else []
        name = f"part {PART or 'all'} of the tests"
        self.part.record(f"{name} (make test-gpu)", "; ".join(parts), "all run and pass", not failed and not missing)
        self.part.record_time(name)

    def _of(self, outcome: str) -> list[str]:
        return [name for name, one in self._outcomes.items() if one == outcome]


OVER = "the time of the part is over"
_TALLY = pytest.StashKey[Tally]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Record the count of the part after each test."""
    report = yield
    if _TALLY in item.config.stash:
        item.config.stash[_TALLY].note(item, report)
    return report


@pytest.fixture(autouse=True)
def in_time(part: Part) -> None:
    """Skip a test that would begin after the end of its part."""
    if part.left_s <= 0:
        pytest.skip(f"{OVER}: {part.minutes:g} minutes")


@pytest.fixture(scope="session")
def measured(part: Part) -> Measured:
    """Return a function that records a value with its bound, and checks the bound.

    A rehearsal checks no bound, since the bounds hold for GPUs.
    """

    def check(what: str, value: str, bound: str, holds: bool) -> None:
        part.record(what, value, bound, holds)
        assert holds or part.is_rehearsal, f"{what}: {value}, not {bound}"

    return check


@pytest.fixture(scope="module")
def folder(device: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Provide a root, a queue, the local assets and a warm simulator for the module."""
    from rlnb.simulation.pool import pool
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
        pool.shut_down()
