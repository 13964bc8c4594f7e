"""Writes the rows of benchmarks/RESULTS.md, each with a measured value and its bound."""

from __future__ import annotations

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

from rlnb import gpu_facts

RESULTS = Path(__file__).with_name("RESULTS.md")
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


def record(what: str, measured: str, bound: str, holds: bool) -> None:
    """Print a row and add it to RESULTS.md, replacing an older row of the same name."""
    row = f"| {what} | {measured} | {bound} | {'yes' if holds else 'NO'} | {datetime.now(UTC):%Y-%m-%d} | {machine()} |"
    print(row, flush=True)
    head = (
        "| what | measured | must hold | holds | date | machine and versions |\n| --- | --- | --- | --- | --- | --- |\n"
    )
    text = RESULTS.read_text() if RESULTS.exists() else f"# Results\n\n{head}"
    lines = [line for line in text.splitlines() if not line.startswith(f"| {what} |")]
    RESULTS.write_text("\n".join([*lines, row]) + "\n")


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
