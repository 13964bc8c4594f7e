"""This kernel's warm worker: started when first needed, replaced when a run takes it or it ends."""

from __future__ import annotations

import atexit
import tempfile
import threading
from pathlib import Path

from rlnb.launch.warm import WarmWorker
from rlnb.settings import options

FRESH_AFTER_S = 10.0
"""Two start-ups side by side would delay the run's first iteration on a small machine."""

_current: WarmWorker | None = None
_keep = True


_starting = threading.Lock()


def warm_worker(python: str | None = None, asset_root: str | None = None) -> WarmWorker:
    """Return the living warm worker for these settings, starting one if there is none."""
    with _starting:
        return _warm_worker(python, asset_root)


def _warm_worker(python: str | None, asset_root: str | None) -> WarmWorker:
    global _current
    python, asset_root = python or options.python, asset_root or options.asset_root
    if _current and _current.alive and (_current.python, _current.asset_root) == (python, asset_root):
        return _current
    shut_down()
    folder = Path(tempfile.mkdtemp(prefix="rlnb-warm-"))
    _current = WarmWorker(python, asset_root, folder / "worker.log")
    return _current


def idle_worker(python: str | None, asset_root: str | None) -> WarmWorker | None:
    """Return the warm worker if there is one that fits and has nothing to do."""
    fits = _current and (_current.python, _current.asset_root) == (python, asset_root)
    return _current if _current and fits and _current.alive and not _current.busy else None


def let_go(python: str | None, asset_root: str | None) -> None:
    """Forget the worker, a run has it now; a fresh one starts once that run's own start-up is over."""
    global _current
    _current = None
    if not _keep:
        return
    timer = threading.Timer(FRESH_AFTER_S, warm_worker, (python, asset_root))
    timer.daemon = True
    timer.start()


def keep_none() -> None:
    """Start no fresh worker after a run took the last one: for a command that ends with its run."""
    global _keep
    _keep = False


@atexit.register
def shut_down() -> None:
    """End the warm worker, if there is one."""
    global _current
    if _current is not None and _current.alive:
        _current.close()
    _current = None
