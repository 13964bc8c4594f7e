"""The light half: whether W&B follows a run, and the process that does so.

W&B lives in a process of its own beside the training. Its imports, threads and network touch no iteration, its errors
stay there, and the process lives long enough to end the W&B run properly when the training is killed.
"""

from __future__ import annotations

import logging
import os
import shlex
import subprocess
import sys
from pathlib import Path

from rlnb import Manifest, Problem, hookimpl

logger = logging.getLogger(__name__)

ONLINE, OFFLINE = "wandb", "wandb-offline"
"""Tags of a run that W&B is to follow. A tag is in the manifest, so it reaches resumed jobs, and workers that the
kernel's environment does not reach."""
FINISH_S = 18.0
"""Time that W&B has after the training's end; rlnb ends a worker 20 s after its result."""
CHECK_S = 30.0

# Code for the worker's interpreter.
_INSTALLED = "from importlib.metadata import version; version('rlnb-wandb'); version('wandb')"
_CREDENTIALS = "; import wandb; wandb.login(verify=False)"

_tracker: subprocess.Popen[bytes] | None = None


@hookimpl
def rlnb_check(manifest: Manifest) -> list[Problem]:
    """Ask the worker's interpreter, since W&B runs there. It imports wandb, which takes seconds, only to find a key."""
    if not _is_followed(manifest):
        return []
    python = manifest.python or sys.executable
    has_key = OFFLINE in manifest.tags or "WANDB_API_KEY" in os.environ
    code = _INSTALLED if has_key else _INSTALLED + _CREDENTIALS
    try:
        done = subprocess.run(
            [*shlex.split(python), "-c", code],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CHECK_S,
        )
    except OSError as exc:
        return [Problem(what=f"W&B cannot follow this run from {python}: {exc}")]
    except subprocess.TimeoutExpired:
        return []  # the network is slow: no reason not to train
    if done.returncode == 0:
        return []
    reason = done.stderr.strip().rpartition("\n")[2]
    if "PackageNotFoundError" in reason:
        fix = f"Install rlnb-wandb for {python}, from where rlnb was installed; it brings wandb."
    else:
        fix = f'Run `wandb login`, set WANDB_API_KEY, or use tags=["{OFFLINE}"].'
    return [Problem(what=f"W&B cannot follow this run from {python}: {reason}", fix=fix)]


@hookimpl
def rlnb_run_started(run_dir: Path, manifest: Manifest) -> None:
    """Start the process that follows the run until its stdin ends, which it also does when this process is killed."""
    global _tracker
    if not _is_followed(manifest):
        return
    offline = ["offline"] if OFFLINE in manifest.tags else []
    argv = [sys.executable, "-m", "rlnb_wandb.tracker", str(run_dir), *offline]
    try:
        _tracker = subprocess.Popen(argv, stdin=subprocess.PIPE)
    except OSError as exc:
        logger.warning("W&B does not follow this run: %s", exc)


@hookimpl
def rlnb_run_finished(run_dir: Path) -> None:
    """Have W&B send the rest, for a bounded time."""
    if _tracker is None or _tracker.stdin is None:
        return
    _tracker.stdin.close()
    try:
        _tracker.wait(FINISH_S)
    except subprocess.TimeoutExpired:
        line = f"{sys.executable} -m rlnb_wandb.tracker {run_dir} </dev/null"
        logger.warning("W&B has not finished after %.0f s. This command sends the rest: %s", FINISH_S, line)


def _is_followed(manifest: Manifest) -> bool:
    return ONLINE in manifest.tags or OFFLINE in manifest.tags
