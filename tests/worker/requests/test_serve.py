"""Answers to calls, and chores between calls. No simulator; the loop: tests/simulation/test_process."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from rlnb.spec import Task
from rlnb.tasks import requests
from rlnb.tasks.card import AssetRoot
from rlnb.tasks.messages import Answer, Call, Failure, call
from rlnb.worker.requests import serve
from rlnb.worker.requests.serve import Chores, Exchange
from rlnb.worker.requests.tuner import KeptEnv

DEMO, OTHER = Task(id="Demo"), Task(id="Other")


@pytest.fixture
def chores(monkeypatch: pytest.MonkeyPatch) -> Chores:
    """Chores that have no library to import."""
    monkeypatch.setattr(serve.plugins, "libraries", dict)
    return Chores(KeptEnv())


@pytest.fixture
def rehearsals(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Tasks that were rehearsed."""
    ids: list[str] = []
    monkeypatch.setattr(serve, "_make", lambda task: ids.append(task.id))
    return ids


def reply(message: Call, chores: Chores) -> Answer | Failure:
    exchange = Exchange(lambda _: None, contextlib.ExitStack(), KeptEnv(), AssetRoot(path="/assets", reason="set"))
    return serve.reply(message, exchange, chores)


def test_every_request_has_a_handler() -> None:
    assert {*serve._HANDLERS} == {*requests.ALL}
    assert {*serve.KEEPS_ENV} <= {*requests.BY_VERB}


def test_a_request_without_an_answer_is_answered_too(chores: Chores) -> None:
    assert reply(call(3, requests.Ping()), chores) == Answer(id=3, value=None, settled=True)


def test_a_step_of_an_env_that_is_not_open_is_refused_with_a_fix(chores: Chores) -> None:
    failure = reply(call(1, requests.Advance(steps=2)), chores)
    assert isinstance(failure, Failure)
    assert failure.kind == "RlnbError"
    assert failure.error.endswith("Run rlnb.tune again.")


def test_an_unknown_verb_or_field_is_a_failure_that_does_not_end_the_process(chores: Chores) -> None:
    unknown = reply(Call(id=1, verb="pong", payload={}), chores)
    assert isinstance(unknown, Failure)
    assert unknown.kind == "NotFoundError"
    assert "Did you mean 'ping'?" in unknown.error
    newer = reply(Call(id=2, verb="advance", payload={"steps": 1, "speed": 2}), chores)
    assert isinstance(newer, Failure)
    assert "Advance has no field 'speed'" in newer.error


def test_an_exit_of_the_tasks_code_is_a_failure_that_does_not_end_the_process(
    chores: Chores, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave(*_: Any) -> None:
        raise SystemExit("Isaac Sim is needed")

    monkeypatch.setattr(serve, "_HANDLERS", {**serve._HANDLERS, requests.Ping: leave})
    failure = reply(call(1, requests.Ping()), chores)
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.error) == ("", "SystemExit: Isaac Sim is needed")


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
    def fail(task: Task) -> None:
        raise ValueError(f"{task.id} has no robot")

    monkeypatch.setattr(serve, "_make", fail)
    chores.note(requests.Card(task=DEMO))
    assert chores.do_one()
    assert "Demo has no robot" in capsys.readouterr().err


def test_an_answer_tells_whether_chores_are_left(chores: Chores, rehearsals: list[str]) -> None:
    chores.note(requests.Card(task=DEMO))
    assert not reply(call(1, requests.Ping()), chores).settled
    chores.do_one()
    assert reply(call(2, requests.Ping()), chores).settled
