"""``python -m rlnb_trackio.tracker RUN_DIR`` sends a run's newest job to Trackio until its stdin closes."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

import rlnb
from rlnb.tracking import follow, main, outcome

if TYPE_CHECKING:
    import trackio


def track(run: rlnb.Run) -> None:
    """Log the metrics of the run's newest job until stdin closes; then note the job's outcome and end the run."""
    trackio_run = _start(run)
    # Trackio has no public name for the last step of a run. Without it, a resumed job would log rows a second time.
    last_frames = trackio_run._next_step - 1
    for rows in follow(run, after=last_frames):
        for row in rows:
            trackio_run.log({"iteration": row.iteration, **row.values}, step=row.frames)
    _note_outcome(trackio_run, run)
    trackio_run.finish()


def _start(run: rlnb.Run) -> trackio.Run:
    """Return the Trackio run named after the run: a new one, or the one that an earlier job of the run started."""
    import trackio

    return trackio.init(
        project=os.environ.get("TRACKIO_PROJECT") or "rlnb",
        name=run.id,
        config=dataclasses.asdict(run.manifest),
        resume="allow",
        embed=False,
        auto_log_cpu=False,  # rlnb records the load of the machine itself
        auto_log_gpu=False,
    )


def _note_outcome(trackio_run: trackio.Run, run: rlnb.Run) -> None:
    """Add an alert with the job's outcome, since a run of Trackio has no status."""
    from trackio import AlertLevel

    end, result = outcome(run), run.result
    level = {"completed": AlertLevel.INFO, "failed": AlertLevel.ERROR}.get(end, AlertLevel.WARN)
    text = (result.error or result.checkpoint if result else "") or ""
    trackio_run.alert(title=end, text=text, level=level)


def configure_environment() -> None:
    """Turn off the telemetry of Hugging Face's packages; a value of the user stays."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")


if __name__ == "__main__":
    configure_environment()
    main("Trackio", track)
