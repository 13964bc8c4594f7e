"""``rlnb.train`` and ``rlnb.check``. ``train.pyi`` is written by ``tests/rig/stub.py``."""

from __future__ import annotations

from typing import Any

from rlnb.run.run import Run, start_run
from rlnb.spec import Task
from rlnb.training.arguments import docstring, signature
from rlnb.training.repeat import request_of
from rlnb.training.start import check as check


def train(task: Task | str | None = None, **arguments: Any) -> Run:
    """Start a training and return its run at once. The training continues if this process ends.

    Returns:
        The run, which is queued or starting.

    Raises:
        CheckError: The run would fail. It lists all problems; nothing was written.
    """
    return start_run(request_of(task, arguments))


train.__signature__ = signature()  # type: ignore[attr-defined]
train.__doc__ = docstring(train.__doc__)
