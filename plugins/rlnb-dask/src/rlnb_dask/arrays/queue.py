"""What a queue does with arrays: submit one, list its elements, remove some of them."""

from __future__ import annotations

import logging
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from rlnb import RlnbError

logger = logging.getLogger("rlnb_dask")
ANSWER_S = 60
"""Seconds that a queue may take to answer a command."""


class AwayError(RlnbError):
    """The queue's controller does not answer, so that a later attempt may succeed."""


class ArrayQueue(ABC):
    """The commands of a queue for arrays.

    The elements of an array have positions from 0. The queue counts them from ``first``.
    """

    first: ClassVar[int]
    """The queue's number of the first element."""
    variable: ClassVar[str]
    """Environment variable of an element that holds its number."""
    account_s: ClassVar[float] = 0.0
    """Seconds by which the queue's account of the end of an element may lag behind."""

    @abstractmethod
    def submit_argv(
        self, script: Path, members: Path, *, name: str, count: int, at_once: int | None, outputs: Path
    ) -> Sequence[str]:
        """Return the command that submits an array and prints its id.

        Args:
            script: Job script of an element.
            members: File with the elements' job folders, the argument of the script.
            name: Name of the job in the queue, which no other job has.
            count: Number of elements.
            at_once: Largest number of elements that run at once; None sets no limit.
            outputs: Folder for the elements' output, in files ``<array>.<number>.out``.
        """

    @abstractmethod
    def id_of(self, answer: str) -> str:
        """Return the array's id from the output of the command that has submitted it."""

    @abstractmethod
    def submitted(self, name: str) -> str | None:
        """Return the id of this user's array with a name: empty if there is none, None if the queue does not answer."""

    @abstractmethod
    def element(self, array: str, position: int) -> str:
        """Return the queue's name of an element."""

    @abstractmethod
    def remove_argv(self, array: str, positions: Sequence[int]) -> Sequence[str]:
        """Return the command that removes elements, waiting or running, from the queue."""

    @abstractmethod
    def look(self, array: str) -> Mapping[int, str] | None:
        """Return the state of each element that waits or runs, by position; None if the queue does not answer."""

    @abstractmethod
    def waits(self, state: str) -> bool:
        """Return whether an element in this state of the queue has not been started yet."""

    def final(self, array: str, position: int) -> str:
        """Return the state of an element that has ended; an empty text if the queue does not report it."""
        return ""

    def unwanted(self, state: str) -> bool:
        """Return whether a final state shows that another job for the same run is pointless."""
        return False

    def fault(self, array: str, state: str) -> str:
        """Return why an element in this state will never run; an empty text if it may."""
        return ""

    def most(self) -> int | None:
        """Return the largest number of elements of an array; None if the queue sets no limit."""
        return None

    def submit(self, script: Path, members: Path, *, name: str, count: int, at_once: int | None) -> str:
        """Submit an array, and return its id.

        Raises:
            AwayError: The command did not answer. The queue may have taken the array; see :meth:`submitted`.
            RlnbError: The command failed. The message is its own.
        """
        process = run(self.submit_argv(script, members, name=name, count=count, at_once=at_once, outputs=script.parent))
        if process.returncode == 0:
            return self.id_of(process.stdout)
        raise RlnbError(process.stderr.strip() or f"{process.args[0]} ended with status {process.returncode}")

    def remove(self, array: str, positions: Sequence[int]) -> bool:
        """Remove elements from the queue; return whether its command succeeded. An error is logged."""
        try:
            process = run(self.remove_argv(array, positions))
        except AwayError as exc:
            logger.warning("%s", exc)
            return False
        if process.returncode:
            logger.warning("the queue says: %s", process.stderr.strip() or process.stdout.strip())
        return process.returncode == 0


def run(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command of a queue.

    Raises:
        AwayError: The command cannot be started, or has not ended in time.
    """
    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_S,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise AwayError(f"{argv[0]} has not answered for {ANSWER_S} s") from exc
    except OSError as exc:
        raise AwayError(f"{argv[0]} cannot be started: {exc}") from exc


def ranges(numbers: Sequence[int]) -> str:
    """Return whole numbers as ranges, as both queues read them: ``"0-3,7"``."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)
