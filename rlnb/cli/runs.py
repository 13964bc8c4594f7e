"""``rlnb runs`` and ``rlnb goodput``: list runs, free disk space, show where time went; and follow a log."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from rlnb.cli import screen
from rlnb.cli.arguments import AsJson, values
from rlnb.display.table import duration, short, shortened
from rlnb.errors import RlnbError
from rlnb.storage import files

if TYPE_CHECKING:
    from rlnb.accounting.account import Interruption
    from rlnb.run.listing import Runs
    from rlnb.run.run import Run

REASON = 60
"""Most characters of a reason in the table."""


class Group(TyperGroup):
    """``rlnb runs FOLDER`` is ``rlnb runs --path FOLDER``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments."""
        is_folder = bool(args) and args[0] not in self.commands and Path(args[0]).is_dir()
        return super().parse_args(ctx, ["--path", *args] if is_folder else args)


runs_app = typer.Typer(cls=Group, invoke_without_command=True, help="List runs, newest first, or free disk space.")

Root = Annotated[
    Path | None, typer.Option("--path", help="Root folder of rlnb, folder of a run, or logs folder of Isaac Lab.")
]
OfTask = Annotated[str | None, typer.Option("--task", help="Only runs of this task.")]
OfLibrary = Annotated[str | None, typer.Option("--library", help="Only runs of this library.")]
InState = Annotated[str | None, typer.Option("--state", help="Only runs in this state, e.g. running.")]
WithTag = Annotated[str | None, typer.Option("--tag", help="Only runs with this tag.")]
Since = Annotated[str | None, typer.Option("--since", help="Only runs started since this date, e.g. 2026-11-20.")]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="NAME=VALUE", help="Only runs with this argument, e.g. num_envs=512."),
]
Sort = Annotated[
    str | None, typer.Option("--sort", help="Sort by the last value of a metric or by an argument, highest first.")
]
Column = Annotated[
    list[str] | None,
    typer.Option("--column", help="Add a column: the last value of a metric, or an argument such as seed or sim.dt."),
]
OnlyIds = Annotated[list[str] | None, typer.Argument(metavar="RUN", help="Only these runs; all runs by default.")]
Archived = Annotated[bool, typer.Option("--archived", help="List archived runs only.")]


@runs_app.callback()
def runs(
    ctx: typer.Context,
    path: Root = None,
    task: OfTask = None,
    library: OfLibrary = None,
    state: InState = None,
    tag: WithTag = None,
    since: Since = None,
    where: Where = None,
    sort: Sort = None,
    column: Column = None,
    archived: Archived = False,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first."""
    if ctx.invoked_subcommand is not None:
        return
    import rlnb
    from rlnb.run.listing import SPARSE

    (arguments,) = values(where=where)
    listing = rlnb.runs(
        path, task=task, library=library, state=state, tag=tag, since=since, where=arguments, archived=archived
    )
    listing = listing.sorted(sort) if sort else listing
    columns = {name: listing.values(name) for name in column or ()}
    rows = [
        summary.row()
        | {"eta_s": summary.eta_s, "tags": list(summary.tags), "path": str(summary.path)}
        | {name: column[at] for name, column in columns.items()}
        for at, summary in enumerate(listing.summaries())
    ]
    if as_json:
        return screen.print_json(rows)
    for row in rows:
        row["reason"] = shortened(row["reason"], REASON)
    values_of = ("iteration", "reward", "success_rate", *columns)
    every = ("id", "name", "task", "library", "state", "reason", *values_of, "created")
    names = [name for name in every if name not in SPARSE or any(row[name] for row in rows)]
    screen.table([name.replace("_", " ") for name in names], [[row[name] for name in names] for row in rows])


def selection(
    ids: Sequence[str] | None,
    path: Path | None,
    *,
    task: str | None = None,
    library: str | None = None,
    state: str | None = None,
    tag: str | None = None,
    since: str | None = None,
) -> Runs:
    """Return the runs with the given ids, or all runs, that match the filters of :func:`rlnb.runs`.

    Args:
        ids: Ids of runs; None or an empty list selects all.
        path: Folder in which runs are searched; None is the root.
        task: Name of their task; None is any, as for the other filters.
        library: Name of their library.
        state: Their state.
        tag: One of their tags.
        since: Earliest time of their creation.
    """
    import rlnb

    by_id = rlnb.Runs([rlnb.get_run(id) for id in ids or ()])
    if by_id and not any((path, task, library, state, tag, since)):
        return by_id
    paths = {run.path for run in by_id}
    matches = rlnb.runs(path, task=task, library=library, state=state, tag=tag, since=since)
    return rlnb.Runs([run for run in matches if not ids or run.path in paths])


@runs_app.command()
def prune(
    ids: OnlyIds = None,
    path: Root = None,
    task: OfTask = None,
    library: OfLibrary = None,
    state: InState = None,
    tag: WithTag = None,
    keep: Annotated[int, typer.Option(help="Number of newest checkpoints to keep per run. The best is kept too.")] = 1,
    whole: Annotated[bool, typer.Option("--whole", help="Delete whole runs instead of checkpoints.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete the files. Without --yes, they are only listed.")] = False,
) -> None:
    """List the checkpoints that can be deleted, or delete them. Runs that have not ended are skipped."""
    from rlnb.run.pruning import in_words

    pruning = selection(ids, path, task=task, library=library, state=state, tag=tag).prune(keep=keep, whole=whole)
    screen.table(["run", "item", "size"], pruning.rows())
    if yes:
        pruning.apply()
    verb = "Deleted" if yes else "With --yes, this deletes"
    rest = f" Runs that have not ended stay as they are: {pruning.unfinished}." if pruning.unfinished else ""
    rest += f" Runs of other users stay too: {pruning.anothers}." if pruning.anothers else ""
    count = len(pruning.items)
    screen.say(f"{verb} {count} item{'' if count == 1 else 's'}, {in_words(pruning.size)}.{rest}")
    if ids and (pruning.unfinished or pruning.anothers):
        raise typer.Exit(1)


# -- goodput ---------------------------------------------------------------------------------------------------------


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
    result = selection(ids, path, task=task, library=library, state=state, tag=tag, since=since).goodput()
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


# -- following a log -------------------------------------------------------------------------------------------------


FOLLOW_S = 0.2
TAIL_BYTES = 65536
"""Number of bytes at the end of a log that the first read returns."""


def following(run: Run, lines: int) -> Iterator[str]:
    """Yield the last lines of the newest job's logs, then every new line until that job has ended.

    Raises:
        RlnbError: The run has no job yet.
    """
    from rlnb.spec import ENDED

    if not run.jobs:
        raise RlnbError(f"{run.id} has no job yet, so it has no log. To see when it starts: rlnb show {run.id}")
    job, ends = run.jobs[-1], dict[Path, int]()
    while True:
        is_over = job.state() in ENDED  # checked first, so that the last lines are still read below
        for path in job.folder.logs():
            is_first = path not in ends
            start = max(0, path.stat().st_size - TAIL_BYTES) if is_first else ends[path]
            text, ends[path] = appended(path, start, whole_lines=not is_over)
            new = text.splitlines()
            if new := (new[-lines:] if lines else []) if is_first else new:
                yield "\n".join(new)
        if is_over:
            return
        time.sleep(FOLLOW_S)


def appended(path: Path, start: int, *, whole_lines: bool) -> tuple[str, int]:
    """Return the text of a file from byte ``start`` on, and the offset of the first byte after that text.

    With ``whole_lines``, the next call returns an unfinished last line.
    """
    with files.open_regular(path) as file:
        file.seek(start)
        data = file.read()
    if whole_lines:
        data = data[: data.rfind(b"\n") + 1]
    return data.decode("utf-8", "replace"), start + len(data)
