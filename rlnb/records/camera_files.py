"""Live camera frames of a training, exchanged through two files in the run's folder; no frame is kept.

A viewer writes a request file and touches it about every second until the viewer closes. The training answers by
replacing the newest frame. Clocks of different machines are not compared: a request stays alive while its file keeps
changing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import secrets
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlnb.configs.cameras import FREE, CameraPose
from rlnb.errors import RlnbError
from rlnb.records.layout import RunDir
from rlnb.storage import entries, files
from rlnb.storage.clock import age_s
from rlnb.storage.serial import from_json, to_json

if TYPE_CHECKING:
    import numpy as np

MOST_BYTES = 1 << 28
"""Largest frame that is read, in bytes: 1,000 pictures of 300 x 300 pixels."""
LIVES_S = 6.0
"""Seconds that a request stays alive after the last change of its file."""
_INFO = "info"
"""Name of the array that holds all fields of a frame except its images, as JSON."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FrameRequest:
    """A request for camera frames of a training."""

    cameras: tuple[str, ...]
    """Names of the task's cameras; empty for all, or for a camera that follows the robots if the task has none."""
    data_types: tuple[str, ...]
    """Isaac Lab's names of data types; empty for those that each camera is configured with."""
    num_envs: int
    """Number of envs to render, from the first, if the renderer supports a subset."""
    size: tuple[int, int]
    """Width and height of an added camera, in pixels."""
    share: float
    """Largest share of the training's time, 0 to 1, that rendering and writing frames may take."""
    aim: CameraPose = FREE
    """Place of an added camera."""
    token: str = ""
    """Random identifier of this request; the viewer skips frames that carry the token of an older request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """Images of all requested cameras at one env step of a training."""

    number: int
    """Index of the frame among those that answer the request, from 0."""
    step: int
    """Env steps since this job began."""
    cost_s: float
    """Seconds that the training spent on rendering and writing the previous frame."""
    error: str
    """Why there are no images; empty if there are."""
    images: Mapping[str, np.ndarray]
    """``"<camera>/<data type>"`` to an array shaped as in :attr:`rlnb.results.Preview.frames`."""
    token: str = ""
    """The token of the request."""
    place: CameraPose | None = None
    """Current place of an added camera, in the frame of the first env; None if the task has cameras."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Info:
    """The fields of a frame except its images."""

    number: int
    step: int
    cost_s: float
    error: str
    token: str = ""
    place: CameraPose | None = None


class FrameReader:
    """The viewer's end."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._last: tuple[int, int] | None = None
        self._request: FrameRequest | None = None

    def want(self, request: FrameRequest) -> None:
        """Write a request for frames. The training answers only the newest request.

        Raises:
            RlnbError: The run's folder is not writable.
        """
        self._write(dataclasses.replace(request, token=secrets.token_hex(8)))

    def aim(self, aim: CameraPose) -> None:
        """Aim an added camera anew. Frames from before stay valid, so that a stream goes on while it is aimed.

        The request of a newer viewer stays as it is.

        Raises:
            RlnbError: The run's folder is not writable.
        """
        newest = _request(self._run.wanted)
        if self._request is not None and newest is not None and newest.token == self._request.token:
            self._write(dataclasses.replace(self._request, aim=aim))

    def _write(self, request: FrameRequest) -> None:
        self._request = request
        try:
            files.make_subfolder(self._run.view)
            files.write_bytes(self._run.wanted, json.dumps(to_json(request)).encode())
        except OSError as exc:
            raise RlnbError(f"A request for frames cannot be written to {self._run.view}: {exc}") from exc

    def still_looking(self) -> None:
        """Keep the request alive. Call this about every second."""
        with contextlib.suppress(OSError):  # a transient error of a shared file system; the next call retries
            entries.touch(self._run.wanted, make=False)

    def newest(self) -> Frame | None:
        """Return the newest frame of this request; None if no frame arrived since the last call."""
        try:
            with files.open_regular(self._run.frame) as file:
                stat = os.fstat(file.fileno())
                if (stat.st_ino, stat.st_mtime_ns) == self._last:
                    return None
                content = file.read(MOST_BYTES)
        except RlnbError:
            raise
        except OSError:  # no frame yet, or ESTALE from NFS because the file was replaced while it was read
            return None
        try:
            frame = _decoded(content)
        except (ValueError, KeyError, TypeError, RlnbError, zipfile.BadZipFile) as exc:
            raise RlnbError(f"{self._run.frame} is damaged ({exc}). Move it away.") from exc
        self._last = stat.st_ino, stat.st_mtime_ns
        return frame if self._request is not None and frame.token == self._request.token else None


class FrameWriter:
    """The training's end."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._changed: tuple[int, int] | None = None
        self._alive_until_s = float("-inf")
        self._wanted: FrameRequest | None = None

    def wanted(self) -> FrameRequest | None:
        """Return the live request, as the same object until a viewer replaces it; None if no viewer is open."""
        try:
            stat = os.stat(self._run.wanted)
        except OSError:
            return None
        if (stat.st_ino, stat.st_mtime_ns) != self._changed:
            stale = self._changed is None and age_s(self._run.wanted) > LIVES_S  # left from an earlier job
            if not stale:
                self._alive_until_s = time.monotonic() + LIVES_S
            if (request := _request(self._run.wanted)) != self._wanted:
                self._wanted = request
            self._changed = stat.st_ino, stat.st_mtime_ns
        return self._wanted if time.monotonic() < self._alive_until_s else None

    def show(self, frame: Frame) -> None:
        """Write a frame in place of the newest one."""
        import numpy as np

        info = _Info(
            number=frame.number,
            step=frame.step,
            cost_s=frame.cost_s,
            error=frame.error,
            token=frame.token,
            place=frame.place,
        )
        buffer = io.BytesIO()
        np.savez(buffer, **{_INFO: np.frombuffer(json.dumps(to_json(info)).encode(), np.uint8)}, **frame.images)  # type: ignore[arg-type]
        files.write_bytes(self._run.frame, buffer.getvalue())


def _request(path: Path) -> FrameRequest | None:
    """Return a request; None if it is damaged, since no request may end a training."""
    try:
        data = files.read_json(path, files.RECORD_BYTES)
        return None if data is None else from_json(FrameRequest, data)
    except RlnbError as exc:
        files.warn_once(str(exc))
        return None


def _decoded(content: bytes) -> Frame:
    import numpy as np

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if (size := sum(entry.file_size for entry in archive.infolist())) > MOST_BYTES:
            raise ValueError(f"its arrays have {size:,} bytes")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        info = from_json(_Info, json.loads(arrays[_INFO].tobytes()), ignore_unknown=True)
        return Frame(
            number=info.number,
            step=info.step,
            cost_s=info.cost_s,
            error=info.error,
            token=info.token,
            place=info.place,
            images={key: arrays[key] for key in arrays.files if key != _INFO},
        )
