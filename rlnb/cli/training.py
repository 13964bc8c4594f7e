"""``rlnb train``, ``script``, ``resume`` and ``show``: a training from the command line, here or on a cluster."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlnb.cli import screen
from rlnb.cli.arguments import Checkpoint, Python, RunId, TaskId, Trust, Wait, value, values
from rlnb.errors import RlnbError
from rlnb.training.request import TrainRequest

if TYPE_CHECKING:
    from rlnb.contracts import Launcher
    from rlnb.run.run import Run

INTERRUPTED = 130
Where = Annotated[str | None, typer.Option("--launcher", help="Where to run: slurm, ... See: rlnb launchers.")]
WhereSet = Annotated[
    list[str] | None, typer.Option("--launcher-set", help="What to ask of it: partition=gpu. Repeatable.")
]
Ranks = Annotated[
    str | None,
    typer.Option(help="Ranks of each machine: 1, on a cluster its GPUs; auto: what is fastest for a task, no script."),
]


def _launcher(name: str | None, settings: Mapping[str, Any]) -> Launcher | None:
    """Return the launcher that was asked for; None is this machine."""
    from rlnb import plugins

    if name is None:
        if settings:
            raise RlnbError("--launcher-set says nothing without --launcher. `rlnb launchers` lists them.")
        return None
    return plugins.make_launcher(name, settings)


def train(
    task: TaskId,
    nproc_per_node: Ranks = None,
    launcher: Where = None,
    launcher_set: WhereSet = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Env config value: sim.dt=0.005. Repeatable.")] = None,
    agent: Annotated[list[str] | None, typer.Option(help="Agent config value, as --set. Repeatable.")] = None,
    agent_config: Annotated[Path | None, typer.Option(help="YAML file of agent config values.")] = None,
    presets: Annotated[str, typer.Option(help="Isaac Lab's global presets: a,b.")] = "",
    physics: Annotated[str | None, typer.Option(help="Physics selector, e.g. newton_mjwarp.")] = None,
    renderer: Annotated[str | None, typer.Option(help="Renderer selector, e.g. newton_renderer.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Word to find the run by. Repeatable.")] = None,
    wait: Wait = True,
    **arguments: Any,
) -> None:
    """Train a task. Ctrl-C while waiting leaves the run alone."""
    import rlnb
    from rlnb.simulation import simulator
    from rlnb.tasks.agent_config import agent_values

    overrides, agent_set, settings = values(set=set_, agent=agent, launcher_set=launcher_set)
    names = [name.strip() for name in presets.split(",") if name.strip()]
    described = rlnb.task(task, overrides=overrides, presets=names, physics=physics, renderer=renderer)
    simulator.keep_none()
    run = rlnb.train(
        described,
        agent={**agent_values(agent_config), **agent_set},
        nproc_per_node=value(nproc_per_node) if nproc_per_node else None,
        launcher=_launcher(launcher, settings),
        tags=tag or (),
        **arguments,
    )
    _wait_or_detach(run, wait)


def _with_options_of_train(command: Callable[..., None]) -> None:
    """Give a command, in the place of ``**arguments``, the arguments of ``rlnb.train`` that are options too."""
    signature = inspect.signature(command, eval_str=True)
    task, *own, _ = signature.parameters.values()
    options = [_option(field) for field in dataclasses.fields(TrainRequest) if "help" in field.metadata]
    own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    command.__signature__ = signature.replace(parameters=[task, *options, *own])  # type: ignore[attr-defined]


def _option(field: dataclasses.Field[Any]) -> inspect.Parameter:
    """Return an argument of ``rlnb.train`` as an option of the command line."""
    kinds = [kind for kind in (int, bool) if re.search(rf"\b{kind.__name__}\b", str(field.type))]
    kind: Any = kinds[0] if kinds else str
    option = typer.Option(f"--{field.name.replace('_', '-')}", help=field.metadata["help"])
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=field.default,
        annotation=Annotated[kind if field.default is not None else kind | None, option],
    )


_with_options_of_train(train)


def script(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(help="Training script; what follows it are its own arguments.")],
    nproc_per_node: Ranks = None,
    launcher: Where = None,
    launcher_set: WhereSet = None,
    tag: Annotated[list[str] | None, typer.Option(help="Word to find the run by. Repeatable.")] = None,
    python: Python = None,
    wait: Wait = True,
) -> None:
    """Start any training script as a run. rlnb's options go before it: rlnb script --detach train.py --task ..."""
    import rlnb

    (settings,) = values(launcher_set=launcher_set)
    run = rlnb.train(
        script=path,
        args=context.args,
        nproc_per_node=value(nproc_per_node) if nproc_per_node else None,
        launcher=_launcher(launcher, settings),
        python=python,
        tags=tag or (),
    )
    _wait_or_detach(run, wait)


def resume(
    run: RunId,
    max_iterations: Annotated[int | None, typer.Option(help="Iteration to end at.")] = None,
    checkpoint: Checkpoint = None,
    trust: Trust = False,
    wait: Wait = True,
) -> None:
    """Go on from a checkpoint, in the same run."""
    import rlnb

    found = rlnb.get_run(run).resume(max_iterations=max_iterations, checkpoint=checkpoint, trust=trust)
    _wait_or_detach(found, wait)


def _wait_or_detach(run: Run, wait: bool) -> None:
    if not wait:
        screen.say(run.id)
        return
    hint = f"It goes on. Find it again: rlnb show {run.id}, rlnb logs {run.id} --follow, rlnb cancel {run.id}"
    screen.say(f"{run.id} started in {run.path}", stderr=True)
    try:
        run.wait()
    except KeyboardInterrupt:
        screen.say(f"Detached from {run.id}. {hint}", stderr=True)
        raise typer.Exit(INTERRUPTED) from None
    show_run(run)


def show(run: RunId) -> None:
    """Show what a run is, where it stands and what it left."""
    import rlnb

    show_run(rlnb.get_run(run))


def show_run(run: Run) -> None:
    done, total = run.progress
    manifest, metrics, result = run.manifest, run.metrics, run.result
    rows: list[tuple[str, Any]] = [
        ("task", run.task),
        ("library", run.library),
        ("state", run.state),
        ("waits for", ", ".join(run.waits_for)),
        ("error", result.error if result else ""),
        ("iteration", f"{done} of {total}" if total else ""),
        ("created", run.created.astimezone().strftime("%Y-%m-%d %H:%M:%S")),
        ("launcher", manifest.launcher),
        ("devices", ", ".join(run.started.devices) if run.started else ""),
        ("overrides", screen.assigned(manifest.task.overrides)),
        ("agent", screen.assigned(manifest.agent)),
        ("tags", ", ".join(run.tags)),
        *[(name, metrics[name].last) for name in metrics.names],
        *[(f"evaluation {n}", "; ".join(map(" ".join, e.rows()))) for n, e in enumerate(run.evaluations)],
        ("jobs", ", ".join(f"{job.folder.path.name} {job.state()}" for job in run.jobs)),
        ("checkpoint", str(run.checkpoints[-1]) if run.checkpoints else ""),
        ("folder", str(run.path)),
        ("command", run.command),
    ]
    screen.table(["", ""], [row for row in rows if row[1] != ""], title=run.id)
