"""The end of a living simulator's job on its machine: it starts the job, and ends it with the connection."""

from __future__ import annotations

import time

from rlnb.errors import CheckError
from rlnb.hooks import plugins
from rlnb.mirror.frames import Channel, Frame
from rlnb.mirror.inquiry import entries_of
from rlnb.settings import Root, options
from rlnb.simulation.remote_job import SharedJob
from rlnb.spec import Manifest

STATE_S = 1.0
"""Seconds between two reports of the job's state, which also show that this process lives."""
SILENT_S = 30.0
"""Seconds without a word from the kernel after which the job is ended."""


def hold(channel: Channel, root: Root, manifest: Manifest, idle_s: float | None) -> None:
    """Start a job for living simulators, and end it when the kernel is gone.

    Args:
        channel: Connection to the kernel.
        root: Folder of rlnb on this machine.
        manifest: The launcher of this machine, the interpreter of the worker and the asset root.
        idle_s: Seconds without a request after which the job ends by itself; None means never.

    Raises:
        Closed: The kernel is gone.
        RlnbError: The job cannot be started.
    """
    options.root, options.warm_idle_s = root.path, idle_s
    launcher = plugins.make_launcher(manifest.launcher, manifest.launcher_settings)
    try:
        job = SharedJob(launcher, manifest.python, manifest.asset_root)
    except CheckError as exc:
        channel.send(Frame(kind="refused", data={"problems": entries_of(exc.problems)}))
        return
    try:
        channel.send(Frame(kind="started", data={"folder": str(job.folder.path)}))
        _report(channel, job)
    finally:
        job.end()


def _report(channel: Channel, job: SharedJob) -> None:
    """Report the state of the job to the kernel, until the kernel is silent.

    Raises:
        Closed: The kernel is gone.
    """
    told_s = float("-inf")
    while time.monotonic() - channel.heard_s < SILENT_S:
        frame = channel.receive(STATE_S)
        if frame is not None and frame.kind == "reason":
            channel.send(Frame(kind="reason", data={"text": job.reason()}))
        if time.monotonic() - told_s > STATE_S:
            told_s = time.monotonic()
            channel.send(Frame(kind="state", data={"name": job.name, "ended": job.ended}))
