"""``%%task Name``: save a cell as a task module on disk. The cell's syntax is checked, but it is not executed."""

from __future__ import annotations

from typing import Any

from rlnb.notebook import define


def register_magics(ipython: Any) -> None:
    """Register ``%%task``; called by ``%load_ext rlnb``."""

    def task(line: str, cell: str) -> None:
        """Save this cell as the task ``%%task Name``; it is not executed in this kernel."""
        define.save(line.strip(), cell, of=define.owner(ipython.user_ns), where="cell", call="%%task")

    ipython.register_magic_function(task, magic_kind="cell", magic_name="task")
