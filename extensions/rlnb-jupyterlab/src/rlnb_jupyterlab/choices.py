"""What can be chosen: tasks, libraries, launchers and devices of this machine."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from pathlib import Path
from typing import Any

from rlnb import __version__
from rlnb_jupyterlab import subprocesses

logger = logging.getLogger(__name__)

MOST_TASKS = 1 << 20
QUICK_S, TASKS_S = 60.0, 300.0
"""Isaac Lab's tasks are known only to a process that has imported it."""
AGAIN_S = 60.0
"""After which what has failed is asked again."""


class Registry:
    """Asked once, by processes of their own: plugins are imported there, and not in the server."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._found: dict[str, Any] | None = None
        self._failed: tuple[float, Exception] | None = None
        self._tasks: list[str] = []
        self._asking: asyncio.Task[None] | None = None
        self._asked_s = float("-inf")

    async def quick(self) -> dict[str, Any]:
        """Return what is known without Isaac Lab."""
        if self._found is None:
            if self._failed and time.monotonic() - self._failed[0] < AGAIN_S:
                raise self._failed[1]
            try:
                libraries, launchers = await asyncio.gather(self._json("libraries"), self._json("launchers"))
            except (RuntimeError, TimeoutError, ValueError) as exc:
                self._failed = time.monotonic(), exc
                raise
            self._found = {
                "version": __version__,
                "root": str(self._root),
                "libraries": libraries,
                "launchers": launchers,
            }
        return self._found

    async def get(self) -> dict[str, Any]:
        """Return what there is; Isaac Lab's tasks come later, to who asks again."""
        found = await self.quick()
        if self._asking is None or (self._asking.done() and not self._tasks and self._old()):
            self._asked_s = time.monotonic()
            self._asking = asyncio.get_running_loop().create_task(self._ask_for_tasks())
        cells = await asyncio.to_thread(lambda: sorted(path.stem for path in (self._root / "tasks").glob("*.py")))
        tasks = list(dict.fromkeys([*cells, *self._tasks]))
        return {**found, "tasks": tasks, "devices": ["auto", "cpu", "cuda"], "complete": self._asking.done()}

    def _old(self) -> bool:
        return time.monotonic() - self._asked_s > AGAIN_S

    async def _json(self, what: str) -> Any:
        code, text = await subprocesses.output(["rlnb", what, "--json"], self._root, within_s=QUICK_S)
        if code:
            raise RuntimeError(f"rlnb {what} failed: {text}")
        return json.loads(text)

    async def _ask_for_tasks(self) -> None:
        try:
            code, text = await subprocesses.output(["rlnb", "tasks"], self._root, within_s=TASKS_S, most=MOST_TASKS)
        except TimeoutError:
            logger.warning("rlnb tasks took more than %g s", TASKS_S)
            return
        if code == 0:
            self._tasks = [line.strip() for line in text.splitlines() if line.strip() and " " not in line.strip()]
