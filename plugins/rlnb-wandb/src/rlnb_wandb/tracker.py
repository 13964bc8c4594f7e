"""``python -m rlnb_wandb.tracker RUN_DIR [offline]`` sends a run's newest job to W&B until its stdin closes.

The event files, read by rlnb, are the only source. W&B's own support for them is not suitable: ``sync_tensorboard``
sees only writers created after ``wandb.init`` and logs values several times, and ``wandb sync`` no longer reads event
files.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import os
import sys
from typing import TYPE_CHECKING

import rlnb
from rlnb.tracking import follow, main

if TYPE_CHECKING:
    import wandb

logger = logging.getLogger("rlnb_wandb")

INIT_S = 30.0
"""Seconds after which W&B's server counts as unreachable."""
ID_LENGTH = 64
"""The length limit of W&B's run ids, according to its maintainers (https://github.com/wandb/wandb/issues/4624)."""


def track(run: rlnb.Run, *, offline: bool) -> None:
    """Log the metrics of the run's newest job until stdin closes; then end the W&B run with the job's exit status."""
    wandb_run = _start(run, offline=offline)
    last_frames = step = wandb_run.step - 1  # the last step of a resumed W&B run; -1 for a new one
    for rows in follow(run, after=last_frames):
        for row in rows:
            # W&B drops a row whose step is not larger than the last one. The x axis is "frames", so a larger step is
            # harmless.
            step = max(step + 1, row.frames)
            wandb_run.log({"frames": row.frames, "iteration": row.iteration, **row.values}, step=step, commit=True)
    result = run.result
    if result is not None:
        wandb_run.summary.update({"outcome": result.outcome, "checkpoint": result.checkpoint, "error": result.error})
    failure = 1 if result is None else result.exit_code or 1  # a job without a result was killed
    wandb_run.finish(exit_code=0 if result is not None and result.outcome == "completed" else failure)


def _start(run: rlnb.Run, *, offline: bool) -> wandb.Run:
    """Return the W&B run named after the run: a new one, or the one that an earlier job of the run started."""
    import wandb

    manifest = run.manifest
    start = functools.partial(
        wandb.init,
        project=os.environ.get("WANDB_PROJECT", "rlnb"),
        id=manifest.run_id[-ID_LENGTH:],
        name=run.title,
        config=dataclasses.asdict(manifest),
        dir=run.path,
        resume="allow",
        settings=wandb.Settings(console="off", quiet=True, symlink=False, init_timeout=INIT_S),
    )
    try:
        wandb_run = start(mode="offline" if offline else None)
    except Exception as exc:
        logger.warning("W&B's server does not answer, so the W&B run is kept offline: %s", exc)
        wandb.teardown()  # otherwise the id is in use
        wandb_run = start(mode="offline")
    wandb_run.define_metric("frames")
    wandb_run.define_metric("*", step_metric="frames")
    return wandb_run


def configure_environment() -> None:
    """Set W&B's variables for a process that follows a training; a value of the user stays."""
    os.environ.pop("WANDB_SERVICE", None)  # the service of a kernel that uses W&B itself ends with the kernel
    os.environ.setdefault("WANDB_X_TRANSACTION_LOG_FLUSH_INTERVAL", "1")  # s; a kill loses this much of an offline run
    os.environ.setdefault("WANDB_X_STATS_PID", str(os.getppid()))  # the training's load, not this process's


if __name__ == "__main__":
    configure_environment()
    main("W&B", functools.partial(track, offline="offline" in sys.argv[2:]))
