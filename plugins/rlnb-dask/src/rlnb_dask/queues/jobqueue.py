"""Imports dask-jobqueue, whose import sets a handler of interrupts for the whole process (0.9.0, ``runner.py``)."""

from __future__ import annotations

import importlib
import signal
import threading
from types import ModuleType
from typing import Any


def module(name: str) -> ModuleType:
    """Return a module of dask-jobqueue, such as ``"slurm"``, imported in any thread.

    Only the main thread may set a handler, so the import would fail in others. In the main thread an interrupt would
    from then on end the process, and not the cell.
    """
    own, set_handler = threading.get_ident(), signal.signal

    def keep(number: Any, handler: Any) -> Any:
        return None if threading.get_ident() == own else set_handler(number, handler)

    signal.signal = keep  # type: ignore[assignment]
    try:
        return importlib.import_module(f"dask_jobqueue.{name}")
    finally:
        signal.signal = set_handler
