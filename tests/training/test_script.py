"""The interpreter of a training script: its versions, and the problem of a missing one."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

import rlnb
from rlnb.hooks import plugins
from rlnb.launch.local import LocalLauncher
from rlnb.plugin import Manifest
from rlnb.training import script
from rlnb.version import __version__


def manifest(python: str | None) -> Manifest:
    return Manifest(
        run_id="r",
        created="2026-01-01T00:00:00+00:00",
        task=rlnb.Task(id="train"),
        library=plugins.SCRIPT.name,
        script=("train.py",),
        python=python,
        versions={"rlnb": __version__, "python": "3.13.0"},
    )


def test_the_versions_are_those_of_the_scripts_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "isaaclab-2.3.2.dist-info").mkdir()
    (tmp_path / "isaaclab-2.3.2.dist-info" / "METADATA").write_text("Name: isaaclab\nVersion: 2.3.2\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(script, "TIMEOUT_S", 20.0)
    of_run, problems = script.with_interpreter(manifest(sys.executable), LocalLauncher())
    assert of_run.versions["isaaclab"] == "2.3.2"
    assert of_run.versions["python"] == ".".join(map(str, sys.version_info[:3]))
    assert of_run.versions["rlnb"] == __version__
    assert problems == []


def test_a_relative_path_of_an_interpreter_is_that_from_the_kernels_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my lab").mkdir()
    (tmp_path / "my lab" / "isaaclab.sh").symlink_to("/bin/false")
    monkeypatch.chdir(tmp_path)
    of_run, problems = script.with_interpreter(manifest("'my lab/isaaclab.sh' -p"), LocalLauncher())
    assert (of_run.python, problems) == (shlex.join([f"{tmp_path}/my lab/isaaclab.sh", "-p"]), [])
    assert script.with_interpreter(manifest("false -p"), LocalLauncher())[0].python == "false -p"


def test_without_an_interpreter_of_its_own_a_script_has_the_kernels_versions() -> None:
    assert script.with_interpreter(manifest(None), LocalLauncher()) == (manifest(None), [])


def test_a_missing_interpreter_is_a_problem_on_this_machine_but_not_on_a_cluster() -> None:
    missing = manifest("/opt/isaaclab/isaaclab.sh -p")
    _, problems = script.with_interpreter(missing, LocalLauncher())
    assert [problem.what for problem in problems] == [
        "python='/opt/isaaclab/isaaclab.sh -p' is not an executable on this machine."
    ]
    assert problems[0].fix.startswith("Use python=")
    on_nodes, problems = script.with_interpreter(missing, Nodes())
    assert (problems, on_nodes.versions) == ([], {"rlnb": __version__}), "the kernel's Python is not the script's"


def test_an_interpreter_that_does_not_answer_has_unknown_versions() -> None:
    silent = shlex.join(["/bin/sh", "-c", "exit 3"])
    of_run, problems = script.with_interpreter(manifest(silent), LocalLauncher())
    assert (problems, of_run.versions) == ([], {"rlnb": __version__})


class Nodes:
    """A launcher of other machines."""

    name, nodes, nproc_per_node, settings = "nodes", 1, 1, {}
