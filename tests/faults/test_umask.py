"""With a umask that lets everybody write, nothing that rlnb makes can be written by others."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import rlnb
rlnb.options.warm = False
run = rlnb.train("Echo", library="echo", max_iterations=10, tags=["a"]).wait(60)
run.resume(max_iterations=15).wait(60)
run.evaluate(episodes=4)
run.tags.add("b")
run.notes.add("a note")
"""
MORE = """
from rlnb.tasks.source import write_module
run.report()
goal = {"agent.goal": (0.0, 1.0)}
rlnb.sweep("Echo", "echo", space=goal, n_trials=1, name="goals", max_iterations=3).wait(60)
write_module(rlnb.options.folders, "Mine", "TASK = 1", "notebook.ipynb")
"""
ISAAC_LAB = """
import rlnb
rlnb.train("Isaac-Cartpole-Direct", library="rsl_rl", num_envs=16, max_iterations=2).wait(200).export()
"""


def writable(umask: int, mask: int, script: str, folder: Path) -> list[str]:
    """Return what a script makes and what others can write to."""
    root = folder / "new" / "root"
    env = {**os.environ, "RLNB_ROOT": str(root), "RLNB_QUEUE": str(folder / "queue"), "RLNB_CACHE": str(folder)}
    subprocess.run([sys.executable, "-c", script], env=env, umask=umask, check=True, timeout=250)
    modes = {path: path.lstat().st_mode for path in (root, *root.rglob("*"), *(folder / "rlnb").rglob("*"))}
    assert len(modes) > 25
    return [str(path) for path, mode in modes.items() if mode & mask and not stat.S_ISLNK(mode)]


@pytest.mark.parametrize(
    ("umask", "mask", "script"),
    [(0o000, 0o022, SCRIPT + MORE), (0o002, 0o002, SCRIPT)],
    ids=["everybody", "group"],
)
def test_others_cannot_write_to_what_rlnb_makes(umask: int, mask: int, script: str, tmp_path: Path) -> None:
    assert writable(umask, mask, script, tmp_path) == []


@pytest.mark.isaaclab
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_others_cannot_write_to_what_a_training_with_isaac_lab_makes(tmp_path: Path) -> None:
    assert writable(0o000, 0o022, ISAAC_LAB, tmp_path) == []
