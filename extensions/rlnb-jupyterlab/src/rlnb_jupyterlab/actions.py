"""What a page may have done with a run; each is an ``rlnb`` command, which a person could give as well."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import rlnb
from rlnb_jupyterlab import subprocesses
from rlnb_jupyterlab.pages import Pages

AT_ONCE = 4
"""Commands that run at the same time; further ones wait."""
NEVER_WAITS = "cancel"
ENDED_KEPT = 50
"""Actions that have ended, of which a page is told that connects later: its connection may have been cut meanwhile."""
REPORT = "report.html"
TOGETHER = "delete"
"""What one command does with many runs."""


def command(action: str, runs: Sequence[rlnb.Run], options: Mapping[str, Any]) -> list[str] | None:
    """Return the words of a command; None for an action that there is not.

    Args:
        action: Its name.
        runs: What it is about: one run, but for :data:`TOGETHER`.
        options: ``checkpoint`` (a name), ``episodes``, ``max_iterations``.
    """
    run, path = runs[0], str(runs[0].path)
    checkpoint = options.get("checkpoint")
    chosen = [f"--checkpoint={next(p for p in run.checkpoints if p.name == checkpoint)}"] if checkpoint else []
    number = {
        name: [f"--{name.replace('_', '-')}={int(options[name])}"] if options.get(name) else []
        for name in ("episodes", "max_iterations")
    }
    known = {
        "cancel": ["cancel", path],
        "resume": ["resume", "--detach", *chosen, *number["max_iterations"], path],
        "evaluate": ["evaluate", *chosen, *number["episodes"], path],
        "export": ["export", *chosen, path],
        "report": ["report", f"--output={run.path / REPORT}", path],
        "delete": ["runs", "prune", "--whole", "--yes", *(str(run.path) for run in runs)],
    }
    return known.get(action)


async def _printed(words: Sequence[str], folder: Path) -> tuple[int, str]:
    """Return the exit status of an ``rlnb`` command and what it prints; it ends when nobody waits for it any more."""
    process = await subprocesses.start(["rlnb", *words], folder)
    try:
        return await subprocesses.end_of(process)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()


class Actions:
    """Commands that go on, of which every page is told."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn: asyncio.Semaphore | None = None
        self._alone: asyncio.Lock | None = None
        self._said: dict[str, dict[str, Any]] = {}

    @property
    def said(self) -> list[dict[str, Any]]:
        """What was said last of each, oldest first: of those that go on, and of some that have ended."""
        return list(self._said.values())

    def start(self, action: str, runs: Mapping[str, rlnb.Run], words: list[str]) -> str:
        """Start a command about runs by their keys; return the name under which pages hear of it."""
        name = secrets.token_hex(6)
        task = asyncio.get_running_loop().create_task(self._run(name, action, runs, words))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return name

    async def _run(self, name: str, action: str, runs: Mapping[str, rlnb.Run], words: list[str]) -> None:
        self._turn, self._alone = self._turn or asyncio.Semaphore(AT_ONCE), self._alone or asyncio.Lock()
        turn = self._alone if action == TOGETHER else self._turn
        told = {"type": "action", "id": name, "action": action, "keys": list(runs), "left": list[str]()}
        self._tell({**told, "state": "running", "output": ""})
        root = next(iter(runs.values())).path.parent.parent
        status, printed = 1, ""
        try:
            async with contextlib.nullcontext() if action == NEVER_WAITS else turn:
                if action == TOGETHER:  # what is gone by now would keep the command from the others
                    there = [run for run in runs.values() if run.path.exists()]
                    words = (command(action, there, {}) or []) if there else []
                status, printed = await _printed(words, root) if words else (0, "")
        except OSError as exc:  # no memory for a process, say
            printed = f"The command could not be started: {exc}"
        if action == TOGETHER:
            told["left"] = [key for key, run in runs.items() if run.path.exists()]
        self._tell({**told, "state": "failed" if status else "done", "output": printed})

    def _tell(self, message: dict[str, Any]) -> None:
        self._said.pop(message["id"], None)
        self._said[message["id"]] = message
        ended = [name for name, said in self._said.items() if said["state"] != "running"]
        for name in ended[:-ENDED_KEPT]:
            del self._said[name]
        self._pages.tell(message)

    async def stop(self) -> None:
        """End those that go on; jobs that they started on a run end by themselves."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
