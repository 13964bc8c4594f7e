"""Locations in the user's own code: where a worker is, and where and with which words an error was raised.

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
MOST_LINES = 4
"""Most lines of an error that are shown."""
OVERLOADS = ", but expected one of:"
"""End of the line after which torch lists the overloads of a function."""
MOST_CALLERS = 2
"""Most calls in the user's own code that lead to an error and are shown."""


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
    """Return the location in the user's own code where an error was raised, and the lines of that code.

    These are a line for each of the last calls that led there, and the line at the location with Python's marks. Both
    are empty if none of the user's own code was executed.

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
    *callers, frame = own
    calls = [_call(caller, frame.filename) for caller in callers[-MOST_CALLERS:]]
    _, _, source = "".join(traceback.format_list([frame])).partition("\n")
    notes = [f"{note}\n" for note in getattr(exc, "__notes__", ())]
    return f"{frame.filename}, line {frame.lineno}, in {frame.name}", "".join([*calls, source, *notes])


def _call(frame: traceback.FrameSummary, file: str) -> str:
    """Return a line about a call; it names the file if it is another one."""
    place = "" if frame.filename == file else f"{frame.filename}, "
    return f"  from {place}line {frame.lineno}, in {frame.name}: {frame.line}\n"


def text_of_error(exc: BaseException) -> str:
    """Return the class and the message of an error in the user's own code, with the name that Python suggests.

    An error of torch may go on with all overloads of a function, which are left out. Of another long one, such as that
    of a function of TorchScript, which has a traceback of its own, the first and the last lines are returned.
    """
    words = str(traceback.TracebackException(type(exc), exc, exc.__traceback__, limit=0))
    lines = [line for line in words.splitlines() if line.strip()] or [""]
    if lines[0].endswith(OVERLOADS):
        lines = [lines[0].removesuffix(OVERLOADS)]
    elif len(lines) > MOST_LINES:
        lines = [lines[0], "...", *lines[2 - MOST_LINES :]]
    return "\n".join([f"{type(exc).__name__}: {lines[0]}".removesuffix(": "), *lines[1:]])


def is_library(file: str) -> bool:
    """Return whether a file belongs to Python, an installed package, or rlnb. The worker may have another Python."""
    return file.startswith(("<", _RLNB)) or _INSTALLED.search(file) is not None
