"""Walltimes in the format that users write: ``"08:00:00"`` or ``"2-00:00:00"``."""

from __future__ import annotations

import re

WALLTIME = re.compile(r"(?:(\d+)-)?(\d+):(\d\d):(\d\d)")

SLURM = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d\d?))?(?::(\d\d?))?")


def seconds_of(walltime: object) -> int | None:
    """Return the seconds of a walltime such as ``"2-00:00:00"``; None if the value is not a walltime."""
    match = WALLTIME.fullmatch(walltime) if isinstance(walltime, str) else None
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def slurm_seconds_of(walltime: object) -> int | None:
    """Return the seconds of a walltime in any form of sbatch's ``--time``; None for other values.

    The forms are minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes and
    days-hours:minutes:seconds (https://slurm.schedmd.com/sbatch.html).
    """
    match = SLURM.fullmatch(walltime) if isinstance(walltime, str) else None
    if match is None:
        return None
    days, *clock = match.groups()
    numbers = [int(number) for number in clock if number is not None]
    if days is not None:
        numbers = [*numbers, 0, 0][:3]  # the first number counts hours
    elif len(numbers) < 3:
        numbers = [0, *numbers, 0][:3]  # the first number counts minutes
    hours, minutes, seconds = numbers
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def clock_of(seconds: int) -> tuple[int, int, int]:
    """Return a number of seconds as hours, minutes and seconds."""
    minutes, seconds = divmod(seconds, 60)
    return (*divmod(minutes, 60), seconds)
