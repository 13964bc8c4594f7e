"""Answers to calls. No simulator; the loop: tests/simulation/test_process."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlnb.configs.card import AssetRoot
from rlnb.hooks import plugins
from rlnb.protocol import requests
from rlnb.protocol.messages import Answer, Call, Failure, call, error_of, line
from rlnb.spec import Task
from rlnb.version import untested
from rlnb.worker.isaac.sources import Sources
from rlnb.worker.requests import serve
from rlnb.worker.requests.serve import Exchange
from rlnb.worker.requests.tuner import KeptEnv
from rlnb.worker.requests.warmup import Chores

DEMO = Task(id="Demo")


@pytest.fixture
def chores(monkeypatch: pytest.MonkeyPatch) -> Chores:
    """Chores that have no library to import."""
    monkeypatch.setattr(plugins, "libraries", dict)
    return Chores(KeptEnv())


def reply(message: Call, chores: Chores) -> Answer | Failure:
    root = AssetRoot(path="/assets", reason="set")
    exchange = Exchange(lambda _: None, contextlib.ExitStack(), Sources(), KeptEnv(), root)
    return serve.reply(message, exchange, chores)


def test_every_request_has_a_handler() -> None:
    assert {*serve._HANDLERS} == {*requests.ALL}
    assert {*serve.KEEPS_ENV} <= {*requests.BY_VERB}


def test_a_request_without_an_answer_is_answered_too(chores: Chores) -> None:
    assert reply(call(3, requests.Ping()), chores) == Answer(id=3, value=None)


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


def test_an_error_beside_an_untested_isaac_lab_says_so_in_the_notebook(
    chores: Chores, install: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise ImportError("cannot import name 'Scan' from 'isaaclab.app'")

    install("3.1.0")
    monkeypatch.setattr(serve, "_HANDLERS", {**serve._HANDLERS, requests.Ping: fails})
    failure = reply(call(1, requests.Ping()), chores)
    assert isinstance(failure, Failure)
    assert untested("3.1.0") in str(error_of(failure))


def test_a_request_that_made_an_env_leaves_its_memory_to_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    cuda = SimpleNamespace(is_initialized=lambda: True, empty_cache=lambda: events.append("memory is free"))
    warp = SimpleNamespace(get_cuda_devices=list, synchronize=lambda: None)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))  # type: ignore[misc]
    monkeypatch.setitem(sys.modules, "warp", warp)  # type: ignore[misc]

    def make(request: requests.Compile, exchange: Exchange) -> None:
        exchange.after.callback(events.append, "env is closed")

    monkeypatch.setattr(serve, "_HANDLERS", {**serve._HANDLERS, requests.Compile: make})
    monkeypatch.setattr(serve, "_load", lambda: AssetRoot(path="/assets", reason="set"))
    reader, writer = os.pipe()
    for number, request in enumerate((requests.Ping(), requests.Compile(task=DEMO), requests.Ping())):
        os.write(writer, line(call(number, request)))
    os.close(writer)
    with os.fdopen(reader) as calls:
        monkeypatch.setattr(sys, "stdin", calls)
        assert serve.serve(tmp_path / "replies") == 0
    replies = [json.loads(text) for text in (tmp_path / "replies").read_text().splitlines()]
    assert [reply.get("id") for reply in replies] == [None, 0, 1, 2]
    assert events == ["env is closed", "memory is free"]
