"""Calls of ``sys.exit`` in the user's code, as errors that say why."""

from __future__ import annotations

import traceback
from types import FrameType

from rlnb.errors import RlnbError


def as_error(exc: BaseException) -> BaseException:
    """Return an error with the sentence of argparse if a parser has ended this process, else the exception itself.

    argparse prints what it refuses and exits with status 2, which alone says nothing.
    """
    calls = [*traceback.walk_tb(exc.__traceback__)] if isinstance(exc, SystemExit) else []
    refusals = [frame for frame, _ in calls if frame.f_code.co_name == "error" and _is_of_argparse(frame)]
    if not refusals:
        return exc
    caller, line = next((frame, line) for frame, line in reversed(calls) if not _is_of_argparse(frame))
    error = RlnbError(
        f"{caller.f_code.co_filename}, line {line}, parses the command line of the worker, which is rlnb's own. "
        f"argparse says: {refusals[0].f_locals.get('message')}. "
        'Move this line below `if __name__ == "__main__":`.'
    )
    return error.with_traceback(exc.__traceback__)


def _is_of_argparse(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") == "argparse"
