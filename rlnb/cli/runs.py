"""``rlnb runs``: the runs that there are, and making room among them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlnb.cli import screen
from rlnb.cli.arguments import Json, values

if TYPE_CHECKING:
    from rlnb.run.run import Run

runs_app = typer.Typer(invoke_without_command=True, help="List runs, newest first; or make room among them.")

Root = Annotated[Path | None, typer.Option("--path", help="rlnb root, run, or stock Isaac Lab logs folder.")]
OfTask = Annotated[str | None, typer.Option("--task", help="Only of this task.")]
OfLibrary = Annotated[str | None, typer.Option("--library", help="Only of this library.")]
InState = Annotated[str | None, typer.Option("--state", help="Only in this state, e.g. running.")]
WithTag = Annotated[str | None, typer.Option("--tag", help="Only with this tag.")]
Since = Annotated[str | None, typer.Option("--since", help="Only started since then, e.g. 2026-11-20.")]
Where = Annotated[
    list[str] | None, typer.Option("--where", metavar="NAME=VALUE", help="Only of which this was asked: num_envs=512.")
]
Sort = Annotated[str | None, typer.Option("--sort", help="Best first by a metric's last value, or by what was asked.")]
Column = Annotated[
    list[str] | None, typer.Option("--column", help="Show a metric's last value too, or what was asked: seed, sim.dt.")
]
Archived = Annotated[bool, typer.Option("--archived", help="Those that are archived; else they are left out.")]


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
    as_json: Json = False,
) -> None:
    """List runs, newest first."""
    if ctx.invoked_subcommand is not None:
        return
    import rlnb

    (asked,) = values(where=where)
    found = rlnb.runs(
        path, task=task, library=library, state=state, tag=tag, since=since, where=asked, archived=archived
    )
    found = found.sorted(sort) if sort else found
    further = {name: found.values(name) for name in column or ()}
    rows = [_row(run) | {name: of_all[at] for name, of_all in further.items()} for at, run in enumerate(found)]
    if as_json:
        return screen.print_json(rows)
    shown = ("id", "task", "library", "state", "iteration", "reward", "success_rate", *further, "created")
    screen.table([name.replace("_", " ") for name in shown], [[row[name] for name in shown] for row in rows])


def _row(run: Run) -> dict[str, Any]:
    done, total = run.progress
    metrics = run.metrics
    last = {name: metrics.last(name) if name in metrics.names else None for name in ("reward", "success_rate")}
    return {
        "id": run.id,
        "task": run.task,
        "library": run.library,
        "state": run.state,
        "iteration": f"{done}/{total}" if total else "",
        **last,
        "created": run.created.astimezone().strftime("%Y-%m-%d %H:%M"),
        "tags": list(run.tags),
        "path": str(run.path),
    }


@runs_app.command()
def prune(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[RUN]...", help="Only these runs.")] = None,
    path: Root = None,
    task: OfTask = None,
    library: OfLibrary = None,
    state: InState = None,
    tag: WithTag = None,
    keep: Annotated[int, typer.Option(help="Checkpoints that stay of each run, beside the best.")] = 1,
    whole: Annotated[bool, typer.Option("--whole", help="Remove the runs as a whole, not their checkpoints.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this it is only shown.")] = False,
) -> None:
    """Show which checkpoints of ended runs can go, or remove them (--yes)."""
    import rlnb
    from rlnb.run.pruning import in_words

    named = rlnb.Runs([rlnb.get_run(id) for id in ids or ()])
    if named and not any((path, task, library, state, tag)):
        chosen = named
    else:
        chosen = rlnb.runs(path, task=task, library=library, state=state, tag=tag)
        wanted = {run.path for run in named}
        chosen = rlnb.Runs([run for run in chosen if not ids or run.path in wanted])
    found = chosen.prune(keep=keep, whole=whole)
    screen.table(["run", "what", "size"], found.rows())
    if yes:
        found.apply()
    word = "Removed" if yes else "To be removed with --yes:"
    left = f" {found.unfinished} that have not ended are left alone." if found.unfinished else ""
    screen.say(f"{word} {in_words(found.size)}, {len(found.items)} items.{left}")
    if ids and found.unfinished:
        raise typer.Exit(1)
