"""``rlnb.train`` passes through few files: a profiler follows its calls."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import pytest

import rlnb
from rlnb.simulation.card import card_path
from rlnb.storage import files
from rlnb.storage.serial import to_json
from rlnb.tasks.card import AgentCard, ConfigField, TaskCard

PACKAGE = str(Path(rlnb.__file__).parent)
TASK = "Isaac-Cartpole-Direct"
CARD = TaskCard(
    task=TASK,
    num_envs=64,
    workflow="direct",
    fields={"seed": ConfigField(type="int", value=42), "sim.dt": ConfigField(type="float", value=0.01)},
    agents={"rsl_rl": AgentCard(fields={"seed": ConfigField(type="int", value=42)})},
    versions={"rlnb": rlnb.__version__},
)
STORAGE = "/storage"
"""Its modules count as one: a record is written by one of them, in a folder that another one has opened."""
MOST_CHANGES = 60
"""Largest number of calls from one file into another; 53 at commit 2fe4a19, with the echo library. Nine of them are
the hooks of plugins, which all go through ``rlnb.hooks``; three, with three returns, the version of a task and the
sizes of a library; nine, with ten returns, look whether other users can write a folder, before a training starts and
when a folder is made in it; five are records that are listed and written by the door of ``rlnb.storage``."""
MOST_RETURNS = 30
"""Largest number of calls into a file that was left before; 37 at commit 2fe4a19."""


def visits(calls: Sequence[str]) -> list[str]:
    """Return the files of calls, with consecutive calls in one file merged."""
    return [file for file, _ in itertools.groupby(calls)]


def test_a_training_goes_through_few_files_and_returns_to_few(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rlnb.options, "warm", True)  # the default in a notebook
    path = card_path(rlnb.options.folders, rlnb.task(TASK), None, None)
    assert path is not None
    path.parent.mkdir(parents=True)
    files.write_once(path, to_json(CARD))
    rlnb.train("Echo", library="echo", max_iterations=1).wait()  # fills the caches, which the profile must not count
    assert not rlnb.check(TASK, device="cpu")
    calls: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(PACKAGE):
            calls.append(re.sub("/storage/.*", STORAGE, file.removeprefix(PACKAGE)))

    sys.setprofile(note)
    try:
        run = rlnb.train(TASK, device="cpu", num_envs=64, max_iterations=2)
    finally:
        sys.setprofile(None)
    run.cancel()
    files_in_order = visits(calls)
    listing = "\n".join(files_in_order)
    assert len(files_in_order) - 1 <= MOST_CHANGES, f"{len(files_in_order) - 1} changes of file:\n{listing}"
    returns = len(files_in_order) - len({*files_in_order})
    assert returns <= MOST_RETURNS, f"{returns} returns:\n{listing}"


@pytest.mark.parametrize(
    ("calls", "expected"), [("aab", ["a", "b"]), ("abbab", ["a", "b", "a", "b"])], ids=["one change", "returns"]
)
def test_a_visit_is_a_run_of_calls_in_one_file(calls: str, expected: list[str]) -> None:
    assert visits(list(calls)) == expected
