"""The versions in ``rlnb.version`` agree with pyproject.toml, and old names."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import rlnb
from rlnb.version import (
    ISAACLAB,
    ISAACLAB_MAJOR,
    ISAACLAB_REQUIREMENT,
    __version__,
    belongs_to,
    renamed,
    untested,
)

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


def test_an_argument_by_its_old_and_its_new_name_is_an_error() -> None:
    @renamed(frames="max_frames")
    def study(*, max_frames: int) -> int:
        return max_frames

    arguments = {"frames": 1}
    with pytest.warns(FutureWarning, match=r"^rlnb: use max_frames= in place of frames=, which works until version"):
        assert study(**arguments) == 1
    with pytest.raises(TypeError, match="frames= and max_frames= are the same argument"):
        study(**arguments, max_frames=2)
