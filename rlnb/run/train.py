"""``rlnb.train`` and ``rlnb.check``. ``train.pyi`` is written by ``tests/rig/stub.py``."""

from __future__ import annotations

from typing import Any

from rlnb.run.listing import Runs
from rlnb.run.run import Run, start_each
from rlnb.spec import Task
from rlnb.training.arguments import docstring, signature
from rlnb.training.repeat import requests_of, seeds_of
from rlnb.training.start import check as check


def train(task: Task | str | None = None, **arguments: Any) -> Run | Runs:
    """Start a training and return its run at once. The training continues if this process ends.

    Returns:
        The run, which is queued or starting; with a list of seeds, the runs.

    Raises:
        CheckError: The run would fail. It lists all problems; nothing was written.
    """
    runs = start_each(requests_of(task, arguments))
    return runs[0] if seeds_of(arguments) is None else Runs(runs)


train.__signature__ = signature()  # type: ignore[attr-defined]
train.__doc__ = docstring(train.__doc__)
