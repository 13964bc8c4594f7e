"""A job of a launcher that holds living simulators for this kernel."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rlnb import plugins
from rlnb.contracts import Launcher
from rlnb.errors import CheckError, Problem, RlnbError
from rlnb.hooks.calls import require
from rlnb.launch.command import interpreter
from rlnb.launch.local import LocalLauncher
from rlnb.records.layout import COMMAND, HANDLE, JobDir, run_dir_of
from rlnb.records.record import JobRecord
from rlnb.settings import options
from rlnb.simulation.key import write_key
from rlnb.spec import ENDED, Command, Manifest, Resources, Task
from rlnb.storage import files
from rlnb.storage.clock import age_s
from rlnb.tasks.messages import Hosted
from rlnb.version import __version__

logger = logging.getLogger(__name__)
FOLDER = "simulators"
"""Folder below the root with the jobs of living simulators."""
ANNOUNCED_S = 300.0
"""Seconds before the end of the walltime at which it is announced."""
REASON_WITHIN_S = 6.0
"""Seconds to wait for the launcher's reason for the end of a job."""
LEAVE_S = 5.0
"""Seconds that the connection that keeps a job has to end."""
KEPT_S = 24 * 3600.0
"""Seconds for which the folder of an ended job is kept."""


class SimulatorJob:
    """A job that serves living simulators to this kernel.

    Args:
        launcher: Launcher of the job.
        python: Command of the worker's interpreter; None is this process's interpreter.
        asset_root: Explicit asset root.

    Raises:
        CheckError: The launcher cannot start the job; nothing was started.
        RlnbError: There is no key for the job, or the launcher failed.
    """

    def __init__(self, launcher: Launcher, python: str | None, asset_root: str | None) -> None:
        self.launcher = launcher
        self.host = ""
        """Name of the node; empty before the job has started."""
        self.ends_s: float | None = None
        """Time at which the job is ended, in seconds since the epoch; None if that is not known."""
        self._timer: threading.Timer | None = None
        self._hold: subprocess.Popen[bytes] | None = None
        """Connection that shows the job that this kernel lives, also while the job waits or has no simulator."""
        self._over = False
        manifest = _manifest(launcher, python, asset_root)
        if problems := [*_several_nodes(launcher), *launcher.check(manifest)]:
            raise CheckError(f"simulator on {launcher.name}", problems)
        root = options.folders.path / FOLDER
        _prune(root)
        self.folder = JobDir(root / manifest.run_id / "jobs" / "0-simulator")
        files.make_folder(self.folder.path.parent)
        self.folder.path.mkdir(0o700)  # a team may share the root, and no one else may replace the key or the address
        write_key(self.folder.key)
        command = _command(manifest, launcher, self.folder)
        files.write_once(run_dir_of(self.folder.path).manifest, manifest)
        files.write_once(self.folder.path / COMMAND, command)
        try:
            self._handle = launcher.submit(command, self.folder.path)
        except Exception:
            shutil.rmtree(run_dir_of(self.folder.path).path, ignore_errors=True)
            raise
        files.write_once(self.folder.path / HANDLE, self._handle)
        self._record = JobRecord(self.folder, launcher.name)
        self.hold()

    def relay_argv(self, *arguments: str) -> Sequence[str]:
        """Return the argv of a process whose standard streams are a connection to the job."""
        argv = [sys.executable, "-P", "-m", "rlnb.simulation.relay", str(self.folder.path), *arguments]
        beside = getattr(self.launcher, "beside", None)
        return argv if beside is None else list(beside(argv, self.folder.path))

    @property
    def ended(self) -> bool:
        """Whether the job has ended, as far as is known here."""
        return self._over or self._record.state() in ENDED

    def note(self, hosted: Hosted) -> None:
        """Note what the job says when it accepts this kernel, and announce the end of its walltime in time."""
        self.host = hosted.host
        self.hold()
        if hosted.ends_s is not None and hosted.ends_s != self.ends_s:
            self._cancel_timer()
            self.ends_s = hosted.ends_s
            self._timer = threading.Timer(max(0.0, hosted.ends_s - ANNOUNCED_S - time.time()), self._announce)
            self._timer.daemon = True
            self._timer.start()

    def hold(self) -> None:
        """Let the job live as long as this process, also before it has started and without a simulator."""
        if self._hold is None or self._hold.poll() is not None:
            quiet = subprocess.DEVNULL
            self._hold = subprocess.Popen(
                self.relay_argv("--hold"), stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True
            )

    def _announce(self) -> None:
        assert self.ends_s is not None
        if not self.ended:
            logger.warning(
                "The living simulator on %s ends at %s, with the walltime of its job (in %.0f s). The next request "
                "after that starts another one.",
                self.host,
                _clock(self.ends_s),
                max(0.0, self.ends_s - time.time()),
            )

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def reason(self) -> str:
        """Return why the job has ended, as its launcher says, or that its node is gone. It takes a few seconds."""
        deadline = time.monotonic() + REASON_WITHIN_S
        while (result := self._record.result) is None and time.monotonic() < deadline:
            time.sleep(0.25)
        where = f"on {self.host} " if self.host else ""
        self._over = True
        if result is None:
            return f"The living simulator {where}does not answer any more. Its node may be down."
        return f"The job of the living simulator {where}has ended: {result.error or result.outcome}."

    def end(self) -> None:
        """End the job, and leave its launcher's queue."""
        self._cancel_timer()
        if self._hold is not None and self._hold.stdin is not None:
            self._hold.stdin.close()
            try:
                self._hold.wait(LEAVE_S)
            except subprocess.TimeoutExpired:  # such as on a shared folder that stands still
                self._hold.kill()
        self.folder.key.unlink(missing_ok=True)
        self._over = True
        with contextlib.suppress(OSError, RlnbError):  # the job also ends by itself once this kernel is gone
            if self._record.result is None:  # a job that only seems to be dead may still occupy its node
                files.write_once(self.folder.cancel, {"time": files.now(), "save_s": 0.0})
                self.launcher.cancel(self._handle, self.folder.path)

    def __str__(self) -> str:
        submission = self._record.submission
        number = f" job {', '.join(submission.jobs)}" if submission.jobs else ""
        place = f"{self.launcher.name}{number}" + (f" on {self.host}" if self.host else "")
        return place + (f" until {_clock(self.ends_s)}" if self.ends_s is not None else "")


def key_of(launcher: Launcher, python: str | None, asset_root: str | None) -> str:
    """Return a text that is equal for launchers and settings whose simulators are interchangeable."""
    return json.dumps([launcher.name, dict(launcher.settings), python, asset_root], sort_keys=True, default=str)


def _manifest(launcher: Launcher, python: str | None, asset_root: str | None) -> Manifest:
    """Return the record by which the launcher's processes find the launcher again."""
    now = datetime.now(UTC)
    return Manifest(
        run_id=f"{now:%Y%m%d-%H%M%S}-simulator-{secrets.token_hex(2)}",
        created=now.isoformat(),
        task=Task(id="simulator"),
        library=plugins.SCRIPT.name,
        resources=Resources(device="auto"),
        launcher=launcher.name,
        launcher_settings=launcher.settings,
        python=python,
        asset_root=asset_root,
        versions={"rlnb": __version__},
    )


def _command(manifest: Manifest, launcher: Launcher, folder: JobDir) -> Command:
    """Return the command that serves living simulators on the node."""
    idle_s = math.inf if options.warm_idle_s is None else options.warm_idle_s
    python = interpreter(manifest.python)
    loopback = isinstance(launcher, LocalLauncher) or getattr(launcher, "loopback", False)
    where = ["--loopback"] if loopback else []
    serve = ["-m", "rlnb.node", "--serve", str(folder.path), f"--idle={idle_s}", *where, "--", *python]
    asset_root = {"RLNB_ASSET_ROOT": manifest.asset_root} if manifest.asset_root else {}
    command = Command(
        argv=(*python, *serve), env={"PYTHONUNBUFFERED": "1", **asset_root}, walltime_s=launcher.walltime_s
    )
    return require("rlnb_wrap_command", command=command, manifest=manifest) or command


def _several_nodes(launcher: Launcher) -> list[Problem]:
    if launcher.nodes == 1:
        return []
    what = f"The launcher asks for {launcher.nodes} nodes, and a simulator uses one."
    return [Problem(what=what, fix=f"rlnb.{launcher.name}(..., nodes=1)")]


def _prune(root: Path) -> None:
    """Remove the folders of jobs that ended long ago."""
    for folder in root.iterdir() if root.is_dir() else ():
        job = JobDir(folder / "jobs" / "0-simulator")
        if files.there(job.result) and age_s(job.result) > KEPT_S:
            shutil.rmtree(folder, ignore_errors=True)


def _clock(time_s: float) -> str:
    return time.strftime("%H:%M", time.localtime(time_s))
