"""``runs.goodput()``: where the time of runs went, what interrupted them, and what they cost."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import html
import logging
import math
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rlnb.accounting.account import Account, Interruption, TimeParts, account_of, total
from rlnb.display.table import cell, counted, duration, short, table
from rlnb.errors import RlnbError
from rlnb.metrics.events import thinned
from rlnb.records.facts import RunFacts
from rlnb.records.layout import RunDir
from rlnb.storage.entries import files_below

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from rlnb.records.record import RunRecord

logger = logging.getLogger(__name__)

SHORTEST_S = 0.05
"""Seconds below which a cell stays empty, since it would show ``0.0 s``."""
MOST_ROWS = 100
"""Most runs and most interruptions that a notebook shows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GoodputRow:
    """One run in the table of a goodput."""

    run: str
    """Id of the run."""
    task: str
    """Name of its task."""
    state: str
    """State of its training."""
    wall_s: float
    """Seconds from its creation to its end, or until now."""
    waiting_s: float
    starting_s: float
    useful_s: float
    lost_s: float
    checkpointing_s: float
    restarting_s: float
    idle_s: float
    goodput: float
    """Share of the wall time that was useful, 0 to 1."""
    interruptions: int
    """Number of interruptions."""
    lost_iterations: int
    """Finished iterations that the run did not keep."""
    node_hours: float
    """Hours of all nodes that its jobs held."""
    gpu_hours: float
    """Hours of all GPUs that its jobs held; NaN if their number is unknown."""
    frames: float
    """Env transitions that the run kept."""
    frames_per_gpu_hour: float
    """NaN on CPUs."""
    cpu_cores: float
    """Mean number of busy cores, over all nodes."""
    gpu_percent: float
    """Mean use of its GPUs."""
    checkpoint_bytes: int
    """Bytes of the checkpoints that it wrote, including those deleted since."""
    event_bytes: int
    """Size of its event files."""
    media_bytes: int
    """Size of its pictures and films."""
    disk_bytes: int
    """Size of the run's folder."""


class Lines(NamedTuple):
    """A table as text."""

    heads: Sequence[str]
    """Name of each column."""
    rows: Sequence[Sequence[str]]
    """The cells of each row."""


@dataclass(frozen=True)
class Goodput:
    """The time of some runs, by what it was used for. Shown as a table in a cell; ``.plot()`` draws it."""

    accounts: tuple[Account, ...]
    """One account per run, in the order of the runs."""

    @functools.cached_property
    def parts(self) -> TimeParts:
        """The parts of the wall time of all runs together."""
        return total(account.parts for account in self.accounts)

    @property
    def interruptions(self) -> list[Interruption]:
        """The interruptions of all runs, oldest first."""
        every = (interruption for account in self.accounts for interruption in account.interruptions)
        return sorted(every, key=lambda interruption: interruption.time_s)

    @property
    def useful_share(self) -> float:
        """Share of the wall time that was useful, 0 to 1; NaN without runs."""
        return self.parts.useful_share

    @property
    def mean_s_between_interruptions(self) -> float:
        """Seconds in which the runs had nodes, divided by the number of interruptions; infinite without any."""
        count, held_s = len(self.interruptions), sum(account.held_s for account in self.accounts)
        return held_s / count if count else math.inf

    @property
    def node_hours(self) -> float:
        """Hours of all nodes that the runs held."""
        return sum(account.node_hours for account in self.accounts)

    @property
    def gpu_hours(self) -> float:
        """Hours of all GPUs that the runs held, as far as their number is known; 0 on CPUs."""
        return sum(account.gpu_hours for account in self.accounts if not math.isnan(account.gpu_hours))

    @property
    def frames_per_gpu_hour(self) -> float:
        """Env transitions that the runs on GPUs kept, per hour of a GPU; NaN without GPUs."""
        on_gpus = [account for account in self.accounts if account.gpu_hours > 0 and not math.isnan(account.frames)]
        hours = sum(account.gpu_hours for account in on_gpus)
        return sum(account.frames for account in on_gpus) / hours if hours else math.nan

    def table(self) -> pd.DataFrame:
        """Return one row per run: its parts and their share, its interruptions, its cost and its load.

        ``wall_s`` is the sum of ``waiting_s``, ``starting_s``, ``useful_s``, ``lost_s``, ``checkpointing_s``,
        ``restarting_s`` and ``idle_s``, which is defined in the guide *What trainings cost*. ``goodput`` is the useful
        share. ``interruptions`` and ``lost_iterations`` are counts. ``node_hours`` and ``gpu_hours`` are those of the
        nodes and GPUs that the jobs held. ``frames`` and ``frames_per_gpu_hour`` count the env transitions that the run
        kept. ``cpu_cores`` and ``gpu_percent`` are the mean load. ``checkpoint_bytes`` counts all checkpoints that the
        run wrote, ``event_bytes`` and ``media_bytes`` are the sizes of its event files and of its pictures and films,
        and ``disk_bytes`` is the size of the run's folder.
        """
        import pandas as pd

        columns = [field.name for field in dataclasses.fields(GoodputRow)]
        return pd.DataFrame([dataclasses.asdict(row) for row in self.rows()], columns=columns)

    def interruptions_table(self) -> pd.DataFrame:
        """Return one row per interruption: run, job, time (UTC), cause, lost iterations, lost seconds and error."""
        import pandas as pd

        frame = pd.DataFrame(
            [dataclasses.asdict(interruption) for interruption in self.interruptions],
            columns=[field.name for field in dataclasses.fields(Interruption)],
        )
        frame.insert(2, "time", pd.to_datetime(frame.pop("time_s"), unit="s", utc=True))
        return frame

    def plot(self) -> go.Figure:
        """Return a bar for each run, newest at the top, that consists of the parts of its wall time."""

        return bars(self.accounts[:MOST_ROWS])

    def rows(self, most: int | None = None) -> list[GoodputRow]:
        """Return the first ``most`` rows of :meth:`table`; None is all."""
        return [_row(account) for account in self.accounts[:most]]

    def __repr__(self) -> str:
        return f"Goodput({self.summary})"

    @property
    def summary(self) -> str:
        """The parts, the interruptions and the cost of all runs together, in one line."""
        if not self.accounts:
            return "no runs with a training"
        shares = ", ".join(
            f"{seconds / self.parts.wall_s:.0%} {name}" for name, seconds in self.parts.items() if seconds > 0
        )
        time = f"{duration(self.parts.wall_s)}: {shares}" if shares else duration(self.parts.wall_s)
        count = len(self.interruptions)
        between = f", one every {duration(self.mean_s_between_interruptions)}" if count else ""
        cost = f"{short(self.gpu_hours)} GPU-hours" if self.gpu_hours else f"{short(self.node_hours)} node-hours"
        per_hour = self.frames_per_gpu_hour
        rate = "" if math.isnan(per_hour) else f", {short(per_hour)} frames per GPU-hour"
        return f"{counted(len(self.accounts), 'run')}, {time}; {counted(count, 'interruption')}{between}; {cost}{rate}"

    def caption(self, most: int) -> str:
        """Return :attr:`summary`, with a note if a table of the runs is shorter than their number.

        Args:
            most: Most rows of the table.
        """
        return self.summary + (f", the first {most} shown" if len(self.accounts) > most else "")

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What all runs together cost, as names and texts; empty without runs."""
        if not self.accounts:
            return []
        parts, count = self.parts, len(self.interruptions)
        between = f", one every {duration(self.mean_s_between_interruptions)}" if count else ""
        lost = sum(interruption.lost_iterations or 0 for interruption in self.interruptions)
        has_lost = lost or parts.lost_s >= SHORTEST_S
        facts = {
            "wall time": duration(parts.wall_s),
            "goodput": "" if math.isnan(parts.useful_share) else f"{parts.useful_share:.0%}",
            "interruptions": f"{count}{between}",
            "lost": f"{duration(parts.lost_s)}, {counted(lost, 'iteration')}" if has_lost else "",
            "node-hours": short(self.node_hours),
            "GPU-hours": short(self.gpu_hours) if self.gpu_hours else "",
            "frames per GPU-hour": "" if math.isnan(self.frames_per_gpu_hour) else short(self.frames_per_gpu_hour),
        }
        return [(name, value) for name, value in facts.items() if value]

    def run_lines(self, most: int = MOST_ROWS) -> Lines:
        """The first rows of :meth:`table` as text, without columns that have no values, such as those of GPUs.

        Args:
            most: Most rows.
        """
        heads = ["run", "task", "state", "wall", *(name for name, _ in TimeParts().items()), "goodput", "interruptions"]
        heads += ["lost iterations", "GPU-hours", "frames per GPU-hour", "CPU cores", "GPU %"]
        heads += ["MB of checkpoints", "MB of events", "MB of media", "MB on disk"]
        rows = [_cells(row) for row in self.rows(most)]
        columns = [number for number in range(len(heads)) if not rows or any(row[number] for row in rows)]
        return Lines([heads[number] for number in columns], [[row[number] for number in columns] for row in rows])

    def interruption_lines(self) -> Lines:
        """The newest rows of :meth:`interruptions_table` as text, with times in the time zone of this machine."""
        rows = [
            [
                line.run,
                line.job,
                datetime.fromtimestamp(line.time_s, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S"),
                line.cause,
                cell(line.lost_iterations),
                duration(line.lost_s),
                line.error,
            ]
            for line in self.interruptions[-MOST_ROWS:]
        ]
        return Lines(["run", "job", "time", "cause", "lost iterations", "lost time", "error"], rows)

    def _repr_html_(self) -> str:
        runs, lines = self.run_lines(MOST_ROWS), self.interruption_lines()
        interruptions = table(lines.heads, lines.rows, caption="Interruptions") if lines.rows else ""
        return table(runs.heads, runs.rows, caption=self.caption(MOST_ROWS)) + interruptions


def goodput(runs: RunFacts | Iterable[RunFacts]) -> Goodput:
    """Return where the time of runs went; see :meth:`rlnb.Runs.goodput`."""
    accounts = (_account(run.record) for run in ([runs] if isinstance(runs, RunFacts) else runs))
    return Goodput(tuple(account for account in accounts if account is not None))


def _account(record: RunRecord) -> Account | None:
    """Return the account of a run; None if it has no training, or if a damaged record makes it unreadable."""
    try:
        return account_of(record)
    except (RlnbError, OSError) as exc:  # a damaged record must not hide the other runs
        logger.warning("%s is not in the sum. %s", record.path, exc)
        return None


def _row(account: Account) -> GoodputRow:
    parts, usage = account.parts, usage_of(RunDir(account.path))
    return GoodputRow(
        run=account.run,
        task=account.task,
        state=account.state,
        wall_s=parts.wall_s,
        **{f"{name}_s": seconds for name, seconds in parts.items()},
        goodput=parts.useful_share,
        interruptions=len(account.interruptions),
        lost_iterations=sum(interruption.lost_iterations or 0 for interruption in account.interruptions),
        node_hours=account.node_hours,
        gpu_hours=account.gpu_hours,
        frames=account.frames,
        frames_per_gpu_hour=account.frames / account.gpu_hours if account.gpu_hours else math.nan,
        cpu_cores=usage.cpu_cores,
        gpu_percent=usage.gpu_percent,
        checkpoint_bytes=account.checkpoint_bytes,
        event_bytes=usage.event_bytes,
        media_bytes=usage.media_bytes,
        disk_bytes=usage.disk_bytes,
    )


def _cells(row: GoodputRow) -> list[str]:
    seconds = (row.wall_s, *(getattr(row, f"{name}_s") for name, _ in TimeParts().items()))
    return [
        row.run,
        row.task,
        row.state,
        *(duration(value) if value >= SHORTEST_S else "" for value in seconds),
        "" if math.isnan(row.goodput) else f"{row.goodput:.0%}",
        str(row.interruptions or ""),
        str(row.lost_iterations or ""),
        short(row.gpu_hours) if row.gpu_hours > 0 else "",
        *("" if math.isnan(value) else short(value) for value in (row.frames_per_gpu_hour, row.cpu_cores)),
        "" if math.isnan(row.gpu_percent) else f"{row.gpu_percent:.0f}",
        *(short(size / 1e6) if size else "" for size in (row.checkpoint_bytes, row.event_bytes, row.media_bytes)),
        short(row.disk_bytes / 1e6),
    ]


# -- usage -----------------------------------------------------------------------------------------------------------


SAMPLES = 64
"""Most samples of each file that enter a mean. The node agents take one every 5 s."""
_NODE = re.compile(r"system/(?P<node>node\d+)/(?P<measure>cpu_cores|gpu\d+_percent)$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """The mean load of a run while it had nodes."""

    cpu_cores: float = math.nan
    """Busy cores over all nodes; NaN for a run that ended before its first sample."""
    gpu_percent: float = math.nan
    """Use of its GPUs, 0 to 100, averaged over them; NaN without GPUs."""
    disk_bytes: int = 0
    """Size of the run's folder. Files that were deleted since do not count."""
    event_bytes: int = 0
    """Size of its event files, with those of the load of the nodes."""
    media_bytes: int = 0
    """Size of its pictures and films."""


def usage_of(run: RunDir) -> Usage:
    """Return the mean load of a run and its size on the disk."""
    size = events = media = 0
    sums: Mapping[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    pictures, samples = f"{run.media}{os.sep}", f"{run.system}{os.sep}"  # Path.parents is slow for thousands of runs
    for path in files_below(run.path):
        name = os.fspath(path)
        with contextlib.suppress(OSError):
            size += (part := os.lstat(name).st_size)
            events += part if "tfevents" in path.name else 0
            media += part if name.startswith(pictures) else 0
        if name.startswith(samples):
            _add(path, sums)
    means = {tag: total / weight for tag, (total, weight) in sums.items() if weight}
    cores = [mean for tag, mean in means.items() if tag.endswith("cpu_cores")]
    gpus = [mean for tag, mean in means.items() if tag.endswith("_percent")]
    return Usage(
        cpu_cores=sum(cores) if cores else math.nan,
        gpu_percent=sum(gpus) / len(gpus) if gpus else math.nan,
        disk_bytes=size,
        event_bytes=events,
        media_bytes=media,
    )


def _add(path: Path, sums: Mapping[str, list[float]]) -> None:
    """Add the samples of an event file to the weighted sums of each measure; a file counts by its number of records."""
    columns, records = thinned(path, SAMPLES)
    for tag, column in columns.items():
        if _NODE.match(tag):
            total, weight = sums[tag]
            mean = sum(value for _, _, value in column) / len(column)
            sums[tag][:] = total + mean * records, weight + records


# -- figure ----------------------------------------------------------------------------------------------------------


COLOURS: Mapping[str, str] = {
    "waiting": "#bbbbbb",
    "starting": "#6fa8dc",
    "useful": "#3a923a",
    "lost": "#c44e52",
    "checkpointing": "#8c6bb1",
    "restarting": "#e1812c",
    "idle": "#e6e6e6",
}
"""Colour of each part: green for work that was kept, red for work that was lost."""
_UNITS = ((120.0, 1.0, "s"), (7200.0, 60.0, "min"), (math.inf, 3600.0, "h"))
"""Longest bar in seconds, seconds per unit, unit."""
_BAR_PX, _MARGIN_PX, _WIDTH_PX = 22, 130, 900


def bars(accounts: Sequence[Account]) -> go.Figure:
    """Return a horizontal bar for each run, the first at the top, with one colour for each part of its wall time."""
    import plotly.graph_objects as go

    from rlnb.display.figures import with_picture

    longest_s = max((account.parts.wall_s for account in accounts), default=0.0)
    per_unit, unit = next((scale, unit) for most_s, scale, unit in _UNITS if longest_s <= most_s)
    ids = [html.escape(account.run) for account in accounts]
    chart, base = go.Figure(), [0.0] * len(accounts)
    for name, _ in TimeParts().items():
        seconds = [dict(account.parts.items())[name] for account in accounts]
        lengths = [0.0 if math.isnan(value) else value / per_unit for value in seconds]
        if any(lengths):
            look = {"name": name, "orientation": "h", "marker": {"color": COLOURS[name]}, "showlegend": True}
            chart.add_trace(go.Bar(x=lengths, y=ids, base=base, **look))
            base = [below + length for below, length in zip(base, lengths, strict=True)]
    chart.update_layout(
        barmode="overlay",  # each bar names its base, also for readers that cannot stack
        template="simple_white",
        height=_BAR_PX * max(1, len(accounts)) + _MARGIN_PX,
        width=_WIDTH_PX,  # the picture of a figure without a width has a size of its own
        margin={"l": 60, "r": 20, "t": 40, "b": 50},
        legend={"orientation": "h", "traceorder": "normal", "yanchor": "bottom", "y": 1.0},  # not over the numbers
    )
    chart.update_xaxes(title_text=f"wall time ({unit})")
    chart.update_yaxes(autorange="reversed", type="category", automargin=True)
    return with_picture(chart)
