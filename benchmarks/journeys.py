"""Modules of rlnb that a call enters in the notebook's process: train, preview and resume, with warm caches.

    python benchmarks/journeys.py

A profiler notes the file of each function that is called. Each call is made twice, and the second one counts, so that
imports and caches do not. Isaac Lab is real; training and previews use the cart-pole on the CPU.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import rlnb

PACKAGE = Path(rlnb.__file__).parent
TASK, CAMERAS = "Isaac-Cartpole-Direct", "Isaac-Cartpole-Camera-Direct"


def entered(call: Callable[[], object]) -> list[str]:
    """Return the modules whose functions a call enters in this thread."""
    files: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            files.setdefault(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return sorted(str(Path(file).relative_to(PACKAGE)) for file in files if file.startswith(f"{PACKAGE}/"))


def main() -> None:
    """Print the numbers, and the modules of each call."""
    rlnb.options.root = Path(tempfile.mkdtemp())
    threading.setprofile(None)  # type: ignore[arg-type]
    arguments = {"library": "rsl_rl", "device": "cpu", "num_envs": 16, "max_iterations": 2}
    first = rlnb.train(TASK, **arguments).wait()
    runs: list[rlnb.Run] = []
    calls: dict[str, Callable[[], object]] = {
        "train": lambda: runs.append(rlnb.train(TASK, **arguments)),
        "resume": lambda: first.resume(max_iterations=4),
        "preview": lambda: rlnb.preview(CAMERAS, num_envs=4),
    }
    calls["preview"]()
    for name, call in calls.items():
        modules = entered(call)
        print(f"{name}: {len(modules)}", *modules, sep="\n  ")
        for run in (first, *runs):
            run.wait()


if __name__ == "__main__":
    main()
