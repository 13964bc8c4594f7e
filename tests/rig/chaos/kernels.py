"""Kernels: processes that act on runs while others do."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

CLOCK_S = 120.0
"""Seconds by which the clock of the second host is ahead."""
ANSWER_S = 90.0
"""Longest time that a call may take, in seconds. Optuna releases the lock of a killed sweep after 30 s."""
SCRIPT = """
import json, os, signal, sys, time
real, ahead_s, last = time.time, float(sys.argv[1]), int(sys.argv[2])
time.time = lambda: real() + ahead_s
root, events, active = os.environ["RLNB_ROOT"], [0], [False]
CHANGES = ("open", "os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "subprocess.Popen")
def die(event, arguments):
    if not active[0] or event not in CHANGES:
        return
    path = str(arguments[0])  # the name of an entry, if it is relative to the handle of its folder
    elsewhere = isinstance(arguments[0], int) or os.path.isabs(path) and root not in str(arguments)
    if elsewhere and event != "subprocess.Popen":
        return
    if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
        return
    events[0] += 1
    if events[0] == last:
        os.kill(os.getpid(), signal.SIGKILL)
if last:
    sys.addaudithook(die)
import rlnb
from rlnb.run import pruning
rlnb.options.warm = False
print("ready", flush=True)
for line in sys.stdin:
    verb, path, arguments, at_s = json.loads(line)
    try:
        run = rlnb.Run(rlnb.get_run(path).path) if path else None
        plan = rlnb.Runs([run]).prune(whole=True) if verb == "delete" else None
        time.sleep(max(0.0, at_s - real()))
        active[0] = True
        if verb == "resume":
            run.resume(**arguments)
        elif verb == "delete":
            plan.apply()
        elif verb == "train":
            rlnb.train("Echo", library="echo", **arguments)
        elif verb == "tag":
            run.tags.add("chaos"); run.notes.add("a note"); run.tags.discard("chaos")
        elif verb == "archive":
            rlnb.Runs([run]).archive().apply(); rlnb.Runs([run]).restore().apply()
        elif verb == "cancel":
            run.cancel()
        elif verb == "evaluate":
            run.evaluate(episodes=4)
        elif verb == "prune":
            rlnb.Runs([run]).prune(keep=1).apply()
        elif verb == "look":
            rlnb.runs().table(); rlnb.runs(archived=True).table(); rlnb.runs(state="completed", tag="chaos")
        elif verb == "sweep":
            rlnb.sweep("Echo", "echo", space={"agent.goal": (0.0, 1.0)}, **arguments).wait()
        answer = "accepted"
    except rlnb.RlnbError as exc:
        answer = f"refused: {exc}"
    except Exception as exc:
        import traceback
        answer = "foreign: " + traceback.format_exc()
    active[0] = False
    print(json.dumps(answer), flush=True)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A call of a kernel."""

    verb: str
    run: Path | None = None
    arguments: dict[str, object] | None = None
    at_s: float = 0.0
    """Time of the call, in seconds since the epoch."""


class Kernel:
    """A process that makes one call after the other."""

    def __init__(self, *, elsewhere: bool = False, dies_at: int = 0) -> None:
        """Start the process.

        Args:
            elsewhere: Whether it is on a second host, whose name and clock differ.
            dies_at: Number of the change to a file below the root before which it is killed; 0 is never.
        """
        ahead_s = CLOCK_S if elsewhere else 0.0
        argv = [sys.executable, "-c", SCRIPT, str(ahead_s), str(dies_at)]
        if elsewhere:
            argv = ["unshare", "--uts", "sh", "-c", 'hostname second && exec "$@"', "sh", *argv]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._ready = False

    def begin(self, call: Call) -> None:
        """Send a call; the kernel waits until its time."""
        assert self.process.stdin is not None
        line = json.dumps([call.verb, str(call.run or ""), call.arguments or {}, call.at_s])
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ready(self) -> None:
        """Wait until the kernel has imported rlnb."""
        if not self._ready:
            assert self.process.stdout is not None
            self.process.stdout.readline()
            self._ready = True

    def answer(self) -> str:
        """Return the answer to a call.

        It is "accepted", "refused: " or "foreign: " with an error, or an empty string if the kernel was killed. A
        kernel that does not answer within ``ANSWER_S`` is killed.
        """
        assert self.process.stdout is not None
        limit = threading.Timer(ANSWER_S, self.process.kill)
        limit.start()
        try:
            while line := self.process.stdout.readline():
                if line.startswith('"'):
                    return str(json.loads(line))
            return ""
        finally:
            limit.cancel()

    def kill(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.communicate()


@functools.cache
def second_host() -> bool:
    """Return whether this user can start a process that has another host name."""
    argv = ["unshare", "--uts", "hostname", "second"]
    return os.geteuid() == 0 and subprocess.run(argv, capture_output=True, check=False).returncode == 0


def at_once(kernels: list[Kernel], calls: list[Call], after_s: float = 0.1) -> list[str]:
    """Make calls at the same moment, one per kernel, and return the answers."""
    for kernel in kernels:
        kernel.ready()
    at_s = time.time() + after_s
    pairs = list(zip(kernels, calls, strict=True))
    for kernel, call in pairs:
        kernel.begin(Call(verb=call.verb, run=call.run, arguments=call.arguments, at_s=at_s + call.at_s))
    return [kernel.answer() for kernel, _ in pairs]
