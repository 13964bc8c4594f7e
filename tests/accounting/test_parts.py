"""The parts of a wall time, and their sums."""

from __future__ import annotations

import math

from rlnb.accounting.account import Parts, total


def test_the_wall_time_is_the_sum_of_the_parts() -> None:
    parts = Parts(waiting_s=1.0, starting_s=2.0, useful_s=3.0, lost_s=4.0, restarting_s=5.0, idle_s=6.0)
    assert parts.wall_s == 21.0, "seconds that were not recorded are part of the useful ones"
    assert parts.useful_share == 3 / 21
    assert math.isnan(Parts().useful_share)
    assert [name for name, _ in parts.items()] == [
        "waiting",
        "starting",
        "useful",
        "lost",
        "checkpointing",
        "restarting",
        "idle",
    ]


def test_the_total_counts_recorded_seconds_only() -> None:
    assert total([Parts(checkpointing_s=2.0, useful_s=1.0), Parts(useful_s=3.0)]) == Parts(
        checkpointing_s=2.0, useful_s=4.0
    )
    assert math.isnan(total([Parts(), Parts()]).checkpointing_s)
    assert total([]).wall_s == 0.0
