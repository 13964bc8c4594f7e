"""The hooks: they check whether Trackio follows a run, and start and end the process that does. No import is heavy."""

from __future__ import annotations

from pathlib import Path

from rlnb.plugin import Manifest, Problem, hookimpl
from rlnb.tracking import Tracker

TRACKIO = Tracker(
    name="Trackio",
    tags=("trackio",),
    module="rlnb_trackio.tracker",
    packages=("rlnb-trackio", "trackio"),
    fix="Install rlnb-trackio for {python}, from where rlnb was installed, and then run "
    "`{python} -m pip install trackio`.",
)


@hookimpl
def rlnb_check(manifest: Manifest) -> list[Problem]:
    """Check the worker's interpreter, where Trackio runs. A server is not called: a run needs none to train."""
    return TRACKIO.check(manifest) if "trackio" in manifest.tags else []


@hookimpl
def rlnb_run_started(run_dir: Path, manifest: Manifest) -> None:
    TRACKIO.start(run_dir, manifest)


@hookimpl
def rlnb_run_finished() -> None:
    TRACKIO.finish()
