"""The deep check of a task, from the answer of a stand-in for the living simulator."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rlnb
from rlnb.simulation import simulator
from rlnb.spec import Manifest
from rlnb.training.start import examine

WORKER = """
import json, os, sys
replies = os.open(sys.argv[-1], os.O_WRONLY)
for line in sys.stdin:
    call = json.loads(line)
    asked = call["payload"]
    findings = [
        {"level": "warning", "what": f"{asked['num_envs']} envs, {asked['steps']} steps", "fix": "none"},
        {"level": "note", "what": "a term was 0", "fix": ""},
    ]
    answer = {"value": {"findings": findings}}
    if asked["task"]["id"] == "Broken":
        answer = {"error": "ValueError: no such joint", "place": "/puck.py, line 3, in step", "own": "x = 1"}
    os.write(replies, json.dumps({"id": call["id"], **answer}).encode() + b"\\n")
"""


@pytest.fixture
def python(tmp_path: Path) -> Iterator[str]:
    """Command of an interpreter that starts the stand-in."""
    (tmp_path / "worker.py").write_text(WORKER)
    yield f"{sys.executable} {tmp_path / 'worker.py'}"
    simulator.shut_down()


def manifest(python: str, task: rlnb.Task) -> Manifest:
    return Manifest(run_id="r", created="2026-01-01T00:00:00+00:00", task=task, library="rsl_rl", python=python)


def test_findings_become_problems_and_notes(python: str) -> None:
    found = examine(manifest(python, rlnb.Task(id="Demo")), warm=True)
    assert found == [
        rlnb.Problem(what="16 envs, 200 steps", fix="none"),
        rlnb.Problem(what="a term was 0", note=True),
    ]


def test_no_more_envs_are_made_than_the_training_has(python: str) -> None:
    found = examine(manifest(python, rlnb.Task(id="Demo", num_envs=4)), warm=True)
    assert found[0].what == "4 envs, 200 steps"


def test_an_error_in_the_tasks_own_code_is_a_problem(python: str) -> None:
    (found,) = examine(manifest(python, rlnb.Task(id="Broken")), warm=True)
    assert found.what.splitlines()[0] == "/puck.py, line 3, in step: ValueError: no such joint"


@pytest.mark.usefixtures("root")
def test_what_has_no_isaac_lab_task_has_no_env_to_step() -> None:
    assert rlnb.check("Echo", library="echo", deep=True) == []
