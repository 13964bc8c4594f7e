"""The warm worker: one living process with torch, Isaac Lab and Warp loaded, that answers requests.

Requests are JSON lines on stdin, replies JSON lines on a pipe of their own, since stdout is the log.
One request at a time. A request to train hands the process over to that run: it is the last one.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rlnb import plugins
from rlnb.records.layout import JobDir
from rlnb.spec import Task, from_json

Verb = Callable[[Mapping[str, Any]], Any]
IDLE_S = 0.2
"""Silence after which the time is used to warm up."""


def serve(reply_fd: int) -> int:
    """Answer requests until stdin ends; return the exit status."""
    requests = sys.stdin.buffer
    to_warm: Task | None = None
    _load()
    while True:
        if to_warm is not None and not select.select([requests], [], [], IDLE_S)[0]:
            _make_once(to_warm)
            to_warm = None
        line = requests.readline()
        if not line:
            return 0
        request = json.loads(line)
        if "adopt" in request:
            return _become(request)
        reply = _answer(request)
        os.write(reply_fd, json.dumps(reply).encode() + b"\n")
        if request["verb"] == "card" and reply["ok"]:
            to_warm = from_json(Task, request["task"])


def _answer(request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        value = _VERBS[request["verb"]](request)
    except (Exception, SystemExit) as exc:
        # The whole point of a warm process is to survive what a cell throws at it, and Isaac Lab
        # exits where Isaac Sim would be needed.
        return {
            "id": request["id"],
            "ok": False,
            "error": f"{type(exc).__name__}: {exc}",
            "kind": "rlnb" if type(exc).__module__ == "rlnb.errors" else "other",
            "detail": traceback.format_exc(),
        }
    return {"id": request["id"], "ok": True, "value": value}


def _become(request: Mapping[str, Any]) -> int:
    """Turn into the worker of a run: its log, its environment, its exit status."""
    from rlnb.worker.__main__ import work

    job = JobDir(Path(request["adopt"]))
    log = os.open(job.log(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(log, 1)
    os.dup2(log, 2)
    return work("train", job.path)


def _card(request: Mapping[str, Any]) -> Any:
    from rlnb.worker.resolve import card

    return card(from_json(Task, request["task"]), request.get("asset_root"))


def _tasks(request: Mapping[str, Any]) -> list[str]:
    from rlnb.worker import sim

    sim.start(request.get("asset_root"))
    return sim.task_ids()


def _preview(request: Mapping[str, Any]) -> Any:
    from rlnb.worker.preview import preview

    return preview(from_json(Task, request["task"]), request)


def _evaluate(request: Mapping[str, Any]) -> None:
    from rlnb.worker.evaluate import evaluate

    evaluate(Path(request["job_dir"]))


def _export(request: Mapping[str, Any]) -> None:
    from rlnb.worker.export import export

    export(Path(request["job_dir"]))


def _ping(request: Mapping[str, Any]) -> dict[str, Any]:
    return {"pid": os.getpid()}


_VERBS: dict[str, Verb] = {
    "card": _card,
    "tasks": _tasks,
    "preview": _preview,
    "evaluate": _evaluate,
    "export": _export,
    "ping": _ping,
}


def _load() -> None:
    """Import what every request needs; the asset root is fixed with it."""
    from rlnb.worker import sim

    sim.start(os.environ.get("RLNB_ASSET_ROOT") or None)


def _make_once(task: Task) -> None:
    """Make and close a small env of the task, and import the libraries: the second time is quick."""
    import dataclasses

    from rlnb.worker.train import environment

    for library in plugins.libraries().values():
        if library.simulator:
            with contextlib.suppress(Exception):  # not installed here, or broken: said where it is asked for
                plugins.load(library.backend)
    try:
        with environment(dataclasses.replace(task, num_envs=2), None) as (env, _):
            env.reset()
    except (Exception, SystemExit):
        # Only a rehearsal: the request that meets the same error reports it.
        sys.stderr.write(traceback.format_exc())
