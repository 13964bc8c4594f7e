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
"""Largest share of one core for reading the event files; longer curves are read less often."""
SETTLE_S = 0.2
"""Seconds before the last read, because rlnb does not reread a file that it has just read."""
INIT_S = 30.0
"""Seconds after which W&B's server counts as unreachable."""
ID_LENGTH = 64
"""The length limit of W&B's run ids, according to its maintainers (https://github.com/wandb/wandb/issues/4624)."""


def track(run: rlnb.Run, *, offline: bool) -> None:
    """Log the metrics of the run's newest job until stdin closes; then end the W&B run with the job's exit status."""
    wandb_run = _start(run, offline=offline)
    counts: dict[str, int] = {}
    last_frames = step = wandb_run.step - 1  # the last step of a resumed W&B run; -1 for a new one
    pause_s, ended = 0.0, False
    while not ended:
        ended = bool(select.select([sys.stdin], [], [], pause_s)[0])
        time.sleep(SETTLE_S if ended else 0.0)
        start_s = time.process_time()
        for frames, row in _new_rows(run, counts).items():
            if frames > last_frames:
                # W&B drops a row whose step is not larger than the last one. The x axis is "frames", so a larger step
                # is harmless.
                step = max(step + 1, frames)
                wandb_run.log(row, step=step, commit=True)
        pause_s = max(POLL_S, (time.process_time() - start_s) / SHARE)
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
        name=manifest.run_id,
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


def _new_rows(run: rlnb.Run, counts: dict[str, int]) -> dict[int, dict[str, float]]:
    """Return the newest job's points since the last call, by number of frames: dicts from name or tag to value.

    Args:
        run: The run.
        counts: Number of points of each name or tag that earlier calls returned; updated in place.
    """
    rows: dict[int, dict[str, float]] = {}
    metrics, started = run.metrics, run.started
    assert started is not None, "the tracker starts after started.json is written"
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
    """Track the run; log a warning to the job's log on failure."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a cancelled run gets SIGTERM, and its stdin closes too
    os.environ.pop("WANDB_SERVICE", None)  # the service of a kernel that uses W&B itself ends with the kernel
    os.environ.setdefault("WANDB_X_TRANSACTION_LOG_FLUSH_INTERVAL", "1")  # s; a kill loses this much of an offline run
    os.environ.setdefault("WANDB_X_STATS_PID", str(os.getppid()))  # the training's load, not this process's
    try:
        track(rlnb.get_run(run_dir), offline="offline" in options)
    except Exception as exc:
        logger.warning("W&B no longer follows this run: %s: %s", type(exc).__name__, exc)
        return 1
    return 0


if __name__ == "__main__":
    status = main(*sys.argv[1:])
    sys.stderr.flush()
    os._exit(status)  # W&B's exit handlers wait for a service that may have ended
