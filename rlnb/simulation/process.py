"""The kernel's connection to the living simulator: JSON lines to and from a worker that a node agent has started.

While a request waits for its answer, the status line says why. The wait ends if the simulator shows no sign of life
for too long, or if the user interrupts it.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import psutil

from rlnb.display.status import say
from rlnb.errors import RlnbError, WorkerError, require_linux
from rlnb.launch import nvml
from rlnb.launch.command import interpreter
from rlnb.launch.hosted import handle_of
from rlnb.records.alerts import WEBHOOK
from rlnb.simulation.growth import Growth
from rlnb.spec import Json, Task
from rlnb.storage import files
from rlnb.storage.lines import Lines
from rlnb.tasks import messages, requests
from rlnb.tasks.messages import Adopted, Adoption, Answer, Call, Failure, Hangs, Meanwhile, Ready, Returned, Silent
from rlnb.tasks.place import place_in
from rlnb.tasks.request import Request, verb

logger = logging.getLogger(__name__)

MAKES_ENV = (requests.Preview, requests.Examine, requests.Budget, requests.Compile, requests.RunJob)
"""Types of the requests that make an env."""
SAY_S = 1.0
"""Seconds between two reports of what a request waits for."""
STACK_EVERY_S = 30.0
"""Seconds between two looks at where in the code the simulator is, which these reports say."""
INTERRUPTED_WITHIN_S = 4.0
"""Seconds that the simulator has to end an interrupted request. If it does not, it is ended."""

A = TypeVar("A")


class SimulatorProcess:
    """One worker process that answers requests, and that runs can borrow.

    It ends with this process. If a run has borrowed it, it ends with the run.

    Args:
        python: Command of the worker's interpreter; None is this process's interpreter.
        asset_root: Explicit asset root; fixed for the life of the process.
        log: File for the worker's output.
        gently: Whether the worker starts at a low priority.
    """

    def __init__(self, python: str | None, asset_root: str | None, log: Path, *, gently: bool = False) -> None:
        self.python, self.asset_root, self.log = python, asset_root, log
        self._ids = itertools.count()
        self.answered = 0
        """Number of requests that the worker has answered."""
        self.used_s = time.monotonic()
        """Time of the last use, on the monotonic clock."""
        self._is_lent = False
        self._growth = Growth()
        self._hangs = ""
        self._doing = ("", 0.0)
        self._settling: threading.Thread | None = None
        self._ready = Ready()
        self._lock = threading.Lock()
        require_linux("The living simulator")
        command = interpreter(python)
        if shutil.which(command[0]) is None:
            raise RlnbError(
                f"The worker's Python {command[0]!r} is missing. Use python=None for this one, {sys.executable}."
            )
        files.make_folder(log.parent)
        argv = [sys.executable, "-P", "-m", "rlnb.node", "--warm", str(log)]
        argv += [*command, "-m", "rlnb.worker", "serve", *(["--gently"] if gently else [])]
        self._agent = subprocess.Popen(
            argv,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **({"RLNB_ASSET_ROOT": asset_root} if asset_root else {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt of the kernel must not reach the agent
        )
        assert self._agent.stdout is not None
        self._lines = Lines(self._agent.stdout.fileno())

    @property
    def alive(self) -> bool:
        return not self._is_lent and self._agent.poll() is None

    @property
    def pid(self) -> int:
        """Process id of the worker, or of its agent until the worker has started."""
        return self._ready.pid or self._agent.pid

    @property
    def memory_bytes(self) -> int:
        """Resident memory of the worker and its child processes."""
        total = 0
        for process in self._below():
            try:
                total += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        return total

    @property
    def gpu_memory_bytes(self) -> int:
        """GPU memory of the worker and its child processes, as far as the driver reports it."""
        return nvml.process_memory_bytes({process.pid for process in self._below()})

    def _below(self) -> list[psutil.Process]:
        try:
            return psutil.Process(self._agent.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    @property
    def busy(self) -> bool:
        return self._lock.locked() or (self._settling is not None and self._settling.is_alive())

    def request(self, request: Request[A], *, meanwhile: Callable[[A], None] | None = None) -> A:
        """Send a request to the worker and return the answer.

        Args:
            request: The request.
            meanwhile: Called with each interim value before the answer.

        Raises:
            RlnbError: The worker refused the request. The error has the same class as in the worker.
            WorkerError: The task's own code failed or the worker ended. The error contains the traceback or the log.
        """
        with self._turn(verb(type(request))) as kept:
            number, answered = next(self._ids), False
            self._send(messages.call(number, request))
            try:
                for message in self._messages(number, request):
                    if isinstance(message, Meanwhile):
                        if meanwhile is not None:
                            meanwhile(messages.value_of(request, message.meanwhile, self._ready))
                        continue
                    answered = True
                    if message.settled and isinstance(request, MAKES_ENV):
                        self._growth.observe(self.memory_bytes)
                    if isinstance(message, Failure):
                        raise messages.error_of(message)
                    return messages.value_of(request, message.value, self._ready)
            except KeyboardInterrupt:
                if not answered:
                    self._signal(signal.SIGINT)
                    kept.append(True)  # until the call has ended; no other request may take its answer
                    self._settling = threading.Thread(target=self._end_call, args=(number,), daemon=True, name="settle")
                    self._settling.start()
                raise
            raise self._end()

    @contextlib.contextmanager
    def _turn(self, verb: str) -> Iterator[list[bool]]:
        """Wait until the requests of other threads are answered.

        Yields:
            A list. If it is not empty at the end, another thread will release the lock.
        """
        begin_s = time.monotonic()
        while not self._lock.acquire(timeout=SAY_S):
            other, since = self._doing
            say(
                f"waiting for {other!r} of this kernel, which began at {time.strftime('%X', time.localtime(since))}",
                time.monotonic() - begin_s,
            )
        self._doing = verb, time.time()
        kept: list[bool] = []
        try:
            yield kept
        finally:
            if not kept:
                self._lock.release()

    def _messages(self, number: int, request: Request[Any]) -> Iterator[Meanwhile | Answer | Failure]:
        """Yield the messages about a call as they arrive; end with the simulator.

        Raises:
            WorkerError: The simulator gave no sign of life for too long.
        """
        begin_s = life_s = looked_s = time.monotonic()
        written, place = self._written(), ""
        while True:
            while not self._lines.waiting(SAY_S):
                now_s = time.monotonic()
                if written != (written := self._written()):
                    life_s = now_s
                if self._ready.pid and request.limit_s < math.inf and now_s - looked_s >= STACK_EVERY_S:
                    place, written, looked_s = self._place(), self._written(), now_s
                doing = "the simulator is starting" if not self._ready.pid else "the simulator is busy"
                say(f"{doing}{f' in {place}' if place else ''}", now_s - begin_s)
                if now_s - life_s > request.limit_s:
                    raise self._gave_no_sign_of_life(request, place)
            text = self._lines.next()
            if text is None:
                self._agent.wait()
                return
            message = messages.message(text)
            if isinstance(message, Ready | Silent | Hangs):
                self._note(message)
            if isinstance(message, Meanwhile | Answer | Failure) and message.id == number:
                life_s = time.monotonic()
                self.answered += not isinstance(message, Meanwhile)
                yield message

    def _gave_no_sign_of_life(self, request: Request[Any], place: str) -> WorkerError:
        """End the simulator; return the error that says where it was."""
        self.kill()
        where = f" It was in {place}." if place else ""
        return WorkerError(
            f"The living simulator has written nothing for {request.limit_s:.0f} s while it worked on "
            f"{verb(type(request))!r}, and was ended.{where} The next request starts another one."
        )

    def _written(self) -> int:
        """Return the size of the log."""
        try:
            return self.log.stat().st_size
        except OSError:
            return 0

    def _place(self) -> str:
        """Return where in the code the worker is; an empty string if it does not answer within a second."""
        before = self._written()
        return place_in(self.log, before) if self._signal(signal.SIGUSR1) else ""

    def _signal(self, number: signal.Signals) -> bool:
        """Send a signal to the worker; return whether it could be sent. A container has process ids of its own."""
        worker = next((process for process in self._below() if process.pid == self._ready.pid), None)
        with contextlib.suppress(psutil.NoSuchProcess):
            if worker is not None:
                worker.send_signal(number)
                return True
        return False

    def _end_call(self, number: int) -> None:
        """Wait for the end of an interrupted call; end a worker that does not react, such as in a loop of C++."""
        deadline = time.monotonic() + INTERRUPTED_WITHIN_S
        try:
            while self._lines.waiting(max(0.0, deadline - time.monotonic())):
                text = self._lines.next()
                if text is None:
                    return
                message = messages.message(text)
                if isinstance(message, Ready | Silent | Hangs):
                    self._note(message)
                if isinstance(message, Answer | Failure) and message.id == number:
                    self.answered += 1
                    return
            self.kill()
        finally:
            self._lock.release()

    def settle(self) -> None:
        """Wait until an interrupted request has ended, or its worker."""
        if self._settling is not None:
            self._settling.join()
            self._settling = None

    def prepare(self, task: Task) -> None:
        """Let the worker get familiar with a task, and return at once."""
        with self._lock:
            self._send(messages.call(messages.UNASKED, requests.Card(task=task)))

    def _note(self, message: Ready | Silent | Hangs) -> None:
        """Record a message about the start of the worker."""
        if isinstance(message, Ready):
            self._ready = message
        elif isinstance(message, Hangs):
            self._hangs = message.hangs
        else:
            logger.warning(
                "The worker is starting, but has written no output for minutes. Its log shows the stack of each "
                "thread: %s",
                message.silent,
            )

    def _send(self, message: Call | Adoption) -> None:
        assert self._agent.stdin is not None
        try:
            self._agent.stdin.write(messages.line(message))
            self._agent.stdin.flush()
        except (BrokenPipeError, ValueError) as exc:  # ValueError: another thread has closed the pipe
            raise self._end() from exc

    def _end(self) -> WorkerError:
        """Return the error that reports the end of the worker."""
        while (text := self._lines.next()) is not None:  # the message with the reason may still be unread
            if isinstance(message := messages.message(text), Hangs):
                self._note(message)
        if self._hangs:
            return WorkerError(f"{self._hangs}\n{files.tail(self.log)}")
        reason = f"The living simulator ended. Its log, {self.log}, ends with:\n{files.tail(self.log)}"
        if self.answered:
            return WorkerError(reason)
        option = f" --python {shlex.quote(self.python)}" if self.python else ""
        return WorkerError(f"{reason}\nIt never answered a request. To check its interpreter: rlnb doctor{option}")

    def adopt(self, job_dir: Path) -> Mapping[str, Json]:
        """Hand the process over to a job and return the handle of its agent.

        This object is not alive until :meth:`is_back` returns True.
        """
        with self._lock:
            self._send(Adoption(adopt=str(job_dir), webhook=os.environ.get(WEBHOOK, "")))
            while (text := self._lines.next()) is not None:
                message = messages.message(text)
                if isinstance(message, Ready | Silent | Hangs):
                    self._note(message)
                if isinstance(message, Adopted):
                    self._is_lent = True
                    return handle_of(self._agent.pid)
            raise WorkerError(f"The living simulator ended before the run could adopt it. Its log: {self.log}")

    def is_back(self) -> bool:
        """Wait until the job's end; return True if the process can be used again, and False if it has ended."""
        with self._lock:
            while (text := self._lines.next()) is not None:
                if isinstance(message := messages.message(text), Returned):
                    self._ready = Ready(rlnb=message.rlnb, pid=message.pid) if message.pid else self._ready
                    self._is_lent, self.used_s = False, time.monotonic()
                    return True
            self._agent.wait()
            return False

    def give_up(self) -> None:
        """Let the process end with its job. A process that no job has borrowed ends now."""
        assert self._agent.stdin is not None
        self._agent.stdin.close()

    def end_if_idle(self, limit_s: float) -> None:
        """End the worker if it was not used for ``limit_s`` seconds."""
        if not self._lock.acquire(blocking=False):  # a request is under way
            self.used_s = time.monotonic()
            return
        try:
            if time.monotonic() - self.used_s >= limit_s:
                logger.info("The living simulator ended after %.0f s without a request, to free GPU memory.", limit_s)
                self.close()
        finally:
            self._lock.release()

    def kill(self) -> None:
        """End the worker at once, whatever it does."""
        below = self._below()  # a wrapper and its worker may outlive the agent
        self._agent.kill()
        for process in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._agent.wait()

    def close(self) -> None:
        """End the worker and delete its log. The log of a worker that has already ended by itself is kept."""
        if not self.alive:
            return
        assert self._agent.stdin is not None
        self._agent.stdin.close()
        try:
            self._agent.wait(5)
        except subprocess.TimeoutExpired:
            self._agent.kill()
        shutil.rmtree(self.log.parent, ignore_errors=True)
