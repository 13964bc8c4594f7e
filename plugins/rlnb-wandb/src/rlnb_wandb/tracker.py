"""The heavy half: ``python -m rlnb_wandb.tracker RUN_DIR [offline]`` sends a run's newest job to W&B until stdin ends.

The event files are the one source, read by rlnb. What W&B itself offers for them does not fit: ``sync_tensorboard``
sees only writers that are made after ``wandb.init`` and logs a value several times, and ``wandb sync`` reads event
files no more.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import os
import select
import signal
import sys
import time
from typing import TYPE_CHECKING

import rlnb

if TYPE_CHECKING:
    import wandb

logger = logging.getLogger("rlnb_wandb")

POLL_S = 1.0
SHARE = 0.1
"""Largest share of one core for reading: the longer the curves, the rarer they are read."""
SETTLE_S = 0.2
"""Pause before the last look: rlnb does not read a file again that it has read a moment ago."""
INIT_S = 30.0
"""Time after which W&B's server counts as out of reach."""
ID_LENGTH = 64
"""The longest id that W&B takes, as its maintainers say (https://github.com/wandb/wandb/issues/4624)."""


def track(run: rlnb.Run, *, offline: bool) -> None:
    """Log the metrics of the run's newest job until stdin ends; then end the W&B run as the job ended."""
    wandb_run = _start(run, offline=offline)
    counts: dict[str, int] = {}
    last_frames = step = wandb_run.step - 1  # of a resumed W&B run: the last that it has; else -1
    pause_s, ended = 0.0, False
    while not ended:
        ended = bool(select.select([sys.stdin], [], [], pause_s)[0])
        time.sleep(SETTLE_S if ended else 0.0)
        start_s = time.process_time()
        for frames, row in _new_rows(run, counts).items():
            if frames > last_frames:
                # W&B drops a row whose step lies behind; the x axis is "frames", so a later step does no harm.
                step = max(step + 1, frames)
                wandb_run.log(row, step=step, commit=True)
        pause_s = max(POLL_S, (time.process_time() - start_s) / SHARE)
    result = run.result
    if result is not None:
        wandb_run.summary.update({"outcome": result.outcome, "checkpoint": result.checkpoint, "error": result.error})
    failure = 1 if result is None else result.exit_code or 1  # without a result it was killed
    wandb_run.finish(exit_code=0 if result is not None and result.outcome == "completed" else failure)


def _start(run: rlnb.Run, *, offline: bool) -> wandb.Run:
    """Return the W&B run that is named after the run: a new one, or that of an earlier job of the run."""
    import wandb

    manifest = run.manifest
    start = functools.partial(
        wandb.init,
        project=os.environ.get("WANDB_PROJECT", "rlnb"),
        id=manifest.run_id[-ID_LENGTH:],
        name=manifest.run_id,
        config=dataclasses.asdict(manifest),
        dir=run.path,
        resume="allow",
        settings=wandb.Settings(console="off", quiet=True, symlink=False, init_timeout=INIT_S),
    )
    try:
        wandb_run = start(mode="offline" if offline else None)
    except Exception as exc:
        logger.warning("W&B's server does not answer, so its run is kept offline: %s", exc)
        wandb.teardown()  # else the id is in use
        wandb_run = start(mode="offline")
    wandb_run.define_metric("frames")
    wandb_run.define_metric("*", step_metric="frames")
    return wandb_run


def _new_rows(run: rlnb.Run, counts: dict[str, int]) -> dict[int, dict[str, float]]:
    """Return the metrics of the newest job since the last call: by number of frames, name or tag to value.

    Args:
        run: The run.
        counts: Points of each name or tag that earlier calls returned; brought up to date in place.
    """
    rows: dict[int, dict[str, float]] = {}
    metrics, started = run.metrics, run.started
    assert started is not None, "the tracker is started after started.json is written"
    for name in dict.fromkeys([*metrics.names, *metrics.tags]):
        series = metrics[name]
        count = sum(time_s >= started.time_s for time_s in series.wall_time_s)
        new, counts[name] = count - counts.get(name, 0), count
        if new:
            tails = series.frames[-new:], series.iterations[-new:], series.values[-new:]
            for frames, iteration, value in zip(*tails, strict=True):
                row = rows.setdefault(round(frames), {"frames": round(frames), "iteration": iteration})
                row[name] = value
    return {frames: rows[frames] for frames in sorted(rows)}


def main(run_dir: str, *options: str) -> int:
    """Track; a failure is a warning in the job's log."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # of a cancelled run: the end of stdin comes with it
    os.environ.pop("WANDB_SERVICE", None)  # of a kernel that uses W&B itself; that one ends with the kernel
    os.environ.setdefault("WANDB_X_TRANSACTION_LOG_FLUSH_INTERVAL", "1")  # s; a kill takes as much from an offline run
    os.environ.setdefault("WANDB_X_STATS_PID", str(os.getppid()))  # the training's load, not this one's
    try:
        track(rlnb.get_run(run_dir), offline="offline" in options)
    except Exception as exc:
        logger.warning("W&B follows this run no more: %s: %s", type(exc).__name__, exc)
        return 1
    return 0


if __name__ == "__main__":
    status = main(*sys.argv[1:])
    sys.stderr.flush()
    os._exit(status)  # W&B's exit handlers wait for a service that may be gone
