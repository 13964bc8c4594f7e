"""A job with warm simulators on another machine, as this kernel sees it."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from rlnb.contracts.launchers import Launcher
from rlnb.errors import CheckError, RlnbError
from rlnb.mirror.connection import Connection
from rlnb.mirror.frames import Closed, Frame
from rlnb.mirror.server import problems_of
from rlnb.records.layout import JobDir
from rlnb.settings import options
from rlnb.simulation.remote_job import RELAY, SimulatorJob, manifest_of
from rlnb.spec import Json, Manifest

START_S = 60.0
"""Seconds within which the other machine has to start the job, or its queue to accept it."""
PING_S = 5.0
SILENT_S = 20.0
"""Seconds without a word after which the connection is given up. The other end says something every second."""
REASON_S = 15.0
"""Seconds to wait for the reason of a job's end, which its launcher may know late."""


class Machine(Launcher, Protocol):
    """A launcher of another machine, as :class:`rlnb.launchers.RemoteLauncher` is one."""

    place: str
    """Name of the other machine, as its user writes it."""

    @property
    def queue(self) -> Launcher | None:
        """Launcher of the other machine; None is its local one."""
        ...

    def argv(self, module: str = ..., *arguments: str) -> Sequence[str]:
        """Return the command of this machine that runs a module of rlnb on the other one."""
        ...

    def wish(self, kind: str, manifest: Manifest, data: Mapping[str, Json] | None = None) -> Frame:
        """Return the first frame of a connection."""
        ...

    def reason(self, code: int | None, error: str) -> str:
        """Return why the other machine cannot be reached, in one line."""
        ...

    def run_there(self, run: Path) -> str | None:
        """Return the folder on the other machine of a run in a folder here; None if it has none."""
        ...


class FarJob(SimulatorJob):
    """A job on another machine that serves warm simulators to this kernel.

    A connection holds the job, and ends it. The job's key and all of its files stay on the other machine.

    Args:
        machine: Launcher of the other machine.
        python: Command of the worker's interpreter there; None is that of rlnb there.
        asset_root: Explicit asset root there.

    Raises:
        CheckError: The other machine cannot start the job; nothing was started.
        RlnbError: The other machine does not answer.
    """

    def __init__(self, machine: Machine, python: str | None, asset_root: str | None) -> None:
        super().__init__(machine)
        self._machine, self.log = machine, None
        manifest = manifest_of(machine, python, asset_root)
        if problems := machine.check(manifest):
            raise CheckError(f"simulator on {machine.place}", problems)
        self._state: Mapping[str, Json] = {}
        self._lost = ""
        """Why the connection has ended; empty while there is one."""
        self._reasons: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._connection = Connection(machine.argv(), machine.place)
        try:
            self.folder = self._start(manifest)
        except BaseException:
            self._connection.close()
            raise
        self._listener = threading.Thread(target=self._listen, daemon=True, name="simulator's job")
        self._listener.start()
        self.tell()

    def _start(self, manifest: Manifest) -> JobDir:
        """Start the job; return its folder there."""
        wish = self._machine.wish("simulator", manifest, {"idle_s": options.warm_idle_s})
        try:
            answer = self._connection.answer(wish, START_S)
        except Closed as exc:
            raise RlnbError(self._why(exc)) from exc
        if answer is None:
            raise RlnbError(f"{self._machine.place} did not start the simulator's job within {START_S:.0f} s.")
        if answer.kind == "refused":
            raise CheckError(f"simulator on {self._machine.place}", problems_of(answer))
        if answer.kind != "started":
            raise RlnbError(f"{self._machine.place}: {answer.data.get('error')}")
        return JobDir(Path(str(answer.data["folder"])))

    def _listen(self) -> None:
        """Note what the other end says, and show it that this kernel lives."""
        channel, pinged_s = self._connection.channel, float("-inf")
        try:
            while time.monotonic() - channel.heard_s < SILENT_S:
                if time.monotonic() - pinged_s > PING_S:
                    pinged_s = time.monotonic()
                    channel.send(Frame(kind="ping"))
                frame = channel.receive(1.0)
                if frame is not None and frame.kind == "state":
                    self._state = frame.data
                elif frame is not None and frame.kind == "reason":
                    self._reasons.put(str(frame.data.get("text", "")))
            raise Closed("it does not answer")
        except Closed as exc:
            self._lost = "" if self._over else self._why(exc)
            self._reasons.put("")
            self._connection.close()

    def _why(self, exc: Closed) -> str:
        return self._machine.reason(self._connection.code, self._connection.reason(exc))

    def relay_argv(self, *arguments: str) -> Sequence[str]:
        """Return the argv of a process whose standard streams are a connection to the job."""
        return self._machine.argv(RELAY, str(self.folder.path), *arguments)

    def run_there(self, run: Path) -> str | None:
        """Return the folder on the other machine of a run in a folder here; None if it has none."""
        return self._machine.run_there(run)

    @property
    def ended(self) -> bool:
        """Whether the job has ended, as far as is known here."""
        return self._over or bool(self._lost) or bool(self._state.get("ended"))

    @property
    def name(self) -> str:
        """The launcher and its machine, and the job in the queue there, such as ``"ssh anna@login, slurm job 12"``."""
        name = str(self._state.get("name", "")) if self._machine.queue else ""
        return f"{self._machine.name} {self._machine.place}" + (f", {name}" if name else "")

    def reason(self) -> str:
        """Return why the job has ended and the end of its log, or that there is no connection."""
        text = ""
        try:
            self._connection.channel.send(Frame(kind="reason"))
        except Closed:
            self._listener.join(REASON_S)  # which asks the command why it has ended
        else:
            with contextlib.suppress(queue.Empty):
                text = self._reasons.get(timeout=REASON_S)
        self.let_go()
        self._connection.close()
        return text or (
            f"There is no connection to {self._machine.place}, so the warm simulator there ends: "
            f"{self._lost or 'it does not answer.'}"
        )

    def end(self) -> None:
        """End the job, and leave the queue of the other machine."""
        super().end()
        self._connection.close()
