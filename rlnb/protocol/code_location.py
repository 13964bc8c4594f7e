"""Locations in the user's own code: where a worker is, and where an error was raised.

Apart from ``messages``, because every training loads it.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from pathlib import Path

_FRAME = re.compile(r'  File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>.+)')
_INSTALLED = re.compile(r"/(lib/python3\.\d+|site-packages|dist-packages)/")
_RLNB = f"{Path(__file__).parents[1]}/"


def location_of_stacks(stacks: str) -> str:
    """Return the innermost line of the user's own code that the main thread executes, else its innermost line.

    Args:
        stacks: Output of Python's faulthandler, whose last part is the main thread's.

    Returns:
        Text such as ``"/home/me/puck.py, line 31, in _reset_idx"``; empty if there is no stack.
    """
    main_thread = stacks.rpartition("(most recent call first):")[2]
    frames = [match.groupdict() for match in map(_FRAME.fullmatch, main_thread.splitlines()) if match]
    own = [frame for frame in frames if not is_library(frame["file"])]
    for frame in (own or frames)[:1]:
        return f"{frame['file']}, line {frame['line']}, in {frame['function']}"
    return ""


def location_of_error(exc: BaseException, without: Sequence[str] = ()) -> tuple[str, str]:
    """Return the location in the user's own code where an error was raised, and its traceback's lines about that code.

    Both are empty if none of the user's own code was executed.

    Args:
        exc: The error.
        without: Folders with further code that is not the user's, such as that of plugins.
    """
    if isinstance(exc, SyntaxError) and exc.filename and not is_library(exc.filename):
        return f"{exc.filename}, line {exc.lineno}", "".join(traceback.format_exception_only(exc))
    frames = traceback.extract_tb(exc.__traceback__)
    own = [frame for frame in frames if not (is_library(frame.filename) or frame.filename.startswith(tuple(without)))]
    if not own:
        return "", ""
    frame, notes = own[-1], [f"{note}\n" for note in getattr(exc, "__notes__", ())]
    return f"{frame.filename}, line {frame.lineno}, in {frame.name}", "".join([*traceback.format_list(own), *notes])


def is_library(file: str) -> bool:
    """Return whether a file belongs to Python, an installed package, or rlnb. The worker may have another Python."""
    return file.startswith(("<", _RLNB)) or _INSTALLED.search(file) is not None
