"""The kernel's end of a warm worker: a node agent with a living worker below it, spoken to in JSON lines."""

from __future__ import annotations

import itertools
import json
import logging
import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from rlnb.errors import RlnbError, WorkerError
from rlnb.launch.command import interpreter
from rlnb.launch.hosted import handle_of
from rlnb.spec import JOB_TYPES
from rlnb.storage import files

logger = logging.getLogger(__name__)

SETTLED_AFTER = 3
"""Requests that make an env, after which its caches are filled too: from here on memory should stay what it is."""
MAKES_ENV = ("preview", "budget", "compile", *(kind for kind, job_type in JOB_TYPES.items() if job_type.in_simulator))
"""Requests that make an env."""
GROWTH = 1.25
"""Growth of memory that is worth a word."""


class SimulatorProcess:
    """One living worker process. It ends with this process, unless a run has adopted it.

    Args:
        python: Command of the worker's interpreter; None is this one.
        asset_root: Explicit asset root; fixed for the life of the process.
        log: Where the worker's output goes.
    """

    def __init__(self, python: str | None, asset_root: str | None, log: Path) -> None:
        self.python, self.asset_root, self.log = python, asset_root, log
        self._ids = itertools.count()
        self.answered = 0
        """Requests that have been answered."""
        self._made = 0
        self._settled_bytes = 0
        self._hangs = ""
        self._lock = threading.Lock()
        command = interpreter(python)
        if shutil.which(command[0]) is None:
            raise RlnbError(
                f"There is no {command[0]!r} to start the worker with. python=None is this one, {sys.executable}."
            )
        log.parent.mkdir(parents=True, exist_ok=True)
        argv = [sys.executable, "-P", "-m", "rlnb.node", "--warm", str(log)]
        argv += [*command, "-m", "rlnb.worker", "serve"]
        self._agent = subprocess.Popen(
            argv,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **({"RLNB_ASSET_ROOT": asset_root} if asset_root else {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt of the kernel is not meant for it
        )

    @property
    def alive(self) -> bool:
        return self._agent.poll() is None

    @property
    def pid(self) -> int:
        """Process id of the worker itself, or of its agent while that starts it."""
        below = self._below()
        return below[0].pid if below else self._agent.pid

    @property
    def memory_bytes(self) -> int:
        """Resident memory of the worker and what it has started."""
        total = 0
        for process in self._below():
            try:
                total += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        return total

    def _below(self) -> list[psutil.Process]:
        try:
            return psutil.Process(self._agent.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    @property
    def busy(self) -> bool:
        return self._lock.locked()

    def request(self, verb: str, *, meanwhile: Callable[[Any], None] | None = None, **payload: Any) -> Any:
        """Have the worker do something and return its answer.

        Args:
            verb: What to do.
            meanwhile: Called with what the worker has to tell before it is done.
            payload: The request's own values, as JSON.

        Raises:
            RlnbError: The worker refused, with the reason.
            WorkerError: The task's own code failed, or the worker ended; with traceback or log.
        """
        with self._lock:
            number = next(self._ids)
            self._send({"id": number, "verb": verb, **payload})
            assert self._agent.stdout is not None
            while line := self._agent.stdout.readline():
                reply = json.loads(line)
                if "silent" in reply:
                    logger.warning(
                        "The worker has written nothing for minutes while it starts. Its log shows where each of its "
                        "threads is: %s",
                        reply["silent"],
                    )
                if "hangs" in reply:
                    self._hangs = reply["hangs"]
                if reply.get("id") != number:  # an interrupted request may still be answered
                    continue
                if "meanwhile" in reply:
                    if meanwhile is not None:
                        meanwhile(reply["meanwhile"])
                else:
                    self.answered += 1
                    self._watch_memory(verb, settled=reply["settled"])
                    return self._value(reply)
            self._agent.wait()
            raise self._ended()

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._agent.stdin is not None
        try:
            self._agent.stdin.write(json.dumps(message).encode() + b"\n")
            self._agent.stdin.flush()
        except BrokenPipeError as exc:
            raise self._ended() from exc

    def _ended(self) -> WorkerError:
        """Return what to say of a worker that is gone."""
        assert self._agent.stdout is not None
        for line in self._agent.stdout:  # nobody may have read why
            self._hangs = json.loads(line).get("hangs", self._hangs)
        if self._hangs:
            return WorkerError(f"{self._hangs}\n{files.tail(self.log)}")
        words = f"The warm worker ended. Its log, {self.log}, ends with:\n{files.tail(self.log)}"
        if self.answered:
            return WorkerError(words)
        chosen = f" --python {shlex.quote(self.python)}" if self.python else ""
        return WorkerError(f"{words}\nIt never answered. What its interpreter lacks: rlnb doctor{chosen}")

    def _watch_memory(self, verb: str, *, settled: bool) -> None:
        """Say so when the process has grown since all that it loads was loaded."""
        if not (settled and verb in MAKES_ENV):
            return
        self._made += 1
        held = self.memory_bytes
        if self._made == SETTLED_AFTER:
            self._settled_bytes = held
        elif self._made > SETTLED_AFTER and held > GROWTH * self._settled_bytes:
            logger.warning(
                "The warm simulator has grown from %.2f to %.2f GiB over %d requests; rlnb.simulator().restart() "
                "frees it.",
                self._settled_bytes / 2**30,
                held / 2**30,
                self._made - SETTLED_AFTER,
            )
            self._settled_bytes, self._made = held, SETTLED_AFTER

    @staticmethod
    def _value(reply: Mapping[str, Any]) -> Any:
        if reply["ok"]:
            return reply["value"]
        if reply["kind"] == "rlnb":
            raise RlnbError(reply["error"].partition(": ")[2])
        raise WorkerError(f"{reply['error']}\n\n{reply['detail']}")

    def adopt(self, job_dir: Path) -> Mapping[str, Any]:
        """Hand the process over to a job; return the handle of its agent. This object is then done with."""
        with self._lock:
            self._send({"adopt": str(job_dir)})
            assert self._agent.stdout is not None
            while line := self._agent.stdout.readline():
                if json.loads(line).get("adopted"):
                    shutil.rmtree(self.log.parent, ignore_errors=True)  # the run's own log goes on
                    return handle_of(self._agent.pid)
            raise WorkerError(f"The warm worker ended before the run could have it. Log: {self.log}")

    def close(self) -> None:
        """End the worker; its log goes with it, unless it had ended by itself."""
        if not self.alive:
            return
        assert self._agent.stdin is not None
        self._agent.stdin.close()
        try:
            self._agent.wait(5)
        except subprocess.TimeoutExpired:
            self._agent.kill()
        shutil.rmtree(self.log.parent, ignore_errors=True)
