"""The versions in ``rlnb.version`` agree with pyproject.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

import rlnb
from rlnb.version import ISAACLAB, ISAACLAB_MAJOR, ISAACLAB_REQUIREMENT, __version__, belongs_to, untested

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]


def test_the_version_agrees_with_pyproject() -> None:
    assert rlnb.__version__ == __version__ == PROJECT["version"]


def test_the_extra_installs_the_isaac_lab_that_the_worker_supports() -> None:
    requirements = [text.partition(";")[0] for text in PROJECT["optional-dependencies"]["isaaclab"]]
    assert ISAACLAB_REQUIREMENT in requirements
    assert ISAACLAB_REQUIREMENT.startswith(f"isaaclab=={ISAACLAB}.")


def test_a_release_line_has_versions_with_its_numbers_only() -> None:
    assert all(belongs_to(version, ISAACLAB) for version in ("3.0", "3.0.0", "3.0.4.post1"))
    assert not any(belongs_to(version, ISAACLAB) for version in ("", "3", "3.01", "3.1.0", "30.0"))
    assert belongs_to(ISAACLAB, ISAACLAB_MAJOR)


def test_only_an_untested_isaac_lab_has_a_warning_and_it_names_both_versions() -> None:
    assert untested("") == untested("3.0.4") == ""
    assert "isaaclab 3.1.0 is not a release that rlnb" in untested("3.1.0")
    assert f"Use isaaclab {ISAACLAB}.0." in untested("3.1.0")
