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
from rlnb.tasks.cell import write_module
run.report()
goal = {"agent.goal": (0.0, 1.0)}
rlnb.sweep("Echo", "echo", space=goal, n_trials=1, name="goals", max_iterations=3).wait(60)
write_module(rlnb.options.folders, "Mine", "TASK = 1", "notebook.ipynb")
"""


@pytest.mark.parametrize(
    ("umask", "mask", "script"), [(0o000, 0o022, SCRIPT + MORE), (0o002, 0o002, SCRIPT)], ids=["everybody", "group"]
)
def test_others_cannot_write_to_what_rlnb_makes(umask: int, mask: int, script: str, tmp_path: Path) -> None:
    root = tmp_path / "new" / "root"
    env = {**os.environ, "RLNB_ROOT": str(root), "RLNB_QUEUE": str(tmp_path / "queue")}
    subprocess.run([sys.executable, "-c", script], env=env, umask=umask, check=True, timeout=200)
    paths = [root, *root.rglob("*")]
    assert len(paths) > 25
    assert [str(path) for path in paths if path.lstat().st_mode & mask and not stat.S_ISLNK(path.lstat().st_mode)] == []
