"""``python -m rlnb.job``: the node agent, one per node for every launcher.

It runs one command and answers for it: log, heartbeat, queue, cancel, walltime, result, and that no
process of it is left when it ends. Single-threaded, and free of torch and of the simulator.

``python -m rlnb.job JOB_DIR`` runs the command of that job; with ``--node K --master HOST:PORT`` it is
the agent of one of several nodes. With ``--lifeline`` it ends when its standard input does, and leaves it
to who held that to say why. ``python -m rlnb.job --injected RUN_DIR`` finds node and master in the
environment, where a cluster's own operator has put them. ``python -m rlnb.job --warm LOG ARGV``
keeps a warm worker for a kernel and passes its requests on; when the kernel hands it a job, the
agent lets the kernel go and becomes that job's agent. ``python -m rlnb.job --beside ARGV`` runs a
command until the kernel is gone, however it went.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import select
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from rlnb.launch.child import adopt_orphans, describe_exit, die_with_parent, spawn, wakes
from rlnb.launch.descendants import ask_for_stacks, kill_descendants
from rlnb.launch.gang import HANGS, Member, Peers, Stall, injected, newest_training
from rlnb.launch.local import visible_gpus
from rlnb.launch.silence import Silence
from rlnb.launch.slots import take_slots
from rlnb.launch.torchrun import killed_rank
from rlnb.launch.usage import Usage
from rlnb.records import files
from rlnb.records.layout import JobDir, run_dir_of
from rlnb.serial import from_json, to_json
from rlnb.spec import Command, Manifest, Outcome, Result

POLL_S = 0.25
"""Seconds between looks at the job's folder; the end of the child and signals are heard at once."""
HEARTBEAT_S = 1.0
TERM_GRACE_S = 2.0
"""Seconds between SIGTERM and SIGKILL."""
EXIT_GRACE_S = 20.0
"""Seconds that a worker has to leave after it wrote its result; simulators are known not to exit."""
RESERVE_BYTES = 32768
ROOT_CAUSE_S = 10.0
"""Seconds that a node whose ranks failed waits for the one where it began to say why."""
FULL_BYTES = 2**20
"""Free space below which a failure is the disk's."""


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
        earlier_log: IO[bytes] | None = None,
    ) -> None:
        """Take charge of a job.

        Args:
            job: Its folder.
            command: What to run.
            member: Which of its nodes this is.
            lifeline: Whether to end when standard input does.
            deadline: When the queue takes the node away, in seconds since the epoch.
            hang_after_s: Seconds without a new scalar after which a rank is taken to hang.
            earlier_log: Log of the living worker that does the job, which writes there until it has heard of the job.
        """
        self._job, self._member, self._lifeline, self._deadline = job, member or Member(), lifeline, deadline
        self._command = dataclasses.replace(command, env={**command.env, **self._member.env()})
        self._node, self._several = self._member.node, self._member.nodes > 1
        self._peers = Peers(job, self._member) if self._several else None
        self._stall = Stall(run_dir_of(job.path), hang_after_s) if hang_after_s and job.kind == "train" else None
        self._earlier_log = earlier_log
        self._signalled = self._let_go = self._interrupted = False
        self._beat = 0.0
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    @property
    def _ours(self) -> bool:
        """Whether what runs says by itself when it has started and how it ended; scripts do not."""
        return "rlnb.worker" in self._command.argv

    def _on_signal(self, *_: object) -> None:
        self._signalled = True

    def run(self, start: Callable[[Command], subprocess.Popen[bytes]]) -> int:
        """Wait for a slot, start the process, watch it, write the result; return the exit status."""
        if self._node == 0:
            _keep_space(self._job.reserve)
        slots: Mapping[int, IO[str]] = {}
        if self._command.queued:
            name = run_dir_of(self._job.path).path.name
            taken = take_slots(self._command.max_running, self._must_stop, self._command.slots, name=name)
            if taken is None:
                return self._end("cancelled", "cancelled while it waited in the queue", None)
            slots = taken
            if self._command.gpu_per_slot:
                gpus = visible_gpus()
                env = {**self._command.env, "CUDA_VISIBLE_DEVICES": ",".join(gpus[number] for number in sorted(slots))}
                self._command = dataclasses.replace(self._command, env=env)
        try:
            here = {"pid": os.getpid(), "host": socket.gethostname(), "time": files.now()}
            begun = self._job.running(self._node)
            # A file system may say of a link that it has just made that it was there.
            ours = files.write_once(begun, here) or files.read_json(begun) == here
            if files.there(self._job.result) or not ours:
                return self._refuse()
            child = start(self._command)
        except OSError as exc:
            return self._end("failed", f"{self._command.argv[0]!r} could not be started: {exc}", None)
        outcome, error = self._watch(child)
        kill_descendants(0.0 if outcome == "completed" else TERM_GRACE_S)
        code = 1 if self._let_go else self._end(outcome, error, child.poll())
        for slot in slots.values():
            slot.close()
        return code

    def _refuse(self) -> int:
        """Say that this job was started before: two trainings must never write to one run."""
        first = files.read_json(self._job.running(self._node)) or {}
        by = f" on {first['host']} at {first['time']}" if first else ""
        sys.stderr.write(
            f"rlnb.job: {self._job.path} was started{by} and is not started twice. A further job of the run goes on "
            f"with it: rlnb.get_run({run_dir_of(self._job.path).path.name!r}).resume()\n"
        )
        return 1

    def _watch(self, child: subprocess.Popen[bytes]) -> tuple[Outcome, str]:
        deadline = time.monotonic() + self._command.walltime_s if self._command.walltime_s else None
        leave_by: float | None = None
        start = self._start()
        with wakes(child, POLL_S, lifeline=self._lifeline) as wait, self._sampling() as sample:
            while (code := child.poll()) is None:
                if self._must_stop():
                    return self._stopped()
                if deadline is not None and time.monotonic() > deadline:
                    return "timeout", f"stopped after its walltime of {self._command.walltime_s:.0f} s"
                if self._deadline is not None and time.time() > self._deadline:
                    self._interrupted = True
                    return "timeout", "stopped before the queue's walltime was over"
                if self._peers is not None and (gone := self._peers.missing()):
                    self._interrupted = True
                    return "failed", gone
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
        if code == 0 and not (self._ours and self._node == 0 and not files.there(self._job.result)):
            return "completed", ""
        return "failed", self._describe_exit(code)

    def _start(self) -> Silence | None:
        """Return the watch on the start of one of rlnb's own trainings; None for any other job."""
        if not (self._ours and self._job.kind == "train"):
            return None
        job, run = self._job, run_dir_of(self._job.path)
        before = _size(run.event_files())
        return Silence(
            job.log(self._node),
            lambda: files.there(job.started),
            logs=lambda: _size(run.event_files()) > before,
            mark=job.silent(self._node),
            earlier_log=self._earlier_log,
        )

    def _all_begun(self) -> bool:
        """Return whether every node has begun: until then the ranks wait for each other in silence."""
        return all(files.there(self._job.running(node)) for node in range(self._member.nodes))

    def _stopped(self) -> tuple[Outcome, str]:
        """Say who wanted the job to end: a person, or on one of several nodes the queue."""
        if files.there(self._job.cancel) or not (self._several or self._lifeline):
            return "cancelled", "cancelled"
        self._interrupted = True
        return "failed", f"{self._member} was taken away by the queue: preempted, requeued, or past its walltime"

    def _completed(self) -> bool:
        """Return whether the result that is there says so. A failed rank's leaves the others nothing to wait for."""
        result = (files.read_json(self._job.result) or {}) if self._several else {"outcome": "completed"}
        if str(result.get("error", "")).startswith(HANGS):
            ask_for_stacks()
        return result.get("outcome") == "completed"

    def _describe_exit(self, code: int) -> str:
        """Say how the process ended, after having given the rank that ended first the time to say why."""
        if code == 0:
            return "the worker ended with status 0 and left no result"
        if not self._several and "torch.distributed.run" not in self._command.argv:
            return describe_exit(code)
        if killed := killed_rank(self._job.log(self._node)):
            return f"rank {killed[0]} on {self._member}: {describe_exit(-killed[1])}"
        deadline = time.monotonic() + (ROOT_CAUSE_S if self._ours else 0.0)
        while not files.there(self._job.result) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return f"{self._member}: {describe_exit(code)}" if self._several else describe_exit(code)

    @contextlib.contextmanager
    def _sampling(self) -> Iterator[Callable[[], None]]:
        """Yield what samples the use of this node; of a training only, whose curves they stand beside."""
        if self._job.kind != "train":
            yield lambda: None
            return
        gpus = self._command.env.get("CUDA_VISIBLE_DEVICES", ",".join(visible_gpus()))
        folder = run_dir_of(self._job.path).system
        usage: Usage | None = None

        def tick() -> None:
            """Begin with the training, whose start needs every core; a script does not say when that is."""
            nonlocal usage
            if usage is not None:
                usage.tick()
            elif not self._ours or files.there(self._job.started):
                usage = Usage(folder, self._node, [name for name in gpus.split(",") if name])

        try:
            yield tick
        finally:
            if usage is not None:
                usage.close()

    def _must_stop(self) -> bool:
        """Keep the heartbeat, and tell whether somebody wants the job to end."""
        if time.monotonic() - self._beat > HEARTBEAT_S:
            self._beat = time.monotonic()
            with contextlib.suppress(OSError):  # a full disk must not end the job
                self._job.alive(self._node).touch()
        return self._signalled or self._let_go or files.there(self._job.cancel)

    def _end(self, outcome: Outcome, error: str, code: int | None) -> int:
        """Write the result unless the worker did, which knows more."""
        if outcome == "completed" and self._node > 0:
            return 0  # the first node's to say
        if outcome == "failed" and shutil.disk_usage(self._job.path).free < FULL_BYTES:
            error += f". No space left on the disk of {self._job.path}"  # nor for the log to say so
        detail = files.tail(self._job.log(self._node)) if outcome == "failed" else ""
        values: dict[str, object] = {"node": self._node} if self._several else {}
        if self._interrupted:  # by the cluster: it may go on elsewhere
            values["interrupted"] = True
        result = Result(outcome=outcome, error=error, detail=detail, exit_code=code, ended=files.now(), values=values)
        try:
            files.write_once(self._job.result, to_json(result), self._job.reserve)
        except OSError as exc:
            sys.stderr.write(f"rlnb.job: the result could not be written: {exc}\n")
            return 1
        return 0 if outcome == "completed" else 1


def _size(paths: Sequence[Path]) -> int:
    size = 0
    for path in paths:
        with contextlib.suppress(OSError):
            size += path.stat().st_size
    return size


def _keep_space(path: Path) -> None:
    with contextlib.suppress(OSError), open(path, "wb") as file:
        file.write(b"\0" * RESERVE_BYTES)


def run_job(argv: Sequence[str]) -> int:
    """Run the command that was written for a job."""
    parser = argparse.ArgumentParser(prog="rlnb.job")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--node", type=int, default=0)
    parser.add_argument("--master", default="")
    parser.add_argument("--injected", action="store_true")
    parser.add_argument("--lifeline", action="store_true")
    parser.add_argument("--deadline", type=float)
    parser.add_argument("--hang-after", type=float)
    asked = parser.parse_args(argv)
    job = newest_training(asked.folder) if asked.injected else JobDir(asked.folder)
    command = from_json(Command, files.read_json(job.command) or {})
    if asked.injected:
        asked_for = from_json(Manifest, files.read_json(run_dir_of(job.path).manifest) or {}).resources
        gpus = 0 if asked_for.device == "cpu" else asked_for.nproc_per_node
        member = injected(asked.folder, command.nodes, gpus, os.environ)
    else:
        member = Member(asked.node, command.nodes, asked.master)
    agent = Agent(job, command, member, lifeline=asked.lifeline, deadline=asked.deadline, hang_after_s=asked.hang_after)
    return agent.run(lambda command: spawn(command, job.log(member.node)))


# -- the warm worker -------------------------------------------------------------------------------------


def keep_warm(log: Path, argv: Sequence[str]) -> int:
    """Start a warm worker and pass JSON lines between the kernel (stdin, stdout) and it.

    Ends with the kernel. A line with the key ``adopt`` names a job: the worker then trains it under
    this agent, and the kernel has no further say but through the job's folder.
    """
    replies, worker_end = os.pipe()
    with open(log, "ab") as output:
        worker = subprocess.Popen(
            [*argv, str(worker_end)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=(worker_end,),
            preexec_fn=die_with_parent,
        )
    os.close(worker_end)
    assert worker.stdin is not None
    line = _relay(replies, worker.stdin, log)
    if line is None:
        kill_descendants(0.0)
        return 0
    job, earlier_log = JobDir(Path(json.loads(line)["adopt"])), open(log, "rb")  # noqa: SIM115 - the kernel removes it
    earlier_log.seek(0, os.SEEK_END)
    _tell_kernel({"adopted": True})
    _let_go_of_kernel(job.log())

    def start(_: Command) -> subprocess.Popen[bytes]:
        assert worker.stdin is not None
        worker.stdin.write(line)
        worker.stdin.flush()
        return worker

    command = from_json(Command, files.read_json(job.command) or {})
    return Agent(job, command, earlier_log=earlier_log).run(start)


def _relay(replies: int, worker: IO[bytes], log: Path) -> bytes | None:
    """Pass lines both ways; return the line that hands over a job, None when either side is gone or the start hangs."""
    pending, ready, told = b"", False, False
    start = Silence(log, lambda: ready)
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        selector.register(replies, selectors.EVENT_READ)
        while True:
            if hangs := start.hangs():
                _tell_kernel({"hangs": hangs})
                return None
            if start.silent and not told:
                _tell_kernel({"silent": str(log)})
            told = start.silent
            for key, _ in selector.select(None if ready else 1.0):
                data = os.read(key.fd, 1 << 16)
                if not data:
                    return None
                if key.fd == replies:
                    ready = True  # the first that a worker says is that it has started
                    os.write(1, data)
                    continue
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    if b'"adopt"' in line and "adopt" in json.loads(line):
                        return line + b"\n"
                    try:
                        worker.write(line + b"\n")
                        worker.flush()
                    except BrokenPipeError:
                        return None


def _tell_kernel(message: Mapping[str, object]) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


def _let_go_of_kernel(log: Path) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)


def keep_beside(argv: Sequence[str]) -> int:
    """Run a command, with its output as this process's own, until it ends or the kernel (stdin) is gone."""
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
    process = os.pidfd_open(child.pid)
    ready: list[int] = []
    while process not in ready and not (0 in ready and not os.read(0, 1 << 16)):
        ready, _, _ = select.select([0, process], [], [])
    kill_descendants(TERM_GRACE_S)
    return child.poll() or 0


def main(argv: Sequence[str]) -> int:
    adopt_orphans()
    if argv[:1] == ["--beside"]:
        return keep_beside(argv[1:])
    if argv[:1] == ["--warm"]:
        return keep_warm(Path(argv[1]), argv[2:])
    return run_job(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
