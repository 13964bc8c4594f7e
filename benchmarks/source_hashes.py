"""The hash that a run records is that of the code that it trained, however the code changes before the start.

python benchmarks/source_hashes.py               # all cases
python benchmarks/source_hashes.py --case edited # one of them, without a row in RESULTS.md

Real kernels and a real papermill train a direct task of Isaac Lab. Each reward of a version is the number of that
version, so the ratio of the logged mean reward and mean episode length tells which version has run. So does the dumped
config of the env, and a helper module beside the cell has the number too. Both are compared with the manifest, with
``run.config["source"]``, the report, the copies in the run's folder, and ``diff()``.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import papermill
from jupyter_client.manager import KernelManager
from results import record

import rlnb

CELL = """\
import torch
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg
{helper}
VERSION = {version}


class Env(CartpoleEnv):
    def _get_rewards(self):
        return torch.full((self.num_envs,), float(VERSION), device=self.device)

    def _get_dones(self):
        _, time_out = super()._get_dones()
        return torch.zeros_like(time_out), time_out


@configclass
class Cfg(CartpoleEnvCfg):
    episode_length_s = 0.1
    action_scale = 100.0 + VERSION
"""
TIMEOUT_S = 900


def cell(version: int, helper: str = "") -> str:
    """Return the source of a version of the cell."""
    return CELL.format(version=version, helper=helper)


_OPEN: list[Kernel] = []
"""Kernels that a failed case has left behind."""


class Kernel:
    """A real kernel of a notebook."""

    def __init__(self, notebook: str, root: Path) -> None:
        self._sockets = tempfile.TemporaryDirectory()
        self._manager = KernelManager(transport="ipc", ip=f"{self._sockets.name}/kernel")
        env = {**os.environ, "RLNB_ROOT": str(root), "JPY_SESSION_NAME": notebook}
        self._manager.start_kernel(env=env)
        self._client = self._manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=TIMEOUT_S)
        _OPEN.append(self)
        self.run("import rlnb\n%load_ext rlnb")

    def run(self, code: str) -> str:
        """Execute a cell; return its printed output."""
        printed: list[str] = []

        def hear(message: Any) -> None:
            printed.append(message["content"].get("text", "") if message["msg_type"] == "stream" else "")

        reply = self._client.execute_interactive(code, timeout=TIMEOUT_S, output_hook=hear, allow_stdin=False)
        if reply["content"]["status"] != "ok":
            raise RuntimeError(f"{reply['content'].get('ename')}: {reply['content'].get('evalue')}")
        return "".join(printed)

    def task(self, source: str) -> None:
        """Run a ``%%task`` cell."""
        self.run(f"%%task Hashes\n{source}")

    def train(self, task: str = "'Hashes'") -> tuple[rlnb.Run, str]:
        """Train; return the run and the printed output."""
        said = self.run(f"run = rlnb.train({task}, num_envs=4, max_iterations=1, device='cpu').wait()\nprint(run.path)")
        return rlnb.get_run(said.split()[-1]), said

    def close(self) -> None:
        """End the kernel."""
        _OPEN.remove(self)
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)


def version_that_ran(run: rlnb.Run) -> int:
    """Return the number of the version from the rewards; the dumped config must have the same."""
    reward, length = (run.metrics[tag].points[-1][2] for tag in ("Train/mean_reward", "Train/mean_episode_length"))
    by_reward, by_config = round(reward / length, 4), run.config["env.action_scale"] - 100.0
    assert by_reward == by_config, f"rewards of version {by_reward}, config of version {by_config}"
    return int(by_reward)


def wrong(run: rlnb.Run, body: Callable[[int], str], version: int | None) -> list[str]:
    """Return what a run's records say that is not true of the code that it ran.

    Args:
        run: The run.
        body: Returns the source of a version.
        version: Version that the run has to train; None accepts any.
    """
    ran = version_that_ran(run)
    digest = hashlib.sha256(body(ran).encode()).hexdigest()
    copy = (run.path / "source" / "hashes.py").read_text().partition("\n")[2]
    report = run.report().read_text()
    checks = {
        f"version {ran} ran, not {version}": version in (None, ran),
        "manifest": run.manifest.task.source_sha256 == digest,
        "config": run.config["source"] == digest[:7],
        "report": digest in report,
        "copy": copy == body(ran),
        "files": all(
            hashlib.sha256((run.path / "source" / name).read_bytes()).hexdigest() == expected
            for name, expected in run.manifest.task.files.items()
        ),
    }
    return [name for name, holds in checks.items() if not holds]


def differ(first: rlnb.Run, second: rlnb.Run) -> list[str]:
    """Return what is wrong with the difference of two runs of different versions."""
    rows = set(rlnb.Runs([first, second]).diff().index)
    names = [name for name in rows if "rlnb_task" in name]
    return ([] if "source" in rows else ["diff() has no source"]) + names


def edited(root: Path) -> list[str]:
    """A cell is edited between ``rlnb.task`` and ``rlnb.train``."""
    kernel = Kernel("mine.ipynb", root)
    kernel.task(cell(1))
    kernel.run("task = rlnb.task('Hashes')")
    first, _ = kernel.train("task")
    kernel.task(cell(2))
    second, said = kernel.train("task")
    kernel.close()
    silent = [] if "the cell has changed since rlnb.task" in said else ["nothing was said"]
    return wrong(first, cell, 1) + wrong(second, cell, 2) + differ(first, second) + silent


def copied(root: Path) -> list[str]:
    """A copied notebook has the same cell, then another one of the same name."""
    mine, theirs = Kernel("mine.ipynb", root), Kernel("mine-Copy1.ipynb", root)
    mine.task(cell(1))
    first, _ = mine.train()
    theirs.task(cell(1))
    same, _ = theirs.train()
    theirs.task(cell(2))
    other, _ = theirs.train()
    own, said = mine.train()
    mine.close()
    theirs.close()
    equal = first.manifest.task.source_sha256 == same.manifest.task.source_sha256
    return [
        *(
            found
            for run, version in ((first, 1), (same, 1), (other, 2), (own, 1))
            for found in wrong(run, cell, version)
        ),
        *([] if equal else ["the same cell has another hash"]),
        *([] if "mine-Copy1.ipynb has replaced" in said else ["nothing was said"]),
        *differ(other, own),
        *([] if rlnb.Runs([first, same]).diff().empty else ["equal runs differ"]),
    ]


def with_papermill(root: Path) -> list[str]:
    """The same cell is run in a notebook and by papermill."""
    kernel = Kernel("mine.ipynb", root)
    kernel.task(cell(3))
    first, _ = kernel.train()
    kernel.close()
    cells = ["import rlnb\n%load_ext rlnb", f"%%task Hashes\n{cell(3)}", TRAIN_IN_PAPERMILL]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, root / "batch.ipynb")
    os.environ["RLNB_ROOT"] = str(root)
    papermill.execute_notebook(root / "batch.ipynb", root / "out.ipynb", progress_bar=False)
    second = rlnb.get_run((root / "papermill.txt").read_text())
    equal = first.manifest.task.source_sha256 == second.manifest.task.source_sha256
    return wrong(first, cell, 3) + wrong(second, cell, 3) + ([] if equal else ["another hash with papermill"])


TRAIN_IN_PAPERMILL = """\
from pathlib import Path
run = rlnb.train("Hashes", num_envs=4, max_iterations=1, device="cpu").wait()
Path(rlnb.options.root, "papermill.txt").write_text(str(run.path))
"""


def second_kernel(root: Path) -> list[str]:
    """A second kernel, which has not run the cell, trains a task that is then replaced, and then the new one."""
    mine, theirs, second = (Kernel(name, root) for name in ("mine.ipynb", "theirs.ipynb", "second.ipynb"))
    mine.task(cell(1))
    second.run("task = rlnb.task('Hashes')")
    theirs.task(cell(2))
    asked_for, said = second.train("task")
    by_name, _ = second.train()
    for kernel in (mine, theirs, second):
        kernel.close()
    silent = [] if "theirs.ipynb has replaced" in said else ["nothing was said"]
    return wrong(asked_for, cell, 1) + wrong(by_name, cell, 2) + differ(asked_for, by_name) + silent


def again(root: Path) -> list[str]:
    """The task of a run is trained again after the cell has changed."""
    kernel = Kernel("mine.ipynb", root)
    kernel.task(cell(1))
    first, _ = kernel.train()
    kernel.task(cell(2))
    second, _ = kernel.train("rlnb.get_run(rlnb.runs()[0].id).manifest.task")
    kernel.close()
    equal = rlnb.Runs([first, second]).diff().empty
    return wrong(first, cell, 1) + wrong(second, cell, 1) + ([] if equal else ["equal runs differ"])


EDITOR = """\
import itertools, os, threading
from pathlib import Path
folder, stop = Path(rlnb.options.root) / "tasks", threading.Event()

def edit():
    for version in itertools.cycle((5, 6, 7)):
        if stop.is_set():
            return
        for name, text in ((f"hashes.py", CELL), ("numbers_of_mine.py", HELPER)):
            draft = folder / f".{name}"
            draft.write_text(text.replace("NUMBER", str(version)))
            os.replace(draft, folder / name)

thread = threading.Thread(target=edit)
thread.start()
"""
HELPER = "VERSION = NUMBER\n"


def while_starting(root: Path) -> list[str]:
    """The module and a module that it imports are edited again and again while three trainings start."""
    text = "# rlnb task 'Hashes' of 'mine.ipynb'\n" + cell(5).replace(
        "VERSION = 5", "from numbers_of_mine import VERSION"
    )
    text += "# version NUMBER\n"
    (root / "tasks").mkdir(parents=True)
    kernel = Kernel("mine.ipynb", root)
    kernel.run(f"CELL, HELPER = {text!r}, {HELPER!r}\n{EDITOR}")
    found = []
    for _ in range(3):
        run, _ = kernel.train()
        ran, body = version_that_ran(run), (run.path / "source" / "hashes.py").read_text().partition("\n")[2]

        def copied_body(_: int, text: str = body) -> str:
            return text

        found += wrong(run, copied_body, None)
        found += [] if run.manifest.task.files else ["no hash of the helper"]
        if (run.path / "source" / "numbers_of_mine.py").read_text() != HELPER.replace("NUMBER", str(ran)):
            found.append("the copy of the helper is not the one that ran")
    kernel.run("stop.set(); thread.join()")
    kernel.close()
    return found


CASES: dict[str, Callable[[Path], list[str]]] = {
    "edited": edited,
    "copied": copied,
    "papermill": with_papermill,
    "second kernel": second_kernel,
    "again": again,
    "while starting": while_starting,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=CASES, action="append")
    chosen = parser.parse_args().case
    results = {}
    for name in chosen or CASES:
        with tempfile.TemporaryDirectory() as folder:
            rlnb.options.root = folder
            try:
                results[name] = CASES[name](Path(folder))
            except (AssertionError, RuntimeError, KeyError) as exc:
                results[name] = [f"{type(exc).__name__}: {exc}"]
            for kernel in [*_OPEN]:
                kernel.close()
        print(f"{name}: {results[name] or 'right'}", flush=True)
    right = [name for name, found in results.items() if not found]
    if not chosen:
        record(
            "the hash in manifest, config, report and diff() is that of the code that ran: a cell edited between task "
            "and train, a copied notebook, papermill, a second kernel, a run's task trained again, files edited during "
            "the start",
            f"{len(right)} of {len(CASES)}",
            f"{len(CASES)} of {len(CASES)}",
            len(right) == len(CASES),
        )


if __name__ == "__main__":
    main()
