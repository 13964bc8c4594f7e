"""The kernel's connection to the warm simulator: JSON lines to and from a worker that a node agent has started.

The kernel knows the worker by these messages alone, so that it may be on another machine.
While a request waits for its answer, the status line says why. The wait ends if the simulator shows no sign of life
for too long, or if the user interrupts it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import logging
import math
import os
import queue
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from rlnb.display.status import say
from rlnb.errors import WorkerError
from rlnb.launch.detached import handle_of
from rlnb.machine import threads
from rlnb.protocol import messages, requests
from rlnb.protocol.code_location import location_of_stacks
from rlnb.protocol.messages import (
    Answer,
    Connected,
    Control,
    Died,
    Ended,
    Failure,
    Hangs,
    Meanwhile,
    Message,
    Pulse,
    Ready,
    Silent,
    Stacks,
    Usage,
    Waiting,
)
from rlnb.protocol.requests import Request, verb
from rlnb.records.incidents import WEBHOOK
from rlnb.records.layout import JobDir
from rlnb.simulation.link import Link, agent_command
from rlnb.simulation.relay import Forward
from rlnb.simulation.remote_job import SimulatorJob
from rlnb.spec import Json
from rlnb.storage import files

logger = logging.getLogger(__name__)

SAY_S = 1.0
"""Seconds between two reports of what a request waits for."""
STACK_EVERY_S = 30.0
"""Seconds between two looks at where in the code the simulator is, which these reports say."""
INTERRUPTED_WITHIN_S = 4.0
"""Seconds that the simulator has to end an interrupted request. If it does not, it is ended."""
PROMPT_S = 5.0
"""Seconds that the node agent has to answer a control."""

A = TypeVar("A")


class SimulatorProcess:
    """One worker process that answers requests, and that runs can borrow.

    It ends with this process. If a run has borrowed it, it ends with the run.

    Args:
        python: Command of the worker's interpreter; None is this process's interpreter.
        asset_root: Explicit asset root; fixed for the life of the process.
        log: File for the worker's output; None if it is on another machine.
        job: Job that holds the worker on another machine; None is this machine.
    """

    def __init__(
        self,
        python: str | None,
        asset_root: str | None,
        log: Path | None,
        *,
        job: SimulatorJob | None = None,
    ) -> None:
        self.python, self.asset_root, self.log, self.job = python, asset_root, log, job
        self._ids = itertools.count()
        self.threads = threads.of_user()
        """The user's variables of threads, with which the worker has started."""
        self.answered = 0
        """Number of requests that the worker has answered."""
        self.used_s = time.monotonic()
        """Time of the last use, on the monotonic clock."""
        self._is_adopted = False
        self._condition = Condition(job.launcher.name if job is not None else "")
        self._forwards: dict[int, Forward] = {}
        self._side_answers: dict[int, queue.SimpleQueue[Answer | Failure | None]] = {}
        """Where the threads of side requests wait for their answers, by the number of the call."""
        self._doing = ("", 0.0)
        self._settling: threading.Thread | None = None
        self._lock, self._closing = threading.Lock(), False
        run_there = job.run_there if job is not None else str
        self._link = Link(*self._command(), ships=job is not None, run_there=run_there)
        self._agent = self._link.process
        if job is not None:
            threading.Thread(target=self._watch, daemon=True, name="watch").start()

    def _command(self) -> tuple[Sequence[str], Mapping[str, str]]:
        """Return the argv of the node agent, or of the relay to it, and the environment."""
        if self.job is not None:
            return self.job.relay_argv(), os.environ
        assert self.log is not None, "the worker is on this machine"
        return agent_command(self.python, self.asset_root, self.log)

    def _watch(self) -> None:
        """Say that a simulator on another machine has ended while no request waits for it."""
        self._agent.wait()
        if not (self._closing or self._link.cut) and self._lock.acquire(blocking=False):  # a request reports it itself
            try:
                logger.warning("%s The next request starts another one.", str(self._end()).partition("\n")[0])
            finally:
                self._lock.release()

    @property
    def alive(self) -> bool:
        return not self._is_adopted and self._agent.poll() is None

    @property
    def pid(self) -> int:
        """Process id of the worker, or of its agent until the worker has started."""
        return self._condition.ready.pid or self._agent.pid

    def usage(self) -> Usage:
        """Return the memory of the worker and its child processes; that before the present request if it is busy."""
        if self.alive and self._lock.acquire(blocking=False):
            try:
                self._measure()
            finally:
                self._lock.release()
        return self._condition.usage

    def _measure(self) -> None:
        """Ask for the memory of the worker, and wait for the answer. Call it with the lock."""
        self._control("usage")
        deadline = time.monotonic() + PROMPT_S
        while self._link.waiting(max(0.0, deadline - time.monotonic())) and (text := self._link.next()) is not None:
            if isinstance(self._note(text), Usage):
                return

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
            self._send(messages.call(number, request), request)
            try:
                for message in self._messages(number, request):
                    if isinstance(message, Meanwhile):
                        if meanwhile is not None:
                            meanwhile(self._value_of(request, message.meanwhile))
                        continue
                    answered = True
                    if isinstance(message, Failure):
                        raise messages.error_of(message)
                    return self._value_of(request, message.value)
            except KeyboardInterrupt:
                if not answered:
                    self._control("interrupt")
                    kept.append(True)  # until the call has ended; no other request may take its answer
                    self._settling = threading.Thread(target=self._end_call, args=(number,), daemon=True, name="settle")
                    self._settling.start()
                raise
            finally:
                for answers in [*self._side_answers.values()]:
                    answers.put(None)  # no thread reads their answers any more
            raise self._end()

    def side_request(self, request: Request[A]) -> A:
        """Send a request that the worker answers while it shows a 3D view; return the answer.

        Raises:
            RlnbError: The worker refused the request. The error has the same class as in the worker.
            WorkerError: The simulator has ended, or it has not answered within the time limit of the request.
        """
        number, answers = next(self._ids), queue.SimpleQueue[Answer | Failure | None]()
        self._side_answers[number] = answers
        try:
            if not self.busy:
                raise WorkerError("The view is closed. Open it again." if self.alive else "The simulator has ended.")
            self._link.send(messages.call(number, request))
            message = answers.get(timeout=request.limit_s)
        except queue.Empty:
            raise WorkerError(
                f"The view has not done this within {request.limit_s:.0f} s, and does it with its next step. "
                "If its simulation is paused in the browser, resume it."
            ) from None
        except (BrokenPipeError, ValueError):  # the thread of the other request reports the end
            message = None
        finally:
            del self._side_answers[number]
        if message is None:
            raise WorkerError("The simulator has ended.")
        if isinstance(message, Failure):
            raise messages.error_of(message)
        return self._value_of(request, message.value)

    def _value_of(self, request: Request[A], value: Json) -> A:
        """Return an answer. The port of a server on another machine becomes one of this machine that leads to it."""
        answer = messages.value_of(request, value, self._condition.ready)
        if self.job is not None and isinstance(answer, requests.Address):
            if answer.port not in self._forwards:
                self._forwards[answer.port] = Forward(self.job.relay_argv("--port", str(answer.port)))
            return dataclasses.replace(answer, port=self._forwards[answer.port].port)
        return answer

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
        condition = self._condition
        condition.place, log_bytes = "", condition.log_bytes
        while True:
            while not self._link.waiting(SAY_S):
                now_s = time.monotonic()
                if condition.connected:
                    self._control("pulse")
                if condition.ready.pid and request.limit_s < math.inf and now_s - looked_s >= STACK_EVERY_S:
                    looked_s = now_s
                    self._control("stacks")
                say(str(condition), now_s - begin_s)
                if not condition.connected and self.job is not None and self.job.ended:
                    self._agent.kill()  # the relay, which may wait for a record that no process writes any more
                    raise self._end()
                if now_s - life_s > request.limit_s:
                    raise self._gave_no_sign_of_life(request)
            text = self._link.next()
            if text is None:
                self._agent.wait()
                return
            message = self._note(text)
            if isinstance(message, Waiting) or (log_bytes != condition.log_bytes and not isinstance(message, Stacks)):
                life_s = time.monotonic()
            log_bytes = condition.log_bytes
            if isinstance(message, Meanwhile | Answer | Failure) and message.id == number:
                life_s = time.monotonic()
                self.answered += not isinstance(message, Meanwhile)
                yield message

    def _gave_no_sign_of_life(self, request: Request[Any]) -> WorkerError:
        """End the simulator; return the error that says where it was."""
        self.kill()
        where = f" It was in {self._condition.place}." if self._condition.place else ""
        return WorkerError(
            f"The warm simulator has written nothing for {request.limit_s:.0f} s while it worked on "
            f"{verb(type(request))!r}, and was ended.{where} The next request starts another one."
        )

    def _control(self, control: Literal["interrupt", "kill", "pulse", "stacks", "usage"]) -> None:
        """Send a control to the node agent. An agent that has ended gets none; its end is seen by its output."""
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._link.send(Control(control=control))

    def _end_call(self, number: int) -> None:
        """Wait for the end of an interrupted call; end a worker that does not react, such as in a loop of C++."""
        deadline = time.monotonic() + INTERRUPTED_WITHIN_S
        try:
            while self._link.waiting(max(0.0, deadline - time.monotonic())):
                text = self._link.next()
                if text is None:
                    return
                message = self._note(text)
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

    def _note(self, text: bytes) -> Message | None:
        """Return the message in a line, after recording what it says about the worker."""
        message = messages.message(text)
        self._condition.note(message)
        if isinstance(message, messages.Sent):
            self._link.receive(message)
        elif isinstance(message, messages.Connected) and self.job is not None:
            self.job.note(message)
        elif isinstance(message, Answer | Failure) and (answers := self._side_answers.get(message.id)) is not None:
            answers.put(message)
        return message

    def _send(self, message: messages.Call | messages.Adoption, request: Request[Any] | None = None) -> None:
        try:
            self._link.send(message, request)
        except (BrokenPipeError, ValueError) as exc:  # ValueError: another thread has closed the pipe
            raise self._end() from exc

    def _end(self) -> WorkerError:
        """Return the error that reports the end of the worker."""
        while (text := self._link.next()) is not None:  # the message with the reason may still be unread
            self._note(text)
        last = self._condition.last_output
        output = last or (files.tail(self.log) if self.log else "")
        if self._condition.reason:
            return WorkerError(f"{self._condition.reason}\n{output}")
        if self.job is not None and not last and not self._closing:
            return WorkerError(self.job.reason())
        where = f"The end of its log on {self.job.host}" if self.job else f"The end of its log, {self.log}"
        how = f": {self._condition.died}, while it worked on {self._doing[0]!r}" if self._condition.died else ""
        reason = f"The warm simulator ended{how}. {where}:\n{output}"
        if self.answered:
            return WorkerError(reason)
        option = f" --python {shlex.quote(self.python)}" if self.python else ""
        return WorkerError(f"{reason}\nIt never answered a request. To check its interpreter: rlnb doctor{option}")

    def adopt(self, job_dir: Path) -> Mapping[str, Json]:
        """Hand the process over to a job and return the handle of its agent.

        This object is not alive until :meth:`is_back` returns True.
        """
        with self._lock:
            self._is_adopted = True
            if self.job is not None:
                self.job.trainings.append(JobDir(job_dir))
            try:
                self._send(messages.Adoption(adopt=str(job_dir), webhook=os.environ.get(WEBHOOK, "")))
                while (text := self._link.next()) is not None:
                    if isinstance(self._note(text), messages.Adopted):
                        return handle_of(self._agent.pid)
            except BaseException:  # such as an interrupt, after which the job may have the process
                self.give_up()
                raise
            raise WorkerError(f"The warm simulator ended before the run could adopt it. Its log: {self.log}")

    def is_back(self) -> bool:
        """Wait until the job's end; return True if the process can be used again, and False if it has ended."""
        with self._lock:
            while (text := self._link.next()) is not None:
                if isinstance(message := messages.message(text), messages.Returned):
                    ready = Ready(rlnb=message.rlnb, pid=message.pid)
                    self._condition.ready = ready if message.pid else self._condition.ready
                    self._is_adopted, self.used_s = False, time.monotonic()
                    return True
            self._agent.wait()
            return False

    def give_up(self) -> None:
        """Let the process end with its job. A process that no job has borrowed ends now."""
        self._link.close()

    def end_if_idle(self, limit_s: float) -> None:
        """End the worker if it was not used for ``limit_s`` seconds."""
        if not self._lock.acquire(blocking=False):  # a request is under way
            self.used_s = time.monotonic()
            return
        try:
            if time.monotonic() - self.used_s >= limit_s:
                logger.info("The warm simulator ended after %.0f s without a request, to free GPU memory.", limit_s)
                self.close()
        finally:
            self._lock.release()

    def kill(self) -> None:
        """End the worker at once, whatever it does."""
        self._closing = True
        self._control("kill")  # the agent ends all processes below it, which its own end might leave behind
        try:
            self._agent.wait(PROMPT_S)
        except subprocess.TimeoutExpired:
            self._agent.kill()
            self._agent.wait()

    def close(self) -> None:
        """End the worker and delete its log. The log of a worker that has already ended by itself is kept."""
        self._closing = True
        for forward in self._forwards.values():
            forward.close()
        if not self.alive:
            return
        self._link.close()
        try:
            self._agent.wait(5)
        except subprocess.TimeoutExpired:
            self._agent.kill()
        if self.job is None and self.log is not None:
            shutil.rmtree(self.log.parent, ignore_errors=True)


# -- the condition of a simulator ------------------------------------------------------------------------------------


class Condition:
    """The condition of a simulator.

    Args:
        job: Name of the launcher in whose job the simulator is; empty for this machine.
    """

    def __init__(self, job: str = "") -> None:
        self._job = job
        self.connected = not job
        """Whether the node agent can be asked, which is not so while a job waits."""
        self.ready = Ready()
        """The worker's first message; its process id is 0 before."""
        self.usage = Usage()
        """The last answer about the worker's memory."""
        self.log_bytes = 0
        """Size of the worker's log."""
        self.place = ""
        """Where in the code the worker was; empty if that is not known."""
        self.reason = ""
        """Why the agent or the job has ended the worker, as a sentence; empty if it has not."""
        self.died = ""
        """How the worker has ended by itself, as a clause; empty if it has not, or if that is not known."""
        self.last_output = ""
        """End of the log of a worker on another machine that has ended."""
        self._waits = ""

    def note(self, message: Message | None) -> None:
        """Note what a message says."""
        if isinstance(message, Ready):
            self.ready = message
        elif isinstance(message, Hangs):
            self.reason = message.hangs
        elif isinstance(message, Died):
            self.died = message.died
        elif isinstance(message, Pulse):
            self.log_bytes = message.log_bytes
        elif isinstance(message, Stacks):
            self.place, self.log_bytes = location_of_stacks(message.stacks), message.end_bytes
        elif isinstance(message, Usage):
            self.usage = message
        elif isinstance(message, Waiting):
            self._waits = message.waits
        elif isinstance(message, Ended):
            self.last_output = message.ended
        elif isinstance(message, Connected):
            self.connected = True
        elif isinstance(message, Silent):
            logger.warning(
                "The worker is starting, but has written no output for minutes. Its log shows the stack of each "
                "thread: %s",
                message.silent,
            )

    def __str__(self) -> str:
        if not self.connected:
            return f"the simulator's job on {self._job} waits" + (f": {self._waits}" if self._waits else "")
        place = f" in {self.place}" if self.place else ""
        return f"the simulator is {'busy' if self.ready.pid else 'starting'}{place}"
