"""The kernel's end of a warm worker: a node agent with a living worker below it, spoken to in JSON lines."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlnb.errors import RlnbError, WorkerError
from rlnb.launch.command import interpreter
from rlnb.launch.local import handle_of
from rlnb.records import files


class WarmWorker:
    """One living worker process. It ends with this process, unless a run has adopted it.

    Args:
        python: Command of the worker's interpreter; None is this one.
        asset_root: Explicit asset root; fixed for the life of the process.
        log: Where the worker's output goes.
    """

    def __init__(self, python: str | None, asset_root: str | None, log: Path) -> None:
        self.python, self.asset_root, self.log = python, asset_root, log
        self._ids = itertools.count()
        self._lock = threading.Lock()
        log.parent.mkdir(parents=True, exist_ok=True)
        argv = [sys.executable, "-m", "rlnb.job", "--warm", str(log)]
        argv += [*interpreter(python), "-m", "rlnb.worker", "serve"]
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
    def busy(self) -> bool:
        return self._lock.locked()

    def request(self, verb: str, **payload: Any) -> Any:
        """Have the worker do something and return its answer.

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
                if reply.get("id") == number:  # an interrupted request may still be answered
                    return self._value(reply)
            self._agent.wait()
            raise WorkerError(f"The warm worker ended. Its log, {self.log}, ends with:\n{files.tail(self.log)}")

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._agent.stdin is not None
        try:
            self._agent.stdin.write(json.dumps(message).encode() + b"\n")
            self._agent.stdin.flush()
        except BrokenPipeError as exc:
            raise WorkerError(
                f"The warm worker ended. Its log, {self.log}, ends with:\n{files.tail(self.log)}"
            ) from exc

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
                    return handle_of(self._agent.pid)
            raise WorkerError(f"The warm worker ended before the run could have it. Log: {self.log}")

    def close(self) -> None:
        """End the worker."""
        assert self._agent.stdin is not None
        self._agent.stdin.close()
        try:
            self._agent.wait(5)
        except subprocess.TimeoutExpired:
            self._agent.kill()
