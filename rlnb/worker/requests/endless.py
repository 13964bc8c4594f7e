"""Ends a step or a reset in which the task's code does not return."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

from rlnb.errors import InterruptedRequest, RlnbError
from rlnb.protocol.messages import is_library
from rlnb.worker.isaac import release

LIMIT_S = 20.0
"""Seconds that one call of a function of the task may take. Steps of an env take milliseconds."""
LOOK_S = 0.5
COMPILERS = (
    *("/torch/_inductor/", "/torch/_dynamo/", "/torch/jit/", "/torch/utils/cpp_extension", "/triton/"),
    *("/warp/_src/build", "/numba/"),
)
"""Parts of the paths of compilers, which a function may have to wait for at first."""


class _Watch(threading.Thread):
    """Looks at the main thread; interrupts it once a call of the task's own code takes too long."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(daemon=True, name="watch for endless loops")
        self._limit_s, self._main = limit_s, threading.main_thread().ident or 0
        self.over = threading.Event()
        self.place = ""
        """Where the main thread was when it was interrupted."""

    def run(self) -> None:
        call: FrameType | None = None
        since_s = time.monotonic()
        current_frames = release.required(sys, "_current_frames", "the watch for endless loops")
        while not self.over.wait(LOOK_S):
            frames = [*_frames(current_frames().get(self._main))]
            own = [frame for frame in frames if _is_own(frame)]
            compiles = any(part in frame.f_code.co_filename for frame in frames for part in COMPILERS)
            outermost = own[-1] if own else None
            if outermost is None or outermost is not call or compiles:
                call, since_s = outermost, time.monotonic()
            elif time.monotonic() - since_s > self._limit_s:
                innermost = own[0]
                code = innermost.f_code
                self.place = f"{code.co_filename}, line {innermost.f_lineno}, in {code.co_name}"
                signal.pthread_kill(self._main, signal.SIGINT)
                return


def _is_own(frame: FrameType) -> bool:
    """Return whether a frame is of the task's own code. Isaac Lab and Isaac Sim may be source checkouts."""
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return not is_library(frame.f_code.co_filename) and not package.startswith(("isaac", "omni", "newton", "warp"))


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and those that called it."""
    while frame is not None:
        yield frame
        frame = frame.f_back


@contextlib.contextmanager
def ends(limit_s: float | None = None) -> Iterator[None]:
    """End the block if a call of the task's own code in it does not return.

    SIGINT has to raise :class:`rlnb.errors.InterruptedRequest`. A loop in C++ cannot be ended in this way; the kernel's
    limit for a request ends that.

    Args:
        limit_s: Seconds that a call may take; None is ``LIMIT_S``.

    Raises:
        RlnbError: A call did not return. The error says where it was.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    watch = _Watch(LIMIT_S if limit_s is None else limit_s)
    watch.start()
    try:
        yield
    except InterruptedRequest:
        if not watch.place:
            raise
        raise RlnbError(
            f"The task has not returned from a step or reset for {watch._limit_s:.0f} s: it is in {watch.place}. "
            "Look for an endless loop there."
        ) from None
    finally:
        watch.over.set()
        watch.join()
