"""The cameras of a running training, local or on a cluster, through files in the run folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlnb.cameras.grid import tiles
from rlnb.configs.cameras import CameraPose, kind_of, turned, valid_aim
from rlnb.display import front_end
from rlnb.display.live_pictures import Gesture, LiveView, Shown, still
from rlnb.errors import RlnbError
from rlnb.hooks import plugins
from rlnb.records.camera_files import Frame, FrameReader, FrameRequest
from rlnb.records.find import find
from rlnb.records.layout import RunDir
from rlnb.records.stock_record import ScriptRecord, StockRecord
from rlnb.spec import ENDED
from rlnb.storage.files import whole

if TYPE_CHECKING:
    from PIL.Image import Image

    from rlnb.records.facts import RunFacts

Size = tuple[int, int]
STILL_S = 60.0
"""Seconds that a report waits for a picture from a running training."""


class CameraFeed:
    """Pictures from a training's cameras. The training takes them only while a viewer requests them.

    Args:
        run: A training whose env is stepped by rlnb.
        cameras: Names of the task's cameras; empty for all of them.
        data_types: Isaac Lab's names of the outputs; empty for all that the cameras render.
        num_envs: Number of envs to show, from the first on.
        size: Width and height of an added camera, in pixels.
        share: Largest fraction of the training's time that pictures may take, 0 to 1.
        eye: Position of an added camera in the frame of each env, in metres; None shows the robots whole.
        target: Point in the middle of its picture, in the same frame; None is the middle of the robots.

    Raises:
        RlnbError: The run has ended or cannot show cameras, or the arguments are wrong.
        CheckError: The eye or the target is not a position.
    """

    def __init__(
        self,
        run: RunFacts,
        cameras: Sequence[str],
        data_types: Sequence[str],
        num_envs: int,
        size: Size,
        share: float,
        eye: Sequence[float] | None = None,
        target: Sequence[float] | None = None,
    ) -> None:
        num_envs = whole(num_envs)
        self._first = valid_aim(f"cameras of {run.id}", eye, target)
        if num_envs < 1 or not 0.0 < share <= 1.0:
            raise RlnbError(f"num_envs={num_envs!r} must be at least 1, and share={share!r} above 0 and at most 1.")
        self._record = next(find(run.path))  # a separate reader, because a thread uses it
        of_ours = not isinstance(self._record, StockRecord | ScriptRecord)
        if not (of_ours and plugins.library(self._record.library).simulator):
            raise RlnbError(f"{run.id} ({self._record.library}) is not stepped by rlnb, so it cannot show cameras.")
        if self.over():
            raise RlnbError(f"{run.id} has ended ({self._record.state}). Use rlnb.preview(run) to see its policy.")
        self._reader = FrameReader(RunDir(run.path))
        request = FrameRequest(
            cameras=tuple(cameras),
            data_types=tuple(data_types),
            num_envs=num_envs,
            size=size,
            share=share,
            aim=self._first,
        )
        self._reader.want(request)
        self._place: CameraPose | None = None
        """Place of an added camera in the newest frame, or the place to which it has been turned since."""
        self._turned = False

    def over(self) -> bool:
        """Return whether the training has ended."""
        return self._record.state in ENDED

    def still_looking(self) -> None:
        """Renew the request for pictures. Call this about once a second."""
        self._reader.still_looking()

    def newest(self) -> Shown | None:
        """Return the newest pictures; None if there are none since the last call.

        Raises:
            RlnbError: The training cannot take pictures. The error contains the reason.
        """
        frame = self._reader.newest()
        if frame is None:
            return None
        if frame.error:
            raise RlnbError(frame.error)
        if not self._turned:
            self._place = frame.place
        return shown(frame)

    def turn(self, gesture: Gesture) -> None:
        """Move an added camera around its target, or back to its first place."""
        if gesture.reset:
            self._turned, self._place = False, None
            self._reader.aim(self._first)
        elif self._place is not None:
            self._turned = True
            self._place = turned(self._place, gesture.right, gesture.down, gesture.zoom)
            self._reader.aim(self._place)


def watch_cameras(
    run: RunFacts,
    cameras: Sequence[str],
    data_types: Sequence[str],
    num_envs: int,
    size: Size,
    share: float,
    eye: Sequence[float] | None = None,
    target: Sequence[float] | None = None,
) -> LiveView | Image:
    """Show the cameras of a run: as a stream in a notebook, as one picture in a report. See :class:`CameraFeed`."""
    feed = CameraFeed(run, cameras, data_types, num_envs, size, share, eye, target)
    if front_end.is_live():
        return LiveView(feed.newest, looking=feed.still_looking, over=feed.over, turn=feed.turn).start()
    return still(feed.newest, looking=feed.still_looking, over=feed.over, timeout_s=STILL_S)


def shown(frame: Frame) -> Shown:
    """Return the pictures of a frame: a grid of envs for each camera and data type."""
    from PIL import Image

    pairs = [(key, key.rpartition("/")[2]) for key in frame.images]
    cost = f", cost {1000 * frame.cost_s:.0f} ms" if frame.cost_s else ""
    return Shown(
        pictures=[Image.fromarray(tiles(frame.images[key], data_type)) for key, data_type in pairs],
        lossless=[kind_of(data_type) != "color" for _, data_type in pairs],
        caption=f"{', '.join(key for key, _ in pairs)}; env step {frame.step}{cost}",
        place=str(frame.place) if frame.place is not None else "",
    )
