"""Run one command to its end: log, heartbeat, walltime and result."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from rlnb.errors import RlnbError
from rlnb.launch.command import TORCHRUN, runs_worker
from rlnb.launch.slots import SlotTicket, keep, take_slots
from rlnb.machine.gpus import Gpu, visible_gpus
from rlnb.node.alerts import AlertMonitor
from rlnb.node.child import describe_exit, die_with_parent, killed_rank, wakes
from rlnb.node.descendants import ask_for_stacks, descendants, kill_descendants
from rlnb.node.peers import HANGS, Member, Peers, Stall, size_of
from rlnb.node.usage import sampling
from rlnb.node.watchdog import Watchdog
from rlnb.protocol.wire import Lines
from rlnb.records.deadline import DeadlineReader
from rlnb.records.incidents import WaitsWriter
from rlnb.records.layout import JobDir, RunDir, run_dir_of
from rlnb.spec import Command, Json, Outcome, Result
from rlnb.storage import entries, files, temporary
from rlnb.storage.files import has_hash

if TYPE_CHECKING:
    import psutil


# -- a simulator that trains for a job -------------------------------------------------------------------------------


class AdoptedWorker:
    """The process of a job whose end is a message, since the process itself goes on.

    Args:
        process: The warm simulator, or the wrapper that started it.
        replies: Descriptor of the pipe that it writes its messages to.
    """

    def __init__(self, process: subprocess.Popen[bytes], replies: int) -> None:
        self.pid, self._process, self._replies = process.pid, process, Lines(replies)
        self.ready = False
        """Whether the process has said that it has started."""
        self.returned = True
        """Whether the process is not used by the job, before its begin or after its end."""
        self.line = b'{"returned": true}\n'
        """Line for the kernel at the end."""
        self.greetings: list[bytes] = []
        """Messages by which the process has said that it has started."""
        self.own: list[psutil.Process] = []
        """Processes that do not belong to the job: the simulator, and those that it had started before."""

    def begin(self, line: bytes) -> None:
        """Hand the job over.

        Args:
            line: The kernel's line about it.
        """
        self.own, self.returned = descendants(), False
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()

    def poll(self) -> int | None:
        """Return the exit status of the job, like ``Popen.poll``; 0 once the process is returned."""
        while not self.returned and self._replies.waiting(0.0) and (line := self._replies.next()) is not None:
            message = json.loads(line)
            self.ready = self.ready or "ready" in message or "returned" in message
            self.greetings += [line] if "ready" in message else []
            if "returned" in message:
                self.returned, self.line = True, line + b"\n"
        return 0 if self.returned else self._process.poll()


# -- one command to its end ------------------------------------------------------------------------------------------


POLL_S = 0.25
"""Seconds between checks of the job's folder. The exit of the child or a signal ends the wait at once."""
HEARTBEAT_S = 1.0
TERM_GRACE_S = 2.0
"""Seconds between SIGTERM and SIGKILL."""
EXIT_GRACE_S = 20.0
"""Seconds that a worker has to exit after it wrote its result. Some simulators never exit by themselves."""
LEAVE_S = 3.0
"""Seconds that a worker has to exit after it was stopped and wrote its result."""
SAVE_S = 25.0
"""Seconds that a training that is stopped has to finish its iteration and save. Slurm kills 30 s after its signal."""
ADOPTED_GRACE_S = SAVE_S + TERM_GRACE_S
"""Seconds between the two signals to a job with warm simulators, which a training may have borrowed."""
SAVE_POLL_S = 0.05
"""Seconds between checks whether a training that is stopped has saved."""
RESERVE_BYTES = 32768
ROOT_CAUSE_S = 10.0
"""Seconds that a node whose ranks failed waits for the result of the node whose rank failed first."""
FULL_BYTES = 2**20
"""Free bytes below which a failure is blamed on the disk."""
ENDS = "RLNB_JOB_ENDS_S"
"""Variable with the time at which a job with a warm simulator is ended, in seconds since the epoch."""
Child = subprocess.Popen[bytes] | AdoptedWorker
"""The process of a job."""


class Agent:
    """Runs one job of one node to its end."""

    def __init__(
        self,
        job: JobDir,
        command: Command,
        member: Member | None = None,
        *,
        lifeline: bool = False,
        deadline: float | None = None,
        hang_after_s: float | None = None,
        revocable: bool = False,
        earlier_log: IO[bytes] | None = None,
    ) -> None:
        """Create the agent of a job and install its signal handlers.

        Args:
            job: Folder of the job.
            command: Command to run.
            member: This node's place among the job's nodes; None is the only node.
            lifeline: Whether to end when standard input closes.
            deadline: Time at which to end the job, before the queue revokes the node, in seconds since the epoch.
            hang_after_s: Seconds without a new scalar, from the first iteration on, after which the training counts as
                hung; None means never.
            revocable: Whether a cluster owns this process, so that a signal means that it takes the node away.
            earlier_log: Log of the warm simulator that runs the job; it writes there until it has read the handover.
        """
        self._job, self._member, self._lifeline, self._deadline = job, member or Member(), lifeline, deadline
        self._command, self._revocable = command, revocable
        self._node, self._several = self._member.node, self._member.nodes > 1
        self._in_job = self._several or lifeline or revocable
        self._peers = Peers(job, self._member) if self._several else None
        self._stall = Stall(job, hang_after_s) if hang_after_s and job.kind == "train" else None
        self._earlier_log = earlier_log
        self._moved = DeadlineReader(job)
        self._gpus: tuple[Gpu, ...] = ()
        self._slots: Mapping[str, IO[str]] = {}
        self._signalled = self._let_go = self._interrupted = False
        self._beat = 0.0
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    @property
    def _ours(self) -> bool:
        """Whether the command is a worker, which records its start and its result itself. A script does not."""
        return runs_worker(self._command.argv)

    @property
    def signalled(self) -> bool:
        """Whether a signal has told the agent to end."""
        return self._signalled

    def _on_signal(self, *_: object) -> None:
        self._signalled = True

    def run(self, start: Callable[[Command], Child]) -> int:
        """Wait for a slot, start the process, watch it, write the result; return the exit status."""
        status = self._run(start)
        for slot in self._slots.values():
            slot.close()
        self._slots = {}
        if self._node == 0 and self._job.kind == "train" and files.there(self._job.result):
            AlertMonitor(self._job).end()  # the slots are free, since a webhook may take its time
        temporary.tidy()
        return status

    def _run(self, start: Callable[[Command], Child]) -> int:
        if self._node == 0:
            _keep_space(self._job.reserve)
        if self._command.queued:
            locks = self._take_slots()
            if locks is None:
                return self._end("cancelled", "cancelled while it waited in the queue", None)
            self._slots = locks
        try:
            claim = {"pid": os.getpid(), "host": socket.gethostname(), "time": files.now()}
            path = self._job.running(self._node)
            # NFS may report "exists" for a link that this very call created, so the content decides.
            ours = files.write_once(path, claim) or files.read_json(path) == claim
            if files.there(self._job.result) or not ours:
                return self._refuse()
            if not self._ours and (error := edited_script(run_dir_of(self._job.path))):
                return self._end("failed", error, None)
            place = self._member.env() if TORCHRUN in self._command.argv or self._several else {}
            child = start(dataclasses.replace(self._command, env={**self._command.env, **place, **self._end_env()}))
        except OSError as exc:
            return self._end("failed", f"{self._command.argv[0]!r} could not be started: {exc}", None)
        outcome, error = self._watch(child)
        spare = child.own if isinstance(child, AdoptedWorker) and child.returned else ()
        holds_simulators = (
            self._job.kind == "simulator" and self._signalled
        )  # its trainings heard the signal too, and save
        grace_s = ADOPTED_GRACE_S if holds_simulators else TERM_GRACE_S
        kill_descendants(0.0 if outcome == "completed" else grace_s, spare=spare)
        return 1 if self._let_go else self._end(outcome, error, child.poll())

    def _take_slots(self) -> Mapping[str, IO[str]] | None:
        """Wait for slots; return their locks, or None if the job was cancelled first.

        The slots of a training on GPUs are the GPUs themselves, since the same number may be another GPU in another
        process. If more trainings than GPUs may run at a time, they share GPUs, and the slots are numbers.
        """
        command, gpus = self._command, {gpu.slot: gpu for gpu in visible_gpus()}
        kind, _, number = command.device.partition(":")
        names: Sequence[str] | None = None
        if kind in ("auto", "cuda") and command.max_running <= len(gpus):
            names = [*gpus][int(number) : int(number) + 1] if number else [*gpus]
        if not names or len(names) < command.slots:
            names = None
        count = command.slots if names else min(command.slots, command.max_running)
        request = SlotTicket(
            max_running=command.max_running,
            count=count,
            run=run_dir_of(self._job.path).path.name,
            names=names,
            gpus=[*gpus],
        )
        waits = WaitsWriter(self._job, self._node)
        locks = take_slots(request, self._must_stop, on_wait=lambda runs: waits.write(_wait_for(runs), runs))
        waits.write("")
        if locks and names:
            self._gpus = tuple(gpu for slot, gpu in gpus.items() if slot in locks)
            if command.gpu_per_slot:
                env = {**command.env, "CUDA_VISIBLE_DEVICES": ",".join(gpu.name for gpu in self._gpus)}
                self._command = dataclasses.replace(command, env=env)
        return locks

    def _refuse(self) -> int:
        """Print that this job was already started. Two trainings must never write to one run."""
        claim = files.read_json(self._job.running(self._node)) or {}
        by = f" on {claim['host']} at {claim['time']}" if claim else ""
        sys.stderr.write(
            f"rlnb.node: {self._job.path} was started{by} and cannot be started twice. To continue the run: "
            f"rlnb.get_run({run_dir_of(self._job.path).path.name!r}).resume()\n"
        )
        return 1

    def _watch(self, child: Child) -> tuple[Outcome, str]:
        deadline = time.monotonic() + self._command.walltime_s if self._command.walltime_s else None
        leave_by: float | None = None
        start = self._start()
        gpus = [gpu.uuid or gpu.name for gpu in self._job_gpus()] if self._job.kind == "train" else []
        samples = sampling(self._job, self._node, gpus, is_script=not self._ours)
        with wakes(child.pid, POLL_S, lifeline=self._lifeline) as wait, samples as sample:
            while (code := child.poll()) is None:
                if self._must_stop():
                    return self._after_saving(child, *self._stopped())
                if deadline is not None and time.monotonic() > deadline:
                    reason = f"stopped after its walltime of {self._command.walltime_s:.0f} s"
                    return self._after_saving(child, "timeout", reason)
                if self._deadline is not None and time.time() > self._deadline:
                    self._interrupted = True
                    return self._after_saving(
                        child, "timeout", "stopped shortly before the end of the queue's walltime"
                    )
                if self._peers is not None and (loss := self._peers.missing()):
                    self._interrupted = True
                    return "failed", loss
                if self._stall is not None and (hangs := self._stall.hangs()):
                    ask_for_stacks()
                    return "failed", hangs
                if start is not None and self._all_begun() and (hangs := start.hangs()):
                    return "failed", hangs
                if leave_by is None and files.there(self._job.result):
                    leave_by = time.monotonic() + (EXIT_GRACE_S if self._completed() else 0.0)
                if leave_by is not None and time.monotonic() > leave_by:
                    return "completed", ""
                sample()
                self._let_go = wait() or self._let_go
        if self._revocable and (self._signalled or code == -signal.SIGTERM):  # the queue signals all processes at once
            return self._stopped()
        if code == 0 and not (self._ours and self._node == 0 and not files.there(self._job.result)):
            return "completed", ""
        return "failed", self._describe_exit(code)

    def _end_env(self) -> Mapping[str, str]:
        """Return the variable that tells a warm simulator when its node is taken away."""
        walltime_s = self._command.walltime_s
        ends = [self._deadline, time.time() + walltime_s if walltime_s else None]
        times = [end_s for end_s in ends if end_s is not None]
        return {ENDS: str(min(times))} if times and self._job.kind == "simulator" else {}

    def _start(self) -> Watchdog | None:
        """Return a watcher for the start of a training that runs rlnb's worker; None for any other job."""
        if not (self._ours and self._job.kind == "train"):
            return None
        job, run = self._job, run_dir_of(self._job.path)
        before = size_of(run.event_files())
        return Watchdog(
            job.log(self._node),
            lambda: files.there(job.started),
            logs=lambda: size_of(run.event_files()) > before,
            mark=job.silent(self._node),
            earlier_log=self._earlier_log,
        )

    def _all_begun(self) -> bool:
        """Return whether every node has started. Until then the ranks wait for each other in silence."""
        return all(files.there(self._job.running(node)) for node in range(self._member.nodes))

    def _after_saving(self, child: Child, outcome: Outcome, error: str) -> tuple[Outcome, str]:
        """Give a training that has begun its iterations the time to save a checkpoint; return the arguments."""
        save_s = self._save_s()
        if save_s > 0 and not (self._let_go or self._superseded()):
            with contextlib.suppress(OSError):  # a full disk, to which no checkpoint could be written either
                files.write_once(self._job.stop, self._result(outcome, error))
                self._wait_for_the_result(child, save_s)
        return outcome, error

    def _save_s(self) -> float:
        """Return the seconds that the training has to save; 0 if it has not begun, or does not save when stopped."""
        try:
            started = files.read_json(self._job.started) or {}
            save_s = (files.read_json(self._job.cancel) or {}).get("save_s", SAVE_S)
            return float(save_s) if started.get("saves_when_stopped") else 0.0  # type: ignore[arg-type]
        except (RlnbError, TypeError, ValueError):  # a damaged record must not keep the agent from ending the training
            return 0.0

    def _wait_for_the_result(self, child: Child, save_s: float) -> None:
        """Wait until the worker has saved, written its result, and called the plugins' hooks, or its time is over."""
        deadline = time.monotonic() + save_s
        has_result = False
        while child.poll() is None and time.monotonic() < deadline:
            self._must_stop()  # keeps the heartbeat
            if not has_result and files.there(self._job.result):
                has_result, deadline = True, min(deadline, time.monotonic() + LEAVE_S)
            time.sleep(SAVE_POLL_S)

    def _superseded(self) -> bool:
        """Return whether the run goes on in another job, which was started while this job could not be seen."""
        return files.there(self._job.successor)

    def _stopped(self) -> tuple[Outcome, str]:
        """Return why the job was told to end: by the user, or, on one of several nodes, by the queue."""
        if self._superseded():
            return "cancelled", f"stopped: {self._job.successor_name()} was started to continue this run"
        if files.there(self._job.cancel) or not self._in_job:
            return "cancelled", "cancelled"
        self._interrupted = True
        return "failed", f"{self._member} was revoked by the queue: preempted, requeued, or past its walltime"

    def _completed(self) -> bool:
        """Return whether the result on disk is a success."""
        result = (files.read_json(self._job.result) or {}) if self._several else {"outcome": "completed"}
        if str(result.get("error", "")).startswith(HANGS):
            ask_for_stacks()
        return result.get("outcome") == "completed"

    def _describe_exit(self, code: int) -> str:
        """Return how the process ended, after giving the rank that failed first some seconds to write the reason."""
        log = self._job.log(self._node)
        if code == 0:
            return "the worker ended with status 0 and left no result"
        if not self._several and TORCHRUN not in self._command.argv:
            return describe_exit(code, log)
        if victim := killed_rank(log):
            return f"rank {victim[0]} on {self._member}: {describe_exit(-victim[1], log)}"
        deadline = time.monotonic() + (ROOT_CAUSE_S if self._ours else 0.0)
        while not files.there(self._job.result) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return f"{self._member}: {describe_exit(code, log)}" if self._several else describe_exit(code, log)

    def _job_gpus(self) -> Sequence[Gpu]:
        """Return the GPUs of the job: those of its slots, else that of its device, else all that it may use."""
        kind, _, number = self._command.device.partition(":")
        if self._gpus or kind == "cpu":
            return self._gpus
        return visible_gpus()[int(number) : int(number) + 1] if number else visible_gpus()

    def _must_stop(self) -> bool:
        """Touch the heartbeat file; return whether the job was told to end."""
        if time.monotonic() - self._beat > HEARTBEAT_S:
            self._beat = time.monotonic()
            with contextlib.suppress(OSError):  # a full disk must not end the job
                entries.touch(self._job.alive(self._node))
            keep(self._slots.values())
            self._deadline = self._new_deadline()
        return self._signalled or self._let_go or files.there(self._job.cancel) or self._superseded()

    def _new_deadline(self) -> float | None:
        """Return the deadline, which the cluster's host may have moved."""
        moved = self._moved.read() if self._lifeline else None
        return self._deadline if moved is None else moved

    def _end(self, outcome: Outcome, error: str, code: int | None) -> int:
        """Write the result, unless the worker already wrote its own, which is more detailed."""
        if outcome == "completed" and self._node > 0:
            return 0  # the first node writes it
        if outcome == "failed" and is_full(self._job.path):
            error += f". No space left on the disk of {self._job.path}"  # the full disk may have truncated the log
        try:
            files.write_once(self._job.result, self._result(outcome, error, code), self._job.reserve)
        except OSError as exc:
            sys.stderr.write(f"rlnb.node: the result could not be written: {exc}\n")
            return 1
        return 0 if outcome == "completed" else 1

    def _result(self, outcome: Outcome, error: str, code: int | None = None) -> Result:
        failed = outcome == "failed" and not self._interrupted  # the log has no cause of an interruption
        detail = files.tail(self._job.log(self._node)) if failed else ""
        values: dict[str, Json] = {"node": self._node} if self._several else {}
        if self._interrupted:  # by the cluster, so the job may continue elsewhere
            values["interrupted"] = True
        return Result(outcome=outcome, error=error, detail=detail, exit_code=code, ended=files.now(), values=values)


def _wait_for(runs: Sequence[str]) -> str:
    """Return why a run waits for its slots."""
    return f"waits for {', '.join(runs)}" if runs else "waits for its turn"


def is_full(folder: Path) -> bool:
    """Return whether the disk of a folder is full; False if that cannot be found out."""
    with contextlib.suppress(OSError):
        return shutil.disk_usage(folder).free < FULL_BYTES
    return False


def _keep_space(path: Path) -> None:
    with contextlib.suppress(OSError):
        files.write_bytes(path, b"\0" * RESERVE_BYTES)


# -- script ----------------------------------------------------------------------------------------------------------


def edited_script(run: RunDir) -> str:
    """Return a sentence if a run's script was edited since the run was made, e.g. while it waited in a queue.

    A script is executed at its own place, because it may import modules beside it.

    Args:
        run: Folder of the run.

    Returns:
        The sentence; empty if the script is the recorded one, cannot be read, or if the run has none.
    """
    manifest = files.read_json(run.manifest) or {}
    script, task = manifest.get("script"), manifest.get("task")
    if not isinstance(script, list) or not script or not isinstance(task, dict):
        return ""
    digest: Json = task.get("source_sha256")
    try:
        content = Path(str(script[0])).read_bytes()
    except OSError:
        return ""
    if not isinstance(digest, str) or has_hash(content, digest):
        return ""
    return f"{script[0]} was edited after this run was made, which has recorded the earlier text. Start a new run."


# -- a server beside a kernel ----------------------------------------------------------------------------------------


def run_sidecar(argv: Sequence[str]) -> int:
    """Run a command until it ends or the kernel closes stdin. The command inherits this process's output."""
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
    process = os.pidfd_open(child.pid)
    ready: list[int] = []
    while process not in ready and not (0 in ready and not os.read(0, 1 << 16)):
        ready, _, _ = select.select([0, process], [], [])
    status = child.poll()  # before kill_descendants, which reaps the child
    kill_descendants(TERM_GRACE_S)
    return status or 0
