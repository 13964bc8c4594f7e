"""Answers to calls. No simulator; the loop: tests/simulation/test_process."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rlnb
from rlnb.configs.card import AssetRoot
from rlnb.hooks import plugins
from rlnb.protocol import requests
from rlnb.protocol.messages import Answer, Call, Failure, call, error_of, line
from rlnb.protocol.requests import RunJobThere
from rlnb.protocol.wire import Lines
from rlnb.records.layout import JobDir
from rlnb.spec import Job, Result, Task
from rlnb.storage import files
from rlnb.version import untested
from rlnb.worker.isaac.sources import Sources
from rlnb.worker.requests import serve
from rlnb.worker.requests.serve import RequestLoop, SideCalls, do_job_there
from rlnb.worker.requests.tuner import TunerEnv
from rlnb.worker.requests.warmup import Warmup

DEMO = Task(id="Demo")


@pytest.fixture
def warm_up(monkeypatch: pytest.MonkeyPatch) -> Warmup:
    """A warm-up that has no library to import."""
    monkeypatch.setattr(plugins, "libraries", dict)
    return Warmup(TunerEnv())


def reply(message: Call, warm_up: Warmup) -> Answer | Failure:
    root = AssetRoot(path="/assets", reason="set")
    none = SideCalls(Lines(-1), io.BytesIO())
    loop = RequestLoop(lambda _: None, contextlib.ExitStack(), Sources(), TunerEnv(), root, none)
    return serve.reply(message, loop, warm_up)


def test_every_request_has_a_handler() -> None:
    assert {*serve._HANDLERS} == {*requests.ALL}
    assert {*serve.KEEPS_ENV} <= {*requests.BY_VERB}


def test_a_request_without_an_answer_is_answered_too(warm_up: Warmup) -> None:
    assert reply(call(3, requests.Ping()), warm_up) == Answer(id=3, value=None)


def test_a_step_of_an_env_that_is_not_open_is_refused_with_a_fix(warm_up: Warmup) -> None:
    failure = reply(call(1, requests.Advance(steps=2)), warm_up)
    assert isinstance(failure, Failure)
    assert failure.kind == "RlnbError"
    assert failure.error.endswith("Run rlnb.tune again.")


def test_a_push_without_a_view_is_refused(warm_up: Warmup) -> None:
    failure = reply(call(1, requests.Push(velocity=(1.0,))), warm_up)
    assert isinstance(failure, Failure)
    assert failure.error == "There is no view. It has ended, so call rlnb.view again."


def test_calls_about_a_view_are_answered_and_any_other_call_waits() -> None:
    reader, writer = os.pipe()
    replies, done = io.BytesIO(), []
    with open(reader, "rb") as pipe, open(writer, "wb", buffering=0) as kernel:
        calls = Lines(pipe.fileno())
        side_calls = SideCalls(calls, replies)
        assert not side_calls.answer(done.append), "nothing has come"
        kernel.write(line(call(4, requests.Hold(name="base_velocity", value=None))))
        kernel.write(line(Call(id=5, verb="push", payload={"velocity": "fast"})))
        assert not side_calls.answer(done.append)
        kernel.write(line(call(6, requests.Ping())))
        assert side_calls.answer(done.append)
        assert calls.next() == line(call(6, requests.Ping())).rstrip(), "the loop gets it"
        kernel.close()
        assert side_calls.answer(done.append), "the end of the input"
    assert done == [requests.Hold(name="base_velocity", value=None)]
    answer, failure = map(json.loads, replies.getvalue().splitlines())
    assert answer == {"id": 4, "value": None}
    assert (failure["id"], failure["kind"]) == (5, "RlnbError")


def test_an_unknown_verb_or_field_is_a_failure_that_does_not_end_the_process(warm_up: Warmup) -> None:
    unknown = reply(Call(id=1, verb="pong", payload={}), warm_up)
    assert isinstance(unknown, Failure)
    assert unknown.kind == "NotFoundError"
    assert "Did you mean 'ping'?" in unknown.error
    newer = reply(Call(id=2, verb="advance", payload={"steps": 1, "speed": 2}), warm_up)
    assert isinstance(newer, Failure)
    assert "Advance has no field 'speed'" in newer.error


def test_an_exit_of_the_tasks_code_is_a_failure_that_does_not_end_the_process(
    warm_up: Warmup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave(*_: Any) -> None:
        raise SystemExit("Isaac Sim is needed")

    monkeypatch.setattr(serve, "_HANDLERS", {**serve._HANDLERS, requests.Ping: leave})
    failure = reply(call(1, requests.Ping()), warm_up)
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.error) == ("", "SystemExit: Isaac Sim is needed")


def test_an_error_beside_an_untested_isaac_lab_says_so_in_the_notebook(
    warm_up: Warmup, install: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise ImportError("cannot import name 'Scan' from 'isaaclab.app'")

    install("3.1.0")
    monkeypatch.setattr(serve, "_HANDLERS", {**serve._HANDLERS, requests.Ping: fails})
    failure = reply(call(1, requests.Ping()), warm_up)
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

    def make(request: requests.Compile, loop: RequestLoop) -> None:
        loop.after.callback(events.append, "env is closed")

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


# -- job there -------------------------------------------------------------------------------------------------------


OPTIONS = {"episodes": 4, "num_envs": 4, "seed": 1, "deterministic": True, "checkpoint": "logs/model_4.json"}


def request(run: rlnb.Run, kind: str, out: Path, **changes: object) -> RunJobThere:
    out.mkdir()
    job_dir = run.path / "jobs" / f"1-{kind}"
    job = Job(kind=kind, options={**OPTIONS, **changes})  # type: ignore[arg-type, dict-item]
    return RunJobThere(kind=kind, job_dir=str(job_dir), job=job, out=str(out))  # type: ignore[arg-type]


def test_the_result_is_the_last_copy(root: Path, tmp_path: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=5).wait(60)
    answer = do_job_there(request(run, "evaluate", tmp_path / "out"))
    assert [*answer.files] == ["jobs/1-evaluate/evaluation.json", "jobs/1-evaluate/result.json"]
    for name, copy in answer.files.items():
        assert Path(copy).parent == tmp_path / "out"
        assert Path(copy).read_bytes() == (run.path / name).read_bytes()


def test_a_job_that_fails_leaves_no_folder(root: Path, tmp_path: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=5).wait(60)
    with pytest.raises(FileNotFoundError):
        do_job_there(request(run, "evaluate", tmp_path / "out", checkpoint="logs/gone.json"))
    assert not (run.path / "jobs" / "1-evaluate").exists()


def test_films_and_exports_are_copied(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=5).wait(60)

    def export(kind: str, folder: Path) -> None:
        for name in ("exports/policy.onnx", f"media/{folder.name}.mp4", "media/0-train.mp4"):
            (run.path / name).parent.mkdir(exist_ok=True)
            (run.path / name).write_text(name)
        result = Result(outcome="completed", values={"onnx": "exports/policy.onnx"})
        files.write_once(JobDir(folder).result, result)

    monkeypatch.setattr(serve, "do", export)
    answer = do_job_there(request(run, "export", tmp_path / "out"))
    assert [*answer.files] == ["media/1-export.mp4", "exports/policy.onnx", "jobs/1-export/result.json"]
