"""The stub of ``rlnb.train``, for editors and type checkers: ``python tests/rig/stub.py`` writes it."""

from __future__ import annotations

import inspect
import textwrap
from pathlib import Path

import rlnb
from rlnb.training.arguments import signature

PATH = Path(rlnb.__file__).parent / "run" / "train.pyi"
HEAD = """\
# Written by tests/rig/stub.py.
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from rlnb.configs.agent import AgentArgument
from rlnb.contracts.launchers import Launcher
from rlnb.errors import Problem
from rlnb.run.run import Run
from rlnb.spec import Task
from rlnb.training.arguments import AlertArgument

"""
CHECK = "def check(task: Task | str | None = None, *, deep: bool = False, **arguments: Any) -> list[Problem]: ...\n"


def stub() -> str:
    """Return the stub, with the docstring that editors show."""
    lines = ["def train("]
    for number, parameter in enumerate(signature().parameters.values()):
        lines += ["    *,"] if number == 1 else []
        lines.append(f"    {parameter.name}: {parameter.annotation} = {parameter.default!r},".replace("'", '"'))
    text = f'"""{inspect.getdoc(rlnb.train)}\n"""'
    return HEAD + "\n".join([*lines, ") -> Run:", textwrap.indent(text, "    "), "    ...\n\n"]) + CHECK


if __name__ == "__main__":
    PATH.write_text(stub(), encoding="utf-8")
