"""The conformance kit of launchers finds a launcher that makes every look at a run wait."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import rlnb
from rlnb.hooks.registry import manager
from rlnb.spec import Json
from rlnb.testing import LauncherConformance

NAME = "slow_of_test"


class Slow(rlnb.LocalLauncher):
    """The local launcher, but as slow as a connection to another machine."""

    def alive(self, handle: Mapping[str, Json], job_dir: Path) -> bool | None:
        time.sleep(0.15)
        return super().alive(handle, job_dir)


@pytest.fixture
def registered() -> Iterator[None]:
    launcher = rlnb.LauncherType(name=NAME, factory=f"{__name__}:Slow")
    plugin = type("Plugin", (), {"rlnb_launchers": staticmethod(rlnb.hookimpl(lambda: [launcher]))})
    rlnb.register(plugin, NAME)
    yield
    manager().unregister(name=NAME)


class Kit(LauncherConformance):
    launcher = "local"


def test_a_launcher_has_to_answer_at_once(root: Path, registered: None, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Kit.train()
    kit = Kit()
    kit.running(run)
    kit.assert_quick(run)
    monkeypatch.setattr(Kit, "launcher", NAME)
    with pytest.raises(AssertionError, match=r"every look at a run calls it\. Keep the answer"):
        kit.assert_quick(run)
    run.cancel()
