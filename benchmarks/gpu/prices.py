"""The price of what rlnb adds to a training: two trainings, with and without it, that take turns on one GPU."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from against_isaaclab import Case
from turns import Side, led_in, our_side, pairs

import rlnb
from gpu.part import Measure, Part
from gpu.steps import CAMERAS, STATES, within
from rlnb.launchers import LocalLauncher
from rlnb.records.camera_files import FrameReader, FrameRequest
from rlnb.records.layout import RunDir
from rlnb.simulation.pool import pool

STATE, LOOKED_AT = STATES[0][0], CAMERAS[0][0]
SHARE = 0.02
"""Share of the training's time that a viewer asks for."""
AT_LEAST, LOW = 0.97, 0.94
TURN_S = 4.0


@dataclass(frozen=True, kw_only=True)
class Price:
    """Something that a training may have, and what it needs for that."""

    case: Case
    small: int
    """Number of envs in a rehearsal."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    small_arguments: Mapping[str, Any] = field(default_factory=dict)
    """Those of a rehearsal in their place."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the training *without* it."""
    is_watched: bool = False


PRICES = {
    f"live pictures at {SHARE:.0%}": Price(case=LOOKED_AT, small=4, is_watched=True),
    "the flight recorder": Price(case=STATE, small=64, environment={"RLNB_FLIGHT_RECORDER": "0"}),
    "a film every 50 iterations": Price(
        case=STATE, small=64, arguments={"film_every": 50}, small_arguments={"film_every": 2}
    ),
    "alerts by the diagnosis": Price(case=STATE, small=64, arguments={"alerts": True}),
}


def measures() -> list[tuple[str, Measure]]:
    """Return a measure for each price."""
    return [(_name(what), functools.partial(_measure, what, price)) for what, price in PRICES.items()]


def _name(what: str) -> str:
    return f"a training with {what} / without"


def _measure(what: str, price: Price, part: Part, seconds: float) -> None:
    ends_s = time.monotonic() + seconds
    case = replace(price.case, num_envs=part.size(price.case.num_envs, price.small))
    case.selected.card()
    pool.shut_down()
    both = LocalLauncher(max_running=2)
    arguments = {**price.arguments, **part.size({}, price.small_arguments)}
    rates = []
    with (
        our_side(case, "rsl_rl", part.device, launcher=both, **arguments) as (having, run),
        our_side(case, "rsl_rl", part.device, price.environment, launcher=both) as (lacking, _),
    ):
        led_in((having, lacking), ends_s)
        if price.is_watched:
            _watch(having, run)
            having.take(TURN_S)  # prepares the first picture
            having.turns.clear()
        for pair in within(part, pairs(having, lacking, 1, part.size(TURN_S, 1.0)), ends_s):
            rates.append(pair)
            part.record_pairs(
                f"{_name(what)}, rsl_rl, {case.task}, {case.num_envs:,} envs",
                rates,
                f"iterations/s{_made(price, run)}",
                at_least=AT_LEAST,
                low=LOW,
                proved=not _made(price, run).startswith(", 0"),
            )


def _made(price: Price, run: rlnb.Run) -> str:
    """Return what the training has made, as proof that the price was paid for something."""
    if price.is_watched:
        return f", {_frames.get(run.id, 0)} pictures"
    return f", {len(run.films)} films" if price.arguments.get("film_every") else ""


_frames: dict[str, int] = {}
"""Number of pictures of each watched run."""


def _watch(side: Side, run: rlnb.Run) -> None:
    """Look at a run's cameras while it trains, as a viewer in a notebook does."""
    reader = FrameReader(RunDir(run.path))
    reader.want(FrameRequest(cameras=(), data_types=(), num_envs=9, size=(160, 120), share=SHARE))
    wait = side.wait

    def looking(seconds: float) -> None:
        ends = threading.Event()

        def look() -> None:
            told_s = 0.0
            while not ends.wait(0.05):
                if time.time() - told_s > 1.0:
                    reader.still_looking()
                    told_s = time.time()
                _frames[run.id] = _frames.get(run.id, 0) + (reader.newest() is not None)

        viewer = threading.Thread(target=look)
        viewer.start()
        try:
            wait(seconds)
        finally:
            ends.set()
            viewer.join()

    side.wait = looking  # type: ignore[method-assign]
