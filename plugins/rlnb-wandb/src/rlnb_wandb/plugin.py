"""The hooks that need no heavy imports: they check whether W&B follows a run, and start the process that does.

W&B runs in a separate process. Its imports, threads and network traffic therefore do not slow down iterations, its
errors do not reach the training, and it can still end the W&B run properly after the training has been killed.
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
"""Tags of a run that W&B follows. A tag is in the manifest, so it reaches resumed jobs, and workers that do not inherit
the kernel's environment."""
FINISH_S = 18.0
"""Seconds that W&B has after the training's end; rlnb ends a worker 20 s after its result."""
CHECK_S = 30.0
"""Seconds that the check in the worker's interpreter may take."""

# Code that runs in the worker's interpreter.
_INSTALLED = "from importlib.metadata import version; version('rlnb-wandb'); version('wandb')"
_CREDENTIALS = "; import wandb; wandb.login(verify=False)"

_tracker: subprocess.Popen[bytes] | None = None


@hookimpl
def rlnb_check(manifest: Manifest) -> list[Problem]:
    """Check the worker's interpreter, where W&B runs. Import wandb, which takes seconds, only to find an API key."""
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
        return []  # a slow network is no reason to refuse the training
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
    """Start the process that follows the run until its stdin closes, which also happens if this process is killed."""
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
    """Wait, for a limited time, until W&B has sent the remaining data."""
    if _tracker is None or _tracker.stdin is None:
        return
    _tracker.stdin.close()
    try:
        _tracker.wait(FINISH_S)
    except subprocess.TimeoutExpired:
        line = f"{sys.executable} -m rlnb_wandb.tracker {run_dir} </dev/null"
        logger.warning("W&B has not finished after %.0f s. This command sends the remaining data: %s", FINISH_S, line)


def _is_followed(manifest: Manifest) -> bool:
    return ONLINE in manifest.tags or OFFLINE in manifest.tags
