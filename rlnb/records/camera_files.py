"""The cameras of a training, seen from anywhere: two files in the run's folder, and nothing kept.

A viewer writes a request and touches its file while somebody looks. The training answers by replacing the newest
frame. Clocks of different machines are not compared: a request lives while its file keeps changing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlnb.errors import RlnbError
from rlnb.records.layout import RunDir
from rlnb.storage.serial import from_json, to_json

if TYPE_CHECKING:
    import numpy as np

LIVES_S = 6.0
"""Seconds that a request is answered after the last change of its file."""
_INFO = "info"
"""Name of the array that holds what a frame says beside its images, as JSON."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """A request for pictures of a training."""

    cameras: tuple[str, ...]
    """Names of the task's cameras; none named: all, or one that follows the robots where the task has none."""
    data_types: tuple[str, ...]
    """Isaac Lab's names; none named: what each camera is set to."""
    num_envs: int
    """Only the first so many envs are rendered, where the renderer can."""
    size: tuple[int, int]
    """Width and height of a camera that is added, in pixels."""
    share: float
    """Largest part of the training's time that pictures may take."""
    token: str = ""
    """Tells this request from others: frames that answer an older one are not looked at."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """Pictures of one moment of a training."""

    number: int
    """Frames since the request, from 0."""
    step: int
    """Env steps since this job began."""
    cost_s: float
    """Seconds that the training waited for the frame before, to render and write it."""
    error: str
    """Why there are no pictures; empty where there are."""
    images: Mapping[str, np.ndarray]
    """``"<camera>/<data type>"`` to an array as in :attr:`rlnb.Preview.frames`."""
    token: str = ""
    """That of the request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Info:
    """A frame without its images, field by field."""

    number: int
    step: int
    cost_s: float
    error: str
    token: str = ""


class FrameReader:
    """The looking end."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._last: tuple[int, int] | None = None
        self._token = ""

    def want(self, request: Wanted) -> None:
        """Ask for pictures; the newest request is the one that is answered.

        Raises:
            RlnbError: The run's folder cannot be written from here.
        """
        self._token = secrets.token_hex(8)
        request = dataclasses.replace(request, token=self._token)
        try:
            self._run.view.mkdir(exist_ok=True)
            _replace(self._run.wanted, json.dumps(to_json(request)).encode())
        except OSError as exc:
            raise RlnbError(f"A request for pictures cannot be left in {self._run.view}: {exc}") from exc

    def still_looking(self) -> None:
        """Keep the request alive; to be called every second or so."""
        with contextlib.suppress(OSError):  # of a shared file system: the next time comes soon
            os.utime(self._run.wanted)

    def newest(self) -> Frame | None:
        """Return the newest frame of this request; None where there is none that is newer than the last."""
        try:
            with open(self._run.frame, "rb") as file:
                stat = os.fstat(file.fileno())
                if (stat.st_ino, stat.st_mtime_ns) == self._last:
                    return None
                content = file.read()
        except OSError:  # there is none yet, or a shared file system replaced it meanwhile
            return None
        frame = _decoded(content)
        self._last = stat.st_ino, stat.st_mtime_ns
        return frame if frame.token == self._token else None


class FrameWriter:
    """The training's end."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._changed: tuple[int, int] | None = None
        self._alive_until_s = float("-inf")
        self._wanted: Wanted | None = None

    def wanted(self) -> Wanted | None:
        """Return what somebody wants to see now; the same object while that stays the same. None: nobody looks."""
        try:
            stat = os.stat(self._run.wanted)
        except OSError:
            return None
        if (stat.st_ino, stat.st_mtime_ns) != self._changed:
            first = self._changed is None and time.time() - stat.st_mtime > LIVES_S  # left from an earlier job
            if not first:
                self._alive_until_s = time.monotonic() + LIVES_S
            if self._changed is None or stat.st_ino != self._changed[0]:
                self._wanted = from_json(Wanted, json.loads(self._run.wanted.read_bytes()))
            self._changed = stat.st_ino, stat.st_mtime_ns
        return self._wanted if time.monotonic() < self._alive_until_s else None

    def show(self, frame: Frame) -> None:
        """Make a frame the newest."""
        import numpy as np

        info = _Info(number=frame.number, step=frame.step, cost_s=frame.cost_s, error=frame.error, token=frame.token)
        buffer = io.BytesIO()
        np.savez(buffer, **{_INFO: np.frombuffer(json.dumps(to_json(info)).encode(), np.uint8)}, **frame.images)  # type: ignore[arg-type]
        _replace(self._run.frame, buffer.getvalue())


def _decoded(content: bytes) -> Frame:
    import numpy as np

    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        info = from_json(_Info, json.loads(arrays[_INFO].tobytes()), ignore_unknown=True)
        return Frame(
            number=info.number,
            step=info.step,
            cost_s=info.cost_s,
            error=info.error,
            token=info.token,
            images={key: arrays[key] for key in arrays.files if key != _INFO},
        )


def _replace(path: Path, content: bytes) -> None:
    """Write a file whole, in place of an older one. Unlike a record it may be lost: the next one comes soon."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
