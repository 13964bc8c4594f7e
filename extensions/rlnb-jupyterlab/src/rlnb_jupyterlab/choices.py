"""The choices of a form: tasks, libraries, launchers and devices of this machine."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rlnb
from rlnb.launchers import QueueTable
from rlnb.plugin import TRAIN_ARGUMENTS
from rlnb_jupyterlab import subprocesses

logger = logging.getLogger(__name__)

MOST_TASKS = 1 << 20
QUICK_S, TASKS_S = 60.0, 300.0
"""Time limits of rlnb's commands in seconds; tasks take longer, since only a process with Isaac Lab can list them."""
AGAIN_S = 60.0
"""Seconds after which a failed command is repeated."""
FAILURES = (RuntimeError, TimeoutError, TypeError, KeyError, ValueError)
"""Errors of an rlnb command that fails, hangs or prints unexpected JSON."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LibraryChoice:
    """An installed RL library, as ``rlnb libraries --json`` prints it."""

    name: str
    step_unit: str
    multi_agent: bool
    distributed: bool
    exports: Sequence[str]
    requires: Sequence[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class LauncherChoice:
    """An installed launcher, as ``rlnb launchers --json`` prints it."""

    name: str
    tables: Sequence[QueueTable] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Installed:
    """The libraries and launchers of this machine, which are listed without importing Isaac Lab."""

    libraries: Sequence[LibraryChoice]
    launchers: Sequence[LauncherChoice]


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """A field of the form, which is an argument of ``rlnb.train``."""

    name: str
    label: str
    whole: bool
    """Whether it takes whole numbers."""
    default: str
    """Its first text; empty if that is left to the task or the library."""
    choices: Sequence[str]
    """Texts that the field offers."""
    several: bool
    """Whether it takes several texts, with commas between them."""


def fields() -> list[Field]:
    """Return the fields for which the page needs nothing but this description."""
    parameters = inspect.signature(rlnb.train).parameters
    return [
        Field(
            name=name,
            label=argument.label,
            whole=re.search(r"\bint\b", str(parameters[name].annotation)) is not None and not argument.several,
            default="" if parameters[name].default in (None, ()) else str(parameters[name].default),
            choices=argument.choices,
            several=argument.several,
        )
        for name, argument in TRAIN_ARGUMENTS.items()
        if argument.label
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """All choices of a form; the names of the fields are those of ``Registry`` in ``ts/server/protocol.ts``."""

    version: str
    root: str
    libraries: Sequence[LibraryChoice]
    launchers: Sequence[str]
    tasks: Sequence[str]
    complete: bool
    """Whether the search for Isaac Lab's tasks has ended."""
    fields: Sequence[Field]


class Choices:
    """Reads the choices once, in separate processes, so that the server imports no plugin."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._installed: Installed | None = None
        self._failure: tuple[float, Exception] | None = None
        self._tasks: Sequence[str] = ()
        self._search: asyncio.Task[None] | None = None
        self._search_s = float("-inf")
        """Time of the last search for tasks."""

    async def installed(self) -> Installed:
        """Return the choices that are listed without importing Isaac Lab."""
        if self._installed is None:
            if self._failure and time.monotonic() - self._failure[0] < AGAIN_S:
                raise self._failure[1]
            try:
                libraries, launchers = await asyncio.gather(self._rows("libraries"), self._rows("launchers"))
                self._installed = Installed(
                    libraries=[LibraryChoice(**row) for row in libraries],
                    launchers=[_launcher(row["name"], row["tables"]) for row in launchers],
                )
            except FAILURES as exc:
                self._failure = time.monotonic(), exc
                raise
        return self._installed

    async def offer(self) -> Offer:
        """Return all choices; they include Isaac Lab's tasks once the search has ended."""
        installed = await self.installed()
        if self._search is None or (self._search.done() and not self._tasks and self._old()):
            self._search_s = time.monotonic()
            self._search = asyncio.get_running_loop().create_task(self._find_tasks())
        cells = await asyncio.to_thread(lambda: sorted(path.stem for path in (self._root / "tasks").glob("*.py")))
        return Offer(
            version=rlnb.__version__,
            root=str(self._root),
            libraries=installed.libraries,
            launchers=[launcher.name for launcher in installed.launchers],
            tasks=list(dict.fromkeys([*cells, *self._tasks])),
            complete=self._search.done(),
            fields=fields(),
        )

    async def stop(self) -> None:
        """End the search for tasks."""
        if self._search is not None:
            self._search.cancel()
            await asyncio.gather(self._search, return_exceptions=True)

    def _old(self) -> bool:
        return time.monotonic() - self._search_s > AGAIN_S

    async def _rows(self, command: str) -> Any:
        code, text = await subprocesses.output(["rlnb", command, "--json"], self._root, within_s=QUICK_S)
        if code:
            raise RuntimeError(f"rlnb {command} failed: {text}")
        return json.loads(text)

    async def _find_tasks(self) -> None:
        try:
            code, text = await subprocesses.output(["rlnb", "tasks"], self._root, within_s=TASKS_S, most=MOST_TASKS)
        except TimeoutError:
            logger.warning("rlnb tasks took more than %g s", TASKS_S)
            return
        if code == 0:
            self._tasks = [line.strip() for line in text.splitlines() if line.strip() and " " not in line.strip()]


def _launcher(name: str, tables: Sequence[Any]) -> LauncherChoice:
    """Return a launcher with the tables of its queue."""
    return LauncherChoice(
        name=name,
        tables=[
            QueueTable(title=table["title"], argv=tuple(table["argv"]), columns=tuple(table["columns"]))
            for table in tables
        ],
    )
