"""The cameras of a training that goes on, here or on a cluster: through files in its folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rlnb import plugins
from rlnb.errors import RlnbError
from rlnb.notebook import display
from rlnb.notebook.grid import tiles
from rlnb.notebook.live_view import LiveView, Shown, still
from rlnb.records.find import find
from rlnb.records.layout import RunDir
from rlnb.records.record import StockRecord
from rlnb.records.script import ScriptRecord
from rlnb.records.view import Audience, Frame, Wanted
from rlnb.spec import COLOR

if TYPE_CHECKING:
    from PIL.Image import Image

    from rlnb.run import Run

OVER = ("completed", "failed", "cancelled", "timeout", "lost")
STILL_S = 60.0
"""How long a report waits for a picture of a training that goes on."""


def watch_cameras(
    run: Run, cameras: Sequence[str], data_types: Sequence[str], num_envs: int, size: tuple[int, int], share: float
) -> LiveView | Image:
    """Show the cameras of a run: streamed for a person, one picture for a report.

    The arguments are those of :meth:`rlnb.Run.cameras`; none named are all.

    Raises:
        RlnbError: The run has ended, the arguments are wrong, or (in a report) there is nothing to show.
    """
    if num_envs < 1 or not 0.0 < share <= 1.0:
        raise RlnbError(f"num_envs={num_envs!r} has to be at least 1, share={share!r} above 0 and up to 1.")
    wanted = Wanted(cameras=tuple(cameras), data_types=tuple(data_types), num_envs=num_envs, size=size, share=share)
    record = next(find(run.path))  # its own reader: this is asked from a thread
    if isinstance(record, StockRecord | ScriptRecord) or not plugins.library(record.library).simulator:
        raise RlnbError(f"{run.id} ({record.library}) is not stepped by rlnb: it shows no cameras.")
    if record.state in OVER:
        raise RlnbError(f"{run.id} has ended ({record.state}). rlnb.preview(run) shows its policy.")
    audience = Audience(RunDir(run.path))
    audience.want(wanted)
    source = _source(audience)

    def over() -> bool:
        return record.state in OVER

    if display.is_live():
        return LiveView(source, looking=audience.still_looking, over=over).start()
    return still(source, looking=audience.still_looking, over=over, timeout_s=STILL_S)


def _source(audience: Audience) -> Callable[[], Shown | None]:
    def newest() -> Shown | None:
        frame = audience.newest()
        if frame is None:
            return None
        if frame.error:
            raise RlnbError(frame.error)
        return shown(frame)

    return newest


def shown(frame: Frame) -> Shown:
    """Return a frame as pictures: a grid of envs for each camera and data type."""
    from PIL import Image

    pairs = [(key, key.rpartition("/")[2]) for key in frame.images]
    cost = f", cost {1000 * frame.cost_s:.0f} ms" if frame.cost_s else ""
    return Shown(
        pictures=[Image.fromarray(tiles(frame.images[key], data_type)) for key, data_type in pairs],
        lossless=[data_type not in COLOR for _, data_type in pairs],
        caption=f"{', '.join(key for key, _ in pairs)}; env step {frame.step}{cost}",
    )
