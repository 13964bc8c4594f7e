"""The warm worker: one living process with torch, Isaac Lab and Warp loaded, that answers requests.

Requests are JSON lines on stdin, replies JSON lines on a pipe of their own, since stdout is the log.
One request at a time. A request to train hands the process over to that run: it is the last one.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import select
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlnb import plugins
from rlnb.records.layout import JobDir
from rlnb.spec import JOB_TYPES, Task
from rlnb.storage.serial import from_json
from rlnb.worker.requests.tuner import Studio

IDLE_S = 0.2
"""Silence after which the time is used to warm up."""


@dataclass
class Exchange:
    """What a request can do beside returning its answer."""

    tell: Callable[[Any], None]
    """Send something at once: a first picture, say."""
    after: contextlib.ExitStack
    """What is left once the answer is sent: an env is closed while the person already looks at its picture."""
    studio: Studio
    """The env that is kept from request to request."""


Verb = Callable[[Mapping[str, Any], Exchange], Any]


def serve(reply_fd: int) -> int:
    """Answer requests until stdin ends; return the exit status."""
    requests = sys.stdin.buffer
    _load()
    _send(reply_fd, {"ready": True})
    studio = Studio()
    chores = Chores(studio)
    while True:
        while not select.select([requests], [], [], IDLE_S)[0] and chores.do_one():
            pass
        line = requests.readline()
        if not line:
            return 0
        request = json.loads(line)
        if request.get("verb") not in KEEPS_ENV:  # a process has one simulation at a time
            with _logged():
                studio.close()
        if "adopt" in request:
            return _become(request)
        chores.noted(request)
        tell = functools.partial(_tell, reply_fd, request["id"])
        exchange = Exchange(tell, contextlib.ExitStack(), studio)
        _send(reply_fd, {**_answer(request, exchange), "settled": not chores.left})
        with _logged():
            exchange.after.close()


@contextlib.contextmanager
def _logged() -> Iterator[None]:
    """What an env says as it is closed is for the log: nobody asked for it."""
    try:
        yield
    except Exception:
        sys.stderr.write(traceback.format_exc())


def _send(reply_fd: int, message: Mapping[str, Any]) -> None:
    os.write(reply_fd, json.dumps(message).encode() + b"\n")


def _tell(reply_fd: int, number: int, value: Any) -> None:
    _send(reply_fd, {"id": number, "meanwhile": value})


def _answer(request: Mapping[str, Any], exchange: Exchange) -> dict[str, Any]:
    try:
        value = _VERBS[request["verb"]](request, exchange)
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


class Chores:
    """What is done while nobody asks for anything, so that the second time is quick: tasks that are new here are
    rehearsed, libraries imported. In pieces, since a request has to wait for the end of one."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self._seen: set[str] = set()
        self._tasks: dict[str, Task] = {}
        self._libraries = [library.backend for library in plugins.libraries().values() if library.simulator]

    @property
    def left(self) -> bool:
        """Whether there is something to do."""
        return bool(self._tasks or self._libraries)

    def noted(self, request: Mapping[str, Any]) -> None:
        """Note the task of a request: one whose card is asked for may be made next."""
        if request["verb"] == "card" and request["task"]["id"] not in self._seen:
            self._tasks[request["task"]["id"]] = from_json(Task, request["task"])
        elif request["verb"] in ("preview", "compile"):
            self._tasks.pop(request["task"]["id"], None)
        if "task" in request:
            self._seen.add(request["task"]["id"])

    def do_one(self) -> bool:
        """Do one thing; return whether there was one. Nothing is done before somebody is interested in a task."""
        if not (self._seen and self.left):
            return False
        try:
            if self._tasks and not self._studio.is_open:
                _make(self._tasks.pop(next(iter(self._tasks))))
            elif self._libraries:
                plugins.load(self._libraries.pop(0))
                gc.freeze()
            else:
                return False
        except (Exception, SystemExit):
            # Only a rehearsal: the request that meets the same error reports it.
            sys.stderr.write(traceback.format_exc())
        return True


def _become(request: Mapping[str, Any]) -> int:
    """Turn into the worker of a run: its log, its environment, its exit status."""
    from rlnb.worker.jobs.job import work

    job = JobDir(Path(request["adopt"]))
    log = os.open(job.log(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(log, 1)
    os.dup2(log, 2)
    return work("train", job.path)


def _card(request: Mapping[str, Any], exchange: Exchange) -> Any:
    from rlnb.worker.requests.card import card

    return card(from_json(Task, request["task"]), request.get("asset_root"))


def _tasks(request: Mapping[str, Any], exchange: Exchange) -> list[str]:
    from rlnb.worker.isaac import isaaclab

    isaaclab.start(request.get("asset_root"))
    return isaaclab.task_ids()


def _preview(request: Mapping[str, Any], exchange: Exchange) -> Any:
    from rlnb.worker.requests.preview import preview

    return preview(from_json(Task, request["task"]), request, tell=exchange.tell, after=exchange.after)


def _budget(request: Mapping[str, Any], exchange: Exchange) -> Any:
    from rlnb.worker.requests.budget import budget

    return budget(from_json(Task, request["task"]), request, exchange.tell)


def _job(request: Mapping[str, Any], exchange: Exchange) -> None:
    from rlnb.worker.jobs.job import do

    do(request["verb"], Path(request["job_dir"]))


def _compile(request: Mapping[str, Any], exchange: Exchange) -> dict[str, Any]:
    import time

    import warp

    begun = time.monotonic()
    _make(from_json(Task, request["task"]))
    cache = Path(str(warp.config.kernel_cache_dir))
    size = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())
    return {"seconds": time.monotonic() - begun, "cache": str(cache), "cache_mib": size / 2**20}


def _view(request: Mapping[str, Any], exchange: Exchange) -> None:
    from rlnb.worker.requests.viewer import show

    show(from_json(Task, request["task"]), request, exchange.tell)


def _ping(request: Mapping[str, Any], exchange: Exchange) -> dict[str, Any]:
    return {"pid": os.getpid()}


def _mirror(request: Mapping[str, Any], exchange: Exchange) -> dict[str, Any]:
    import dataclasses

    from rlnb.worker.assets import root as assets
    from rlnb.worker.assets.mirror import mirror
    from rlnb.worker.isaac import isaaclab
    from rlnb.worker.isaac.env import configured

    root = isaaclab.start(request.get("asset_root"))
    names: set[str] = set()
    for task in request["tasks"]:
        names |= assets.named_in(configured(from_json(Task, task), None)[1], root)
    return {"root": root.path, **dataclasses.asdict(mirror(names, root, Path(request["folder"])))}


def _open(request: Mapping[str, Any], exchange: Exchange) -> dict[str, Any]:
    return exchange.studio.open(from_json(Task, request["task"]), request)


def _advance(request: Mapping[str, Any], exchange: Exchange) -> dict[str, Any]:
    return exchange.studio.advance(int(request["steps"]))


def _close(request: Mapping[str, Any], exchange: Exchange) -> None:
    exchange.studio.close()


_VERBS: dict[str, Verb] = {
    "card": _card,
    "tasks": _tasks,
    "preview": _preview,
    "budget": _budget,
    **{kind: _job for kind, job_type in JOB_TYPES.items() if job_type.in_simulator},
    "view": _view,
    "compile": _compile,
    "ping": _ping,
    "open": _open,
    "advance": _advance,
    "close": _close,
    "mirror": _mirror,
}
KEEPS_ENV = ("card", "tasks", "ping", "open", "advance", "mirror")
"""Requests during which the env of the studio may live on."""


def _load() -> None:
    """Import what every request needs; the asset root is fixed with it."""
    from rlnb.worker.isaac import isaaclab

    isaaclab.start(os.environ.get("RLNB_ASSET_ROOT") or None)
    gc.freeze()  # Isaac Lab collects garbage as it closes an env: what was imported is none


def _make(task: Task) -> None:
    """Make a small env of the task, step it, look at it and close it: all kernels are then compiled and loaded."""
    import dataclasses

    from rlnb.worker.acting import actions
    from rlnb.worker.cameras.rig import Plan
    from rlnb.worker.isaac import isaaclab
    from rlnb.worker.isaac.env import environment
    from rlnb.worker.requests.preview import shoot

    plan = Plan(None, None, (64, 48))
    with environment(dataclasses.replace(task, num_envs=2), None, configure=plan.apply) as (env, _):
        env.reset()
        raw = isaaclab.task_env(env)
        plan.begin(raw)
        env.step(actions(raw, "zero"))
        shoot(raw, plan, None)
