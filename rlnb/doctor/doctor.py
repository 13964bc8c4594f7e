"""Checks of whether this machine can run rlnb. They import no torch, start no simulator and leave no files behind.

Each check turns facts into findings and has no side effects. The facts about the worker's interpreter come from one
short subprocess, so the doctor is quick and sees the same packages as the worker.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rlnb.doctor import machine
from rlnb.doctor.finding import Finding, fault, ok, warning
from rlnb.doctor.interpreter import TIMEOUT_S, check_worker, look
from rlnb.hooks.plugin import Plugin
from rlnb.hooks.registry import installed
from rlnb.machine.cuda import driver_version
from rlnb.machine.packages import install_line
from rlnb.version import __version__

KERNEL_PYTHONS = ((3, 11), (3, 13))


def examine(
    *, root: Path, python: str | None = None, asset_root: str | None = None, timeout_s: float = TIMEOUT_S
) -> list[Finding]:
    """Run all checks at the same time and return the findings in a fixed order.

    Args:
        root: Folder of runs.
        python: Command of the worker's interpreter; None is this process's interpreter.
        asset_root: Explicit asset root, as set in the options.
        timeout_s: Seconds for all checks together.
    """
    plugins = installed()  # before the clock starts: a plugin that imports torch takes seconds, and has to be named
    checks: dict[str, Callable[[], Sequence[Finding]]] = {
        "Python": lambda: [check_python(sys.version_info[:3])],
        "rlnb": lambda: [check_plugins(plugins)],
        "worker": lambda: check_worker(look(python, timeout_s - 0.5), driver_version(), asset_root, os.environ),
        **machine.checks(root),
    }
    return _all_within(checks, timeout_s)


def _all_within(checks: Mapping[str, Callable[[], Sequence[Finding]]], timeout_s: float) -> list[Finding]:
    """Run each check in a thread, so that a hanging file system or a bug affects only that check's findings."""
    answers: dict[str, Sequence[Finding]] = {}

    def run(name: str, check: Callable[[], Sequence[Finding]]) -> None:
        try:
            answers[name] = check()
        except Exception as exc:
            answers[name] = [warning(name, f"this check failed with an error: {type(exc).__name__}: {exc}")]

    deadline = time.monotonic() + timeout_s
    threads = [threading.Thread(target=run, args=item, daemon=True) for item in checks.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    silent = f"no answer in {timeout_s:g} s"
    late = {
        name: [warning(name, silent, "Run rlnb doctor again. If this repeats, check for a hanging file system.")]
        for name in checks
    }
    return [finding for name in checks for finding in answers.get(name, late[name])]


# -- this interpreter ------------------------------------------------------------------------------------------------


def check_python(version: Sequence[int]) -> Finding:
    """Check the Python version of this process, which is that of the kernel."""
    low, high = KERNEL_PYTHONS
    text = ".".join(map(str, version))
    if low <= tuple(version[:2]) <= high:
        return ok("Python", f"{text} ({sys.executable})")
    fix = "Use Python 3.11, 3.12 or 3.13 for the kernel. With Python 3.12, the worker can use the same interpreter."
    return fault("Python", f"{text} ({sys.executable})", fix)


def check_plugins(plugins: Sequence[Plugin]) -> Finding:
    """Check that plugins are installed, and that each of them works."""
    text = "; ".join([__version__, *map(_state_of, plugins)])
    if broken := [plugin for plugin in plugins if plugin.error]:
        return fault("rlnb", text, " ".join(dict.fromkeys(plugin.fix for plugin in broken)))
    if not plugins:
        return fault(
            "rlnb",
            f"{text}; no plugin is installed, so there is no RL library",
            install_line("rlnb-rsl-rl", "rlnb-tasks"),
        )
    if remarkable := [plugin for plugin in plugins if plugin.remarks]:
        return warning("rlnb", text, " ".join(dict.fromkeys(plugin.usual_fix for plugin in remarkable)))
    return ok("rlnb", text)


def _state_of(plugin: Plugin) -> str:
    text = f"{plugin.distribution or plugin.name} {plugin.version}".strip()
    faults = [*([f"is left out: {plugin.error}"] if plugin.error else []), *plugin.remarks]
    return f"{text} {'; '.join(fault.rstrip('.') for fault in faults)}".rstrip()
