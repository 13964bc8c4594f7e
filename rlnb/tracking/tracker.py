"""The half of a tracker in the kernel and in the training. It imports nothing heavy."""

from __future__ import annotations

import logging
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from rlnb.errors import Problem
from rlnb.spec import Manifest

logger = logging.getLogger(__name__)

FINISH_S = 18.0
"""Seconds that a tracker has after the training's end; rlnb ends a worker 20 s after its result."""
CHECK_S = 30.0
"""Seconds that the check in the worker's interpreter may take."""


@dataclass(kw_only=True, slots=True)
class Tracker:
    """An experiment tracker that follows the runs with one of its tags.

    It works in a separate process. Its imports, threads and network traffic therefore do not slow down iterations, its
    errors do not reach the training, and it can still end its own run properly after the training has been killed.
    A tag is in the manifest, so it reaches resumed jobs, and workers that do not inherit the kernel's environment.
    """

    name: str
    """Name in messages, such as ``"W&B"``."""
    tags: tuple[str, ...]
    """Tags of the runs that the tracker follows."""
    module: str
    """Module of the process that follows a run. It calls :func:`rlnb.tracking.main`."""
    packages: tuple[str, ...]
    """Names of the packages that the worker's interpreter needs."""
    fix: str
    """Fix for a missing package, in which ``{python}`` stands for the command of the worker's interpreter."""
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False, repr=False)
    _argv: list[str] = field(default_factory=list, init=False, repr=False)

    def follows(self, manifest: Manifest) -> bool:
        """Return whether a run has one of the tracker's tags."""
        return any(tag in manifest.tags for tag in self.tags)

    def check(self, manifest: Manifest, *, code: str = "", fix: str = "") -> list[Problem]:
        """Return a problem if the worker's interpreter cannot follow a run with one of the tracker's tags.

        Args:
            manifest: The run.
            code: Python statements for the worker's interpreter that raise an error if something else is missing, such
                as credentials. They run if the packages are installed, for at most half a minute.
            fix: Fix for such an error.
        """
        if not self.follows(manifest):
            return []
        python = manifest.python or sys.executable
        lines = ["from importlib.metadata import version", *(f"version({name!r})" for name in self.packages), code]
        try:
            done = subprocess.run(
                [*shlex.split(python), "-P", "-c", "\n".join(lines)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=CHECK_S,
            )
        except OSError as exc:
            return [Problem(what=f"{self.name} cannot follow this run from {python}: {exc}")]
        except subprocess.TimeoutExpired:
            return []  # a slow network is no reason to refuse the training
        if done.returncode == 0:
            return []
        reason = done.stderr.strip().rpartition("\n")[2]
        missing = "PackageNotFoundError" in reason
        what = f"{self.name} cannot follow this run from {python}: {reason}"
        return [Problem(what=what, fix=self.fix.format(python=python) if missing else fix)]

    def start(self, run_dir: Path, manifest: Manifest, *options: str) -> None:
        """Start the process that follows a run until its stdin closes, which also happens if this process is killed.

        Args:
            run_dir: The run's folder.
            manifest: The run's manifest; without a tag of the tracker, nothing is started.
            options: Further arguments of the process.
        """
        if not self.follows(manifest):
            return
        self._argv = [sys.executable, "-P", "-m", self.module, str(run_dir), *options]
        try:
            self._process = subprocess.Popen(self._argv, stdin=subprocess.PIPE)
        except OSError as exc:
            logger.warning("%s does not follow this run: %s", self.name, exc)

    def finish(self) -> None:
        """Wait, for a limited time, until the process has sent the remaining data."""
        process = self._process
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        try:
            process.wait(FINISH_S)
        except subprocess.TimeoutExpired:
            line = f"{shlex.join(self._argv)} </dev/null"
            text = "%s has not finished after %.0f s. This command sends the remaining data: %s"
            logger.warning(text, self.name, FINISH_S, line)
