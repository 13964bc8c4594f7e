"""A tracker checks the worker's interpreter, and starts and ends the process that follows a run."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from rlnb import Task
from rlnb.plugin import Manifest
from rlnb.tracking import Tracker, tracker

BARE = f"{getattr(sys, '_base_executable', sys.executable)} -S"
"""A Python without any package."""


def make(**values: object) -> Tracker:
    arguments = {
        "name": "Mine",
        "tags": ("mine", "mine-too"),
        "module": "mine",
        "packages": ("rlnb",),
        "fix": "Fix {python}.",
    }
    return Tracker(**{**arguments, **values})  # type: ignore[arg-type]


def manifest(*tags: str, python: str | None = None) -> Manifest:
    return Manifest(run_id="r", created="", task=Task(id="Echo"), library="echo", tags=tags, python=python)


def write_module(folder: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "mine.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(folder))


def test_a_run_is_followed_if_it_has_one_of_the_tags() -> None:
    assert make().follows(manifest("other", "mine-too"))
    assert not make().follows(manifest("other", "min"))


def test_a_run_without_a_tag_is_neither_checked_nor_followed(tmp_path: Path) -> None:
    mine = make()
    assert mine.check(manifest(python="/no/such/python")) == []
    mine.start(tmp_path, manifest())
    mine.finish()


def test_a_sound_interpreter_is_no_problem() -> None:
    assert make().check(manifest("mine"), code="import json") == []


def test_a_missing_package_is_a_problem_with_the_fix_of_the_tracker() -> None:
    (problem,) = make(packages=("rlnb", "no-such-package")).check(manifest("mine"))
    assert problem.what.endswith("No package metadata was found for no-such-package")
    assert problem.what.startswith(f"Mine cannot follow this run from {sys.executable}: ")
    assert problem.fix == f"Fix {sys.executable}."
    (problem,) = make().check(manifest("mine", python=BARE))
    assert problem.fix == f"Fix {BARE}."


def test_an_error_of_the_code_is_a_problem_with_its_own_fix() -> None:
    (problem,) = make().check(manifest("mine"), code="raise ValueError('no key')", fix="Log in.")
    assert problem.what.endswith("ValueError: no key")
    assert problem.fix == "Log in."


def test_an_interpreter_that_cannot_be_started_is_a_problem() -> None:
    (problem,) = make().check(manifest("mine", python="/no/such/python"))
    assert "No such file" in problem.what


def test_a_slow_check_is_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracker, "CHECK_S", 0.3)
    assert make().check(manifest("mine"), code="import time; time.sleep(60)") == []


def test_the_process_gets_the_folder_and_the_options_and_lives_until_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import sys; sys.stdin.read(); open(sys.argv[1] + '/argv', 'w').write(' '.join(sys.argv[1:]))"
    write_module(tmp_path, code, monkeypatch)
    mine = make()
    mine.start(tmp_path, manifest("mine"), "offline")
    assert not (tmp_path / "argv").exists()
    mine.finish()
    assert (tmp_path / "argv").read_text() == f"{tmp_path} offline"


def test_a_process_that_does_not_end_is_a_warning_with_the_command_that_sends_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tracker, "FINISH_S", 0.3)
    write_module(tmp_path, "import time; time.sleep(3)", monkeypatch)
    mine = make()
    mine.start(tmp_path, manifest("mine"), "offline")
    with caplog.at_level(logging.WARNING):
        mine.finish()
    assert f"{sys.executable} -P -m mine {tmp_path} offline </dev/null" in caplog.text


def test_a_process_that_cannot_be_started_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    mine = make()
    mine.start(tmp_path, manifest("mine"))
    mine.finish()
    assert "Mine does not follow this run" in caplog.text
