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
from pathlib import Path

from rlnb.doctor import machine
from rlnb.doctor.finding import Finding, fault, ok, warning
from rlnb.doctor.interpreter import TIMEOUT_S, check_worker, driver, look
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
        "rlnb": lambda: [check_plugins(plugin_versions())],
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


def plugin_versions() -> dict[str, str]:
    """Return each plugin's distribution and version by plugin name, with the error of a plugin that does not load."""
    import warnings

    from rlnb import plugins

    versions = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the finding reports a broken plugin
        manager = plugins.manager()
    for entry in sorted(importlib.metadata.entry_points(group="rlnb"), key=lambda entry: entry.name):
        versions[entry.name] = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
        if not manager.has_plugin(entry.name):
            versions[entry.name] += f" does not load: {load_error(entry)}"
    return versions


def load_error(entry: importlib.metadata.EntryPoint) -> str:
    """Return the error of a plugin that does not load, else an empty string."""
    try:
        entry.load()
    except Exception as exc:  # any exception of a broken plugin is the answer
        return f"{type(exc).__name__}: {exc}"
    return ""


def check_plugins(versions: Mapping[str, str]) -> Finding:
    """Judge rlnb and its plugins."""
    text = "; ".join([__version__, *versions.values()])
    broken = [name for name, version in versions.items() if " does not load: " in version]
    if broken:
        fix = f"Update or uninstall {', '.join(versions[name].split()[0] for name in broken)}."
        return fault("rlnb", text, fix)
    if not versions:
        fix = "pip install rlnb-rsl-rl rlnb-tasks"
        return fault("rlnb", f"{text}; no plugin is installed, so there is no RL library", fix)
    return ok("rlnb", text)
