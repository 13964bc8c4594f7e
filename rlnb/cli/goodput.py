"""``rlnb goodput``: where the time of runs went, what interrupted them, and what they cost."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rlnb.cli import screen
from rlnb.cli.arguments import AsJson
from rlnb.cli.runs import InState, OfLibrary, OfTask, OnlyIds, Root, Since, WithTag, selection

if TYPE_CHECKING:
    from rlnb.accounting.account import Interruption


def goodput(
    ids: OnlyIds = None,
    path: Root = None,
    task: OfTask = None,
    library: OfLibrary = None,
    state: InState = None,
    tag: WithTag = None,
    since: Since = None,
    as_json: AsJson = False,
) -> None:
    """Print how runs used their time, and what they cost."""
    import rlnb
    from rlnb.display.table import duration, short

    result = rlnb.goodput(selection(ids, path, task=task, library=library, state=state, tag=tag, since=since))
    if as_json:
        rows = [dataclasses.asdict(row) for row in result.rows()]
        interruptions = [dataclasses.asdict(interruption) for interruption in result.interruptions]
        return screen.print_json({"runs": rows, "interruptions": interruptions})
    parts = [name for name, _ in result.parts.items()]
    screen.table(
        ["run", "wall", *parts, "goodput", "GPU-hours", "node-hours"],
        [
            [
                account.run,
                *(duration(s) if s > 0 else "" for s in (account.parts.wall_s, *(s for _, s in account.parts.items()))),
                "" if math.isnan(account.parts.useful_share) else f"{account.parts.useful_share:.0%}",
                short(account.gpu_hours) if account.gpu_hours > 0 else "",
                short(account.node_hours),
            ]
            for account in result.accounts
        ],
    )
    _print_interruptions(result.interruptions)
    screen.say(f"{result.summary}.")


def _print_interruptions(interruptions: Sequence[Interruption]) -> None:
    from rlnb.display.table import duration

    if interruptions:
        screen.table(
            ["run", "job", "time", "cause", "lost iterations", "lost time"],
            [
                [
                    line.run,
                    line.job,
                    datetime.fromtimestamp(line.time_s, UTC).astimezone().strftime("%Y-%m-%d %H:%M"),
                    line.cause,
                    line.lost_iterations,
                    duration(line.lost_s),
                ]
                for line in interruptions
            ],
        )
