"""Writes the rows of benchmarks/RESULTS.md, each with a measured value and its bound.

    python benchmarks/results.py ROWS...    # adds the rows of other files to RESULTS.md

The variable RLNB_RESULTS names another file, such as one that is taken from a borrowed machine.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from scipy.stats import bootstrap

from rlnb.plugin import gpu_facts

_PACKAGES = (
    "rlnb",
    "isaaclab",
    "torch",
    "warp-lang",
    "newton",
    "ovphysx",
    "rsl-rl-lib",
    "rl-games",
    "skrl",
    "stable-baselines3",
    "jax",
)


_HEAD = "| what | measured | must hold | holds | date | machine and versions |\n| --- | --- | --- | --- | --- | --- |\n"


def record(what: str, measured: str, bound: str, holds: bool) -> None:
    """Print a row and add it to RESULTS.md, replacing an older row of the same name."""
    row = f"| {what} | {measured} | {bound} | {'yes' if holds else 'NO'} | {datetime.now(UTC):%Y-%m-%d} | {machine()} |"
    print(row, flush=True)
    add([row])


def add(rows: Sequence[str]) -> None:
    """Add rows to RESULTS.md, replacing older ones of the same names. The file is there, whole, at every moment."""
    path = results()
    text = path.read_text() if path.exists() else f"# Results\n\n{_HEAD}"
    names = {_name(row) for row in rows}
    lines = [line for line in text.splitlines() if _name(line) not in names]
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.write_text("\n".join([*lines, *rows]) + "\n")
    new.replace(path)


def results() -> Path:
    """Return the file of the rows."""
    return Path(os.environ.get("RLNB_RESULTS") or Path(__file__).with_name("RESULTS.md"))


def rows_of(path: Path) -> list[str]:
    """Return the rows of a file of results."""
    return [line for line in path.read_text().splitlines() if _name(line) not in ("", "what", "---")]


def _name(line: str) -> str:
    """Return the first cell of a line of a table; "" for another line."""
    return line.removeprefix("| ").split(" | ", 1)[0] if line.startswith("| ") else ""


@functools.cache
def machine() -> str:
    """Return the number of cores, the GPUs, and the versions of Python and of the packages that compute."""
    versions = []
    for name in _PACKAGES:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return f"{os.cpu_count()} cores, {_gpus()}, Python {platform.python_version()}, {', '.join(versions)}"


def _gpus() -> str:
    """Return the number of GPUs of each model and the version of their driver."""
    facts = gpu_facts([sys.executable])
    models = ", ".join(f"{count} x {name}" for name, count in Counter(facts.names).items())
    return f"{models}, driver {facts.driver}" if models else "no GPU"


def ratio_interval(pairs: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Return the median ratio of the pairs and its 95 % bootstrap interval (BCa, scipy)."""
    ratios = np.array([a / b for a, b in pairs])
    interval = bootstrap((ratios,), np.median, confidence_level=0.95, random_state=0).confidence_interval
    return float(np.median(ratios)), float(interval.low), float(interval.high)


if __name__ == "__main__":
    for file in sys.argv[1:]:
        add(rows_of(Path(file)))
