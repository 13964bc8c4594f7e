"""The cell "How to reproduce" of reports: is the curve that it trains the same, bit by bit?

    python benchmarks/reproduce.py [--libraries rsl_rl,skrl]

Each library trains a cart-pole that is defined in a cell. The cell is changed, a report is written, and the text of
the report's cell is executed by another interpreter. Then the folder of the run is moved out of the folder of runs,
with its report, and the cell is executed as it is from where the folder lies now.
"""

from __future__ import annotations

import argparse
import html
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from results import record

import rlnb

CELL = """
import torch
import helper_of_reproduce
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg


@configclass
class UprightCfg(CartpoleEnvCfg):
    episode_length_s = 2.0


class UprightEnv(CartpoleEnv):
    def _get_rewards(self):
        angle = self.joint_pos[:, self._pole_dof_idx].squeeze(-1)
        return torch.cos(angle) - helper_of_reproduce.penalty * self.reset_terminated.float()
"""
HELPER = "penalty = 2.0\n"
TIMED = re.compile(r"^(perf|performance|time)\b|fps|per second|\(ms\)|/time$", re.IGNORECASE)
"""Tags that measure the machine, not the learning."""


def curve(run: rlnb.Run) -> dict[str, list[tuple[int, bytes]]]:
    """Return the points of each tag, with the bits of their values."""
    return {
        tag: [(step, struct.pack("<d", value)) for step, _, value in run.metrics[tag].points]
        for tag in sorted(run.metrics.tags)
        if not TIMED.search(tag)
    }


def cell_of(report: Path) -> str:
    """Return the text of a report's cell, as a person copies it from the page."""
    _, _, rest = report.read_text(encoding="utf-8").partition("How to reproduce")
    match = re.search(r"<pre>(.*?)</pre>", rest, re.DOTALL)
    assert match is not None, report
    return html.unescape(match[1])


def executed(cell: str, folder: Path, root: Path) -> rlnb.Run:
    """Return the run that the text of a cell starts in another interpreter, once it has ended."""
    code = f"{cell}\nrun.wait()\nprint('\\n' + str(run.path))"
    env = {**os.environ, "RLNB_ROOT": str(root)}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return rlnb.get_run(done.stdout.strip().splitlines()[-1])


def cases(library: str, root: Path) -> dict[str, bool]:
    """Return whether the curve of a library is the same, for a changed cell and for a folder that has moved."""
    helper = root / "tasks" / "helper_of_reproduce.py"
    helper.parent.mkdir(parents=True, exist_ok=True)
    helper.write_text(HELPER)
    rlnb.define("Upright-Again", CELL)
    run = rlnb.train(rlnb.task("Upright-Again", num_envs=16), library=library, max_iterations=5, seed=3).wait()
    first, equal = curve(run), {}
    assert len(first) > 3, first
    helper.write_text(HELPER.replace("2.0", "9.0"))
    rlnb.define("Upright-Again", CELL.replace("torch.cos", "torch.sin"))
    equal["changed"] = curve(executed(cell_of(run.report()), root, root)) == first
    moved = Path(shutil.move(run.path, tempfile.mkdtemp(prefix="rlnb-moved-")))
    equal["moved"] = curve(executed(cell_of(moved / "report.html"), moved.parent, root)) == first
    control = rlnb.train(rlnb.task("Upright-Again", num_envs=16), library=library, max_iterations=5, seed=3).wait()
    assert curve(control) != first, "the changed cell gives the same curve, so nothing is shown"
    shutil.rmtree(moved.parent)
    return equal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libraries", default="rsl_rl,rl_games,skrl,sb3")
    names = parser.parse_args().libraries.split(",")
    with tempfile.TemporaryDirectory(prefix="rlnb-reproduce-") as folder:
        rlnb.options.root = Path(folder)
        found = {name: cases(name, Path(folder)) for name in names}
    print(found)
    equal = sum(sum(one.values()) for one in found.values())
    count = sum(map(len, found.values()))
    unequal = [f"{name}: {case}" for name, one in found.items() for case, same in one.items() if not same]
    measured = f"{equal} of {count} curves bit-equal{'; not ' + ', '.join(unequal) if unequal else ''}"
    what = f"reproduce cell of reports: {', '.join(names)}; a cell that changed since, a folder that moved"
    record(what, measured, "all", equal == count)


if __name__ == "__main__":
    main()
