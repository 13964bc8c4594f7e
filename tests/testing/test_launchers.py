"""The conformance kit of launchers finds slow ones, and does not pass because it looks on the wrong machine."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

import rlnb
from rlnb.hooks.registry import manager
from rlnb.launchers import LauncherType, LocalLauncher
from rlnb.plugin import hookimpl
from rlnb.spec import Json
from rlnb.testing import LauncherConformance

NAME = "slow_of_test"


class Slow(LocalLauncher):
    """The local launcher, but as slow as a connection to another machine."""

    def alive(self, handle: Mapping[str, Json], job_dir: Path) -> bool | None:
        time.sleep(0.15)
        return super().alive(handle, job_dir)


@pytest.fixture
def registered() -> Iterator[None]:
    launcher = LauncherType(name=NAME, factory=f"{__name__}:Slow")
    plugin = type("Plugin", (), {"rlnb_launchers": staticmethod(hookimpl(lambda: [launcher]))})
    rlnb.register(plugin, NAME)
    yield
    manager().unregister(name=NAME)


class Kit(LauncherConformance):
    launcher = "local"


class Elsewhere(Kit):
    """A kit that runs where the jobs of its launcher do not."""

    def processes(self, run: rlnb.Run) -> Sequence[object]:
        return []


@pytest.mark.parametrize(
    "test",
    ["test_a_cancelled_run_ends_with_all_its_processes", "test_a_run_with_killed_agents_is_lost_and_leaves_no_process"],
)
def test_a_kit_that_sees_no_process_fails(root: Path, test: str) -> None:
    with pytest.raises(AssertionError, match=r"No process of the run was seen\. .* override processes and kill"):
        getattr(Elsewhere(), test)(root)
    (run,) = rlnb.runs()
    run.cancel()


def test_the_agents_are_killed_by_the_kits_own_method(root: Path) -> None:
    killed: list[str] = []

    class There(Kit):
        def kill(self, run: rlnb.Run) -> None:
            killed.append(run.id)
            super().kill(run)

    There().test_a_run_with_killed_agents_is_lost_and_leaves_no_process(root)
    (run,) = rlnb.runs()
    assert killed == [run.id]
    run.cancel()


def test_a_launcher_has_to_answer_at_once(root: Path, registered: None, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Kit.train()
    kit = Kit()
    kit.running(run)
    kit.assert_quick(run)
    monkeypatch.setattr(Kit, "launcher", NAME)
    with pytest.raises(AssertionError, match=r"every look at a run calls it\. Keep the answer"):
        kit.assert_quick(run)
    run.cancel()
