"""Settings of a process, and the folders of the root."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlnb.settings import Options, Root


def test_the_variables_set_the_defaults_and_an_assignment_takes_precedence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLNB_ROOT", str(tmp_path))
    monkeypatch.setenv("RLNB_PYTHON", "/opt/isaaclab/isaaclab.sh -p")
    options = Options()
    assert (options.root, options.python) == (tmp_path, "/opt/isaaclab/isaaclab.sh -p")
    options.root = tmp_path / "other"
    assert options.folders == Root(tmp_path / "other")


def test_the_default_root_is_below_the_working_folder_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RLNB_ROOT", raising=False)
    monkeypatch.setenv("RLNB_PYTHON", "")
    options = Options()
    assert options.python is None, "an empty variable counts as unset"
    monkeypatch.chdir("/")
    assert options.folders.runs == tmp_path / "rlnb-runs" / "runs"


def test_a_relative_root_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folders = Options(root="here").folders
    assert folders.path == tmp_path / "here"
    assert {folders.runs, folders.tasks, folders.cards, folders.sweeps} == {
        tmp_path / "here" / name for name in ("runs", "tasks", "cards", "sweeps")
    }


def test_a_setting_that_is_gone_is_ignored_with_a_warning() -> None:
    options = Options()
    with pytest.warns(FutureWarning, match="Remove the assignment"):
        options.compare_physics = True
    assert not options.compare_physics


def test_an_option_that_does_not_exist_cannot_be_set() -> None:
    with pytest.raises(AttributeError):
        Options().asset_rot = "x"  # type: ignore[attr-defined]
