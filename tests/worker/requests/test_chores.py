"""Chores between calls, without a simulator."""

from __future__ import annotations

import pytest

from rlnb import plugins
from rlnb.spec import Task
from rlnb.tasks import requests
from rlnb.worker.requests import chores as module
from rlnb.worker.requests.chores import Chores
from rlnb.worker.requests.tuner import KeptEnv

DEMO, OTHER = Task(id="Demo"), Task(id="Other")


@pytest.fixture
def chores(monkeypatch: pytest.MonkeyPatch) -> Chores:
    """Chores that have no library to import."""
    monkeypatch.setattr(plugins, "libraries", dict)
    return Chores(KeptEnv())


@pytest.fixture
def rehearsals(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Tasks that were rehearsed."""
    ids: list[str] = []
    monkeypatch.setattr(module, "rehearse", lambda task, any_runtime: ids.append(task.id))
    return ids


def test_a_task_is_rehearsed_once_its_card_was_requested(chores: Chores, rehearsals: list[str]) -> None:
    assert not chores.do_one(), "no chore before the first request"
    chores.note(requests.Card(task=DEMO))
    assert chores.left
    assert chores.do_one()
    chores.note(requests.Card(task=DEMO))
    assert not chores.do_one(), "the task was rehearsed already"
    assert rehearsals == ["Demo"]


def test_a_task_that_was_made_for_a_request_needs_no_rehearsal(chores: Chores, rehearsals: list[str]) -> None:
    chores.note(requests.Card(task=DEMO))
    chores.note(requests.Card(task=OTHER))
    chores.note(requests.Compile(task=DEMO))
    chores.note(requests.Ping())
    while chores.do_one():
        pass
    assert rehearsals == ["Other"]


def test_a_rehearsal_that_fails_is_for_the_log_only(
    chores: Chores, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(task: Task, any_runtime: bool) -> None:
        raise ValueError(f"{task.id} has no robot")

    monkeypatch.setattr(module, "rehearse", fail)
    chores.note(requests.Card(task=DEMO))
    assert chores.do_one()
    assert "Demo has no robot" in capsys.readouterr().err
