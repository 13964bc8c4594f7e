"""The other machine answers with its versions and with all problems at once."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import rlnb
from rlnb.launchers import Resources
from rlnb.mirror.server import answer_inquiry, versions
from rlnb.settings import Root
from rlnb.spec import Manifest, Task

MANIFEST = Manifest(run_id="run", created="", task=Task(id="Echo"), library="echo")


def test_a_machine_that_can_start_the_run_has_no_problems(tmp_path: Path) -> None:
    data = answer_inquiry(Root(tmp_path / "new" / "root"), MANIFEST).data
    assert data["problems"] == []
    assert data["versions"] == versions()
    assert not (tmp_path / "new").exists(), "nothing is written"


def test_all_problems_are_found_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    manifest = dataclasses.replace(
        MANIFEST, library="none", asset_root="/no/assets", launcher="local", launcher_settings={"max_runing": 2}
    )
    problems = answer_inquiry(Root(tmp_path / "file"), manifest).data["problems"]
    texts = [str(entry["what"]) for entry in problems]  # type: ignore[union-attr, index, call-overload]
    for text, part in zip(texts, ["cannot be written", "'/no/assets'", "No RL library", "'max_runing'"], strict=True):
        assert part in text


def test_the_launcher_there_has_its_own_problems(tmp_path: Path) -> None:
    manifest = dataclasses.replace(MANIFEST, resources=Resources(nodes=3))
    (problem,) = answer_inquiry(Root(tmp_path), manifest).data["problems"]  # type: ignore[misc, union-attr]
    assert "the local launcher has one node" in problem["what"]  # type: ignore[index, call-overload]


def test_versions_are_those_of_rlnb_and_of_the_packages_of_its_plugins() -> None:
    assert versions()["rlnb"] == rlnb.__version__
    assert "rlnb-echo" in versions()


def test_a_folder_that_others_can_replace_there_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o777)
    (problem,) = answer_inquiry(Root(tmp_path), MANIFEST).data["problems"]  # type: ignore[misc, union-attr]
    assert f"All users can replace what you make in {tmp_path}" in problem["what"]  # type: ignore[index, call-overload]
    assert 'env={"RLNB_TEAM": "1"}' in problem["fix"]  # type: ignore[index, call-overload]
    monkeypatch.setattr(rlnb.options, "team", True)
    assert answer_inquiry(Root(tmp_path), MANIFEST).data["problems"] == []
