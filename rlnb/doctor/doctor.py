"""Is this machine fit for rlnb? The checks only look: they import no torch, start no simulator and leave no file.

Each check turns facts into findings and touches nothing else. One short subprocess of the worker's interpreter gives
its facts, so the doctor is quick and sees the same packages as the worker.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlnb.doctor import machine
from rlnb.doctor.finding import Finding, fault, ok, warning
from rlnb.doctor.interpreter import TIMEOUT_S, check_worker, driver, look
from rlnb.storage.installation import install_line
from rlnb.version import __version__

KERNEL_PYTHONS = ((3, 11), (3, 13))


def examine(
    *, root: Path, python: str | None = None, asset_root: str | None = None, timeout_s: float = TIMEOUT_S
) -> list[Finding]:
    """Look at everything at once and return the findings, in a fixed order.

    Args:
        root: Folder of runs.
        python: Command of the worker's interpreter; None is this process's own.
        asset_root: Explicit asset root, as set in the options.
        timeout_s: Seconds for all checks together.
    """
    checks: dict[str, Callable[[], Sequence[Finding]]] = {
        "Python": lambda: [check_python(sys.version_info[:3])],
        "rlnb": lambda: [check_plugins(installed_plugins())],
        "worker": lambda: check_worker(look(python, timeout_s - 0.5), driver(), asset_root, os.environ),
        **machine.checks(root),
    }
    return _all_within(checks, timeout_s)


def _all_within(checks: Mapping[str, Callable[[], Sequence[Finding]]], timeout_s: float) -> list[Finding]:
    """Run the checks side by side, so that a hanging file system or a bug costs one finding only."""
    answers: dict[str, Sequence[Finding]] = {}

    def run(name: str, check: Callable[[], Sequence[Finding]]) -> None:
        try:
            answers[name] = check()
        except Exception as exc:
            answers[name] = [warning(name, f"the check itself failed: {type(exc).__name__}: {exc}")]

    deadline = time.monotonic() + timeout_s
    threads = [threading.Thread(target=run, args=item, daemon=True) for item in checks.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    silent = f"no answer in {timeout_s:g} s"
    late = {
        name: [warning(name, silent, "Run rlnb doctor again. If it repeats, look for a disk that hangs.")]
        for name in checks
    }
    return [finding for name in checks for finding in answers.get(name, late[name])]


# -- this interpreter ------------------------------------------------------------------------------------


def check_python(version: Sequence[int]) -> Finding:
    """Judge the Python of this process, the kernel's."""
    low, high = KERNEL_PYTHONS
    text = ".".join(map(str, version))
    if low <= tuple(version[:2]) <= high:
        return ok("Python", f"{text} ({sys.executable})")
    fix = "Use Python 3.11 to 3.13 for the kernel. Python 3.12 serves the worker too."
    return fault("Python", f"{text} ({sys.executable})", fix)


@dataclass(frozen=True, kw_only=True, slots=True)
class InstalledPlugin:
    """A plugin of this interpreter."""

    distribution: str
    """Name of its package; its module where the package is unknown."""
    version: str = ""
    error: str = ""
    """Error of a plugin that does not load."""

    def __str__(self) -> str:
        text = f"{self.distribution} {self.version}".strip()
        return f"{text} does not load: {self.error}" if self.error else text


def installed_plugins() -> list[InstalledPlugin]:
    """Return the plugins in the order of their names."""
    import warnings

    from rlnb import plugins

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the finding reports a broken plugin
        manager = plugins.manager()
    return [
        InstalledPlugin(
            distribution=entry.dist.name if entry.dist else entry.value,
            version=entry.dist.version if entry.dist else "",
            error="" if manager.has_plugin(entry.name) else load_error(entry),
        )
        for entry in sorted(importlib.metadata.entry_points(group="rlnb"), key=lambda entry: entry.name)
    ]


def load_error(entry: importlib.metadata.EntryPoint) -> str:
    """Return the error of a plugin that does not load, else an empty string."""
    try:
        entry.load()
    except Exception as exc:  # any exception of a broken plugin is the answer
        return f"{type(exc).__name__}: {exc}"
    return ""


def check_plugins(plugins: Sequence[InstalledPlugin]) -> Finding:
    """Judge rlnb and its plugins."""
    text = "; ".join([__version__, *map(str, plugins)])
    if broken := [plugin.distribution for plugin in plugins if plugin.error]:
        return fault("rlnb", text, f"Update or uninstall {', '.join(broken)}.")
    if not plugins:
        return fault(
            "rlnb",
            f"{text}; no plugin is installed, so there is no RL library",
            install_line("rlnb-rsl-rl", "rlnb-tasks"),
        )
    return ok("rlnb", text)
