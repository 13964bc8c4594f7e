"""A node, or a process, whose clock is wrong."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest


def variables(folder: Path, ahead_s: float) -> Mapping[str, str]:
    """Return the variables of processes whose clock is some seconds ahead; skip the test without a compiler.

    Args:
        folder: Folder for the library.
        ahead_s: The seconds; negative for a clock that is behind.
    """
    compiler, library = shutil.which("cc") or shutil.which("gcc"), folder / "wrong_clock.so"
    if compiler is None:
        pytest.skip("a wrong clock needs a C compiler")
    folder.mkdir(parents=True, exist_ok=True)
    if not library.exists():
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, Path(__file__).with_suffix(".c")], check=True)
    return {"LD_PRELOAD": str(library), "CLOCK_AHEAD_S": f"{ahead_s:.0f}"}
