"""The packages of an environment with Isaac Sim, with and without rlnb, as uv's resolver picks them.

python tests/rig/pins.py    # writes isaacsim-6.2.txt and constraints-isaacsim.txt anew
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

REPO = Path(__file__).parents[2]
PINS = Path(__file__).with_name("isaacsim-6.2.txt")
"""The packages of Isaac Lab with Isaac Sim, as they were picked when the file was written."""
CONSTRAINTS = REPO / "constraints-isaacsim.txt"
OVERRIDES = REPO / "overrides-isaacsim.txt"
ISAACSIM = "isaaclab[isaacsim]==3.0.0"
WITH_VISER = "isaaclab[isaacsim,viser]==3.0.0"
"""The same with Isaac Lab's own extra for the 3D view. viser needs rich<15, so it moves one of the other packages."""
EXTRAS = {"rlnb": "[all,jax]", "rlnb-tasks": "[robots]"}
# This package is on NVIDIA's own index only. The resolver reads no file of it.
ELSEWHERE = 'opencv-python-headless-noffmpeg ; python_version < "3"\n'
HEAD = "# Written by tests/rig/pins.py: constraints.txt without the packages that Isaac Lab and Isaac Sim bring.\n"


def names(text: str) -> dict[str, str]:
    """Return the version of each package in a list of pins, by name."""
    lines = [line.partition(";")[0].strip() for line in text.splitlines() if "==" in line]
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def packages() -> dict[str, Path]:
    """Return the folder of each package of ours, by name."""
    files = [REPO / "pyproject.toml", *sorted(REPO.glob("[pe]*s/*/pyproject.toml"))]
    return {tomllib.loads(file.read_text(encoding="utf-8"))["project"]["name"]: file.parent for file in files}


def everything() -> list[str]:
    """Return the requirements of every package of ours in this checkout, with the extras of a user."""
    return [f"{name}{EXTRAS.get(name, '')} @ {folder.as_uri()}" for name, folder in packages().items()]


def resolve(requirements: Sequence[str], overrides: Path = OVERRIDES) -> dict[str, str]:
    """Return the version of each third-party package that uv picks for Python 3.12 on Linux, by name.

    Args:
        requirements: Lines of a requirements file.
        overrides: File with requirements that replace those of all packages, as for ``uv pip install --override``.

    Raises:
        CalledProcessError: The requirements contradict each other.
    """
    uv = Path(sys.executable).with_name("uv")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as elsewhere:
        elsewhere.write(ELSEWHERE)
        elsewhere.flush()
        argv = [uv, "pip", "compile", "--quiet", "--python", sys.executable, "--no-annotate", "--no-header", "-"]
        argv += ["--override", overrides, "--override", elsewhere.name]
        answer = subprocess.run(argv, input="\n".join(requirements), capture_output=True, text=True, check=True)
    return names(answer.stdout)


def constraints(pins: dict[str, str]) -> str:
    """Return constraints.txt without the packages of a list of pins."""
    lines = (REPO / "constraints.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    return HEAD + "".join(line for line in lines if line.partition("==")[0] not in pins)


if __name__ == "__main__":
    resolution = resolve([ISAACSIM])
    PINS.write_text("".join(f"{name}=={version}\n" for name, version in resolution.items()), encoding="utf-8")
    CONSTRAINTS.write_text(constraints(resolution), encoding="utf-8")
