"""The actions that a page may start on runs. Each action is an ``rlnb`` command."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import rlnb
from rlnb_jupyterlab import subprocesses
from rlnb_jupyterlab.messages import ActionMessage, Json
from rlnb_jupyterlab.pages import Pages

AT_ONCE = 4
"""Maximum number of commands that run at the same time; further ones wait."""
NEVER_WAITS = "cancel"
ENDED_KEPT = 50
"""Number of ended actions whose last message is kept for pages that connect later, such as after a lost connection."""
REPORT = "report.html"
TOGETHER = "delete"
"""The action that a single command performs on many runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The options of an action."""

    checkpoint: str = ""
    """Name of a checkpoint; an empty one leaves the choice to the command."""
    episodes: int = 0
    """Episodes; 0 leaves the number to the command."""
    max_iterations: int = 0
    """Iterations; 0 leaves the number to the command."""

    @classmethod
    def of(cls, fields: Mapping[str, Json]) -> Options:
        """Return the options that a page has sent; other fields are ignored.

        Raises:
            TypeError, ValueError, OverflowError: A field is not a whole number.
        """
        numbers = {name: int(fields.get(name) or 0) for name in ("episodes", "max_iterations")}  # type: ignore[arg-type]
        return cls(checkpoint=str(fields.get("checkpoint") or ""), **numbers)


def command(action: str, runs: Sequence[rlnb.Run], options: Options) -> list[str] | None:
    """Return the arguments of ``rlnb`` for an action; None if there is no such action.

    Args:
        action: Name of the action.
        runs: One run; several for :data:`TOGETHER`.
        options: Options of the action.

    Raises:
        StopIteration: The run has no such checkpoint.
    """
    run, path = runs[0], str(runs[0].path)
    checkpoint = []
    if options.checkpoint:
        checkpoint = [f"--checkpoint={next(p for p in run.checkpoints if p.name == options.checkpoint)}"]
    episodes = [f"--episodes={options.episodes}"] if options.episodes else []
    max_iterations = [f"--max-iterations={options.max_iterations}"] if options.max_iterations else []
    arguments = {
        "cancel": ["cancel", path],
        "resume": ["resume", "--detach", *checkpoint, *max_iterations, path],
        "evaluate": ["evaluate", *checkpoint, *episodes, path],
        "export": ["export", *checkpoint, path],
        "report": ["report", f"--output={run.path / REPORT}", path],
        "delete": ["runs", "prune", "--whole", "--yes", *(str(run.path) for run in runs)],
    }
    return arguments.get(action)


async def _output(arguments: Sequence[str], folder: Path) -> tuple[int, str]:
    """Return the exit status and the output of an ``rlnb`` command; a cancelled call ends the command."""
    process = await subprocesses.start(["rlnb", *arguments], folder)
    try:
        return await subprocesses.end_of(process)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()


class Actions:
    """The running commands; every page gets the messages about them."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn: asyncio.Semaphore | None = None
        self._alone: asyncio.Lock | None = None
        self._messages: dict[str, ActionMessage] = {}

    @property
    def messages(self) -> list[ActionMessage]:
        """The last message of each running action, and of some that have ended; oldest first."""
        return list(self._messages.values())

    def start(self, action: str, runs: Mapping[str, rlnb.Run], arguments: Sequence[str]) -> str:
        """Start a command on runs, given by their keys, and return the id of its messages."""
        name = secrets.token_hex(6)
        task = asyncio.get_running_loop().create_task(self._run(name, action, runs, arguments))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return name

    async def _run(self, name: str, action: str, runs: Mapping[str, rlnb.Run], arguments: Sequence[str]) -> None:
        self._turn, self._alone = self._turn or asyncio.Semaphore(AT_ONCE), self._alone or asyncio.Lock()
        turn = self._alone if action == TOGETHER else self._turn
        message = ActionMessage(id=name, action=action, keys=list(runs))
        self._tell(message)
        root = next(iter(runs.values())).path.parent.parent
        status, output, rest = 1, "", list[str]()
        try:
            async with contextlib.nullcontext() if action == NEVER_WAITS else turn:
                if action == TOGETHER:  # one missing run would make the command fail for all
                    present = [run for run in runs.values() if run.path.exists()]
                    arguments = (command(action, present, Options()) or []) if present else []
                status, output = await _output(arguments, root) if arguments else (0, "")
        except OSError as exc:  # such as no memory for a process
            output = f"The command could not be started: {exc}"
        if action == TOGETHER:
            rest = [key for key, run in runs.items() if run.path.exists()]
        self._tell(dataclasses.replace(message, state="failed" if status else "done", output=output, left=rest))

    def _tell(self, message: ActionMessage) -> None:
        self._messages.pop(message.id, None)
        self._messages[message.id] = message
        ended = [name for name, other in self._messages.items() if other.state != "running"]
        for name in ended[:-ENDED_KEPT]:
            del self._messages[name]
        self._pages.tell(message)

    async def stop(self) -> None:
        """End the running commands, but not the jobs that they have started."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
