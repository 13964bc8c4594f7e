"""The versions in ``rlnb.version`` agree with pyproject.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

import rlnb
from rlnb.version import ISAACLAB, ISAACLAB_REQUIREMENT, __version__

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]


def test_the_version_agrees_with_pyproject() -> None:
    assert rlnb.__version__ == __version__ == PROJECT["version"]


def test_the_extra_installs_the_isaac_lab_that_the_worker_supports() -> None:
    requirements = [text.partition(";")[0] for text in PROJECT["optional-dependencies"]["isaaclab"]]
    assert ISAACLAB_REQUIREMENT in requirements
    assert ISAACLAB_REQUIREMENT.startswith(f"isaaclab=={ISAACLAB}.")
