"""The heavy half: ``python -m rlnb_wandb.tracker RUN_DIR [offline]`` sends a run's newest job to W&B until stdin ends.

The event files are the one source, read by rlnb. What W&B itself offers for them does not fit: ``sync_tensorboard``
sees only writers that are made after ``wandb.init`` and logs a value several times, and ``wandb sync`` reads event
files no more.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import select
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

import rlnb

logger = logging.getLogger("rlnb_wandb")

POLL_S = 1.0
SHARE = 0.1
"""Of one core, at most, for reading: the longer the curves, the rarer they are read."""
SETTLE_S = 0.2
"""Before the last look: rlnb takes what it read a moment ago for new."""
INIT_S = 30.0
"""After which W&B's server counts as out of reach."""
ID_LENGTH = 64
"""The longest id that W&B takes, by what users were told (https://github.com/wandb/wandb/issues/4624)."""


def track(run: rlnb.Run, *, offline: bool) -> None:
    """Log what the run's newest job writes until stdin ends; then end the W&B run as the job ended."""
    tracked = _begin(run, offline=offline)
    seen: dict[str, int] = {}
    known = step = tracked.step - 1  # of a resumed W&B run: what it has; else -1
    pause_s, ended = 0.0, False
    while not ended:
        ended = bool(select.select([sys.stdin], [], [], pause_s)[0])
        time.sleep(SETTLE_S if ended else 0.0)
        begun = time.process_time()
        for row in _new_rows(run, seen):
            if row["frames"] > known:
                # W&B drops a row whose step lies behind; the x axis is "frames", so a later step does no harm.
                step = max(step + 1, row["frames"])
                tracked.log(row, step=step, commit=True)
        pause_s = max(POLL_S, (time.process_time() - begun) / SHARE)
    result = run.result
    if result is not None:
        tracked.summary.update({"outcome": result.outcome, "checkpoint": result.checkpoint, "error": result.error})
    failed = 1 if result is None else result.exit_code or 1  # without a result it was killed
    tracked.finish(exit_code=0 if result is not None and result.outcome == "completed" else failed)


def _begin(run: rlnb.Run, *, offline: bool) -> Any:
    """Return the W&B run that is named after the run: a new one, or the one that an earlier job of it began."""
    import wandb

    manifest = run.manifest
    arguments: dict[str, Any] = {
        "project": os.environ.get("WANDB_PROJECT", "rlnb"),
        "id": manifest.run_id[-ID_LENGTH:],
        "name": manifest.run_id,
        "config": dataclasses.asdict(manifest),
        "dir": run.path,
        "resume": "allow",
        "settings": wandb.Settings(console="off", quiet=True, symlink=False, init_timeout=INIT_S),
    }
    try:
        tracked = wandb.init(mode="offline" if offline else None, **arguments)
    except Exception as exc:
        logger.warning("W&B is not reached, it goes on offline: %s", exc)
        wandb.teardown()  # else the id is taken
        tracked = wandb.init(mode="offline", **arguments)
    tracked.define_metric("frames")
    tracked.define_metric("*", step_metric="frames")
    return tracked


def _new_rows(run: rlnb.Run, seen: dict[str, int]) -> list[Mapping[str, Any]]:
    """Return what the newest job has logged since the last call: per number of frames, name or tag to value."""
    rows: dict[int, dict[str, Any]] = {}
    metrics, started = run.metrics, run.started
    assert started is not None, "the tracker is started after started.json is written"
    for name in dict.fromkeys([*metrics.names, *metrics.tags]):
        series = metrics[name]
        count = sum(time_s >= started.time_s for time_s in series.wall_time_s)
        new, seen[name] = count - seen.get(name, 0), count
        if new:
            tails = series.frames[-new:], series.iterations[-new:], series.values[-new:]
            for frames, iteration, value in zip(*tails, strict=True):
                row = rows.setdefault(round(frames), {"frames": round(frames), "iteration": iteration})
                row[name] = value
    return [rows[frames] for frames in sorted(rows)]


def main(run_dir: str, *options: str) -> int:
    """Track; what goes wrong is a warning in the job's log."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # of a cancelled run: the end of stdin comes with it
    os.environ.pop("WANDB_SERVICE", None)  # of a kernel that uses W&B itself; that one ends with the kernel
    os.environ.setdefault("WANDB_X_TRANSACTION_LOG_FLUSH_INTERVAL", "1")  # s; what a kill takes from an offline run
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
