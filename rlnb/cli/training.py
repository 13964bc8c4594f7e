"""``rlnb train``, ``script``, ``resume``, ``rerun`` and ``show``: trainings, local or on a cluster."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlnb.cli import screen
from rlnb.cli.arguments import Checkpoint, Imports, Python, RunId, TaskId, Trust, Wait, texts, value, values
from rlnb.errors import RlnbError
from rlnb.spec import Json
from rlnb.training.arguments import TRAIN_ARGUMENTS, TrainArguments

if TYPE_CHECKING:
    from rlnb.contracts.launchers import Launcher
    from rlnb.run.run import Run

INTERRUPTED, TERMINATED = 130, 143
"""Exit statuses after Ctrl-C and after SIGTERM, as a shell has them."""
Where = Annotated[
    str | None, typer.Option("--launcher", help="Launcher, such as slurm; this machine by default. See rlnb launchers.")
]
WhereSet = Annotated[
    list[str] | None, typer.Option("--launcher-set", help="Setting of the launcher, such as partition=gpu. Repeatable.")
]
Ranks = Annotated[
    str | None,
    typer.Option(help="Ranks per node: 1 by default, on a cluster one per GPU. auto finds the fastest number."),
]


def _launcher(name: str | None, settings: Mapping[str, Json]) -> Launcher | None:
    """Return the launcher with a name; None is this machine."""
    from rlnb.hooks import plugins

    if name is None:
        if settings:
            raise RlnbError("--launcher-set needs --launcher. Use a name that `rlnb launchers` lists.")
        return None
    return plugins.make_launcher(name, settings)


def _ranks(text: str | None) -> Any:
    """Return ``--nproc-per-node`` for ``rlnb.train``, which checks the value."""
    return value(text) if text else None


def train(
    task: TaskId,
    nproc_per_node: Ranks = None,
    launcher: Where = None,
    launcher_set: WhereSet = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Value of the env config, such as sim.dt=0.005. Repeatable.")
    ] = None,
    agent: Annotated[
        list[str] | None, typer.Option(help="Value of the agent config, such as algorithm.gamma=0.98. Repeatable.")
    ] = None,
    agent_config: Annotated[
        str | None, typer.Option(help="Name of one of the task's agent configs, or YAML file with values for it.")
    ] = None,
    input_: Annotated[
        list[str] | None,
        typer.Option("--input", help="Run or file that the library needs, such as teacher=RUN. Repeatable."),
    ] = None,
    presets: Annotated[str, typer.Option(help="Global presets of Isaac Lab, separated by commas.")] = "",
    physics: Annotated[str | None, typer.Option(help="Physics backend, e.g. newton_mjwarp.")] = None,
    renderer: Annotated[str | None, typer.Option(help="Renderer, e.g. newton_renderer.")] = None,
    launcher_arg: Annotated[
        list[str] | None,
        typer.Option(help="Argument of Isaac Lab's launcher, such as kit_args='--enable my.extension'. Repeatable."),
    ] = None,
    imports: Imports = None,
    tag: Annotated[list[str] | None, typer.Option(help="Tag of the run, for rlnb runs --tag. Repeatable.")] = None,
    wait: Wait = True,
    **arguments: Any,
) -> None:
    """Train a task. Ctrl-C stops waiting; the run continues."""
    import rlnb
    from rlnb.simulation.pool import pool

    overrides, agent_set, settings, launcher_args = values(
        set=set_, agent=agent, launcher_set=launcher_set, launcher_arg=launcher_arg
    )
    names = [name.strip() for name in presets.split(",") if name.strip()]
    task_ = rlnb.task(
        task,
        overrides=overrides,
        presets=names,
        physics=physics,
        renderer=renderer,
        launcher_args=launcher_args,
        imports=imports,
    )
    pool.keeps = False
    run = rlnb.train(
        task_,
        agent=[agent_config or {}, agent_set],
        inputs=texts("input", input_) or None,
        nproc_per_node=_ranks(nproc_per_node),
        launcher=_launcher(launcher, settings),
        tags=tag or (),
        **arguments,
    )
    _wait_or_detach(run, wait)


def _with_options_of_train(command: Callable[..., None], *, defaults: bool = True) -> None:
    """Replace the ``**arguments`` of a command by the arguments of ``rlnb.train`` that are also options.

    Args:
        command: The command.
        defaults: Whether an option has the default of its argument; else it is None as long as it is not given.
    """
    signature = inspect.signature(command, eval_str=True)
    task, *parameters, _ = signature.parameters.values()
    own = {parameter.name for parameter in parameters}
    fields = [field for field in dataclasses.fields(TrainArguments) if TRAIN_ARGUMENTS[field.name].option]
    options = [_option(field, defaults) for field in fields if field.name not in own]
    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    command.__signature__ = signature.replace(parameters=[task, *options, *parameters])  # type: ignore[attr-defined]


def _option(field: dataclasses.Field[Any], defaults: bool) -> inspect.Parameter:
    """Return an argument of ``rlnb.train`` as an option of the command line."""
    default = field.default if defaults else None
    kinds = [kind for kind in (int, bool) if re.search(rf"\b{kind.__name__}\b", str(field.type))]
    kind: Any = kinds[0] if kinds else str
    flag, help_text = field.name.replace("_", "-"), TRAIN_ARGUMENTS[field.name].option
    if not defaults:  # those of the run
        flag = f"{flag}/--no-{flag}" if kind is bool else flag
        help_text = re.sub("; default:.*", ".", help_text)
    option = typer.Option(f"--{flag}", help=help_text)
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind if default is not None else kind | None, option],
    )


_with_options_of_train(train)


def script(
    context: typer.Context,
    path: Annotated[
        Path, typer.Argument(metavar="SCRIPT", help="Training script. All arguments after it are the script's own.")
    ],
    nproc_per_node: Ranks = None,
    launcher: Where = None,
    launcher_set: WhereSet = None,
    tag: Annotated[list[str] | None, typer.Option(help="Tag of the run, for rlnb runs --tag. Repeatable.")] = None,
    python: Python = None,
    wait: Wait = True,
) -> None:
    """Start any training script as a run. Put rlnb's options before the script: rlnb script --detach train.py ..."""
    import rlnb

    (settings,) = values(launcher_set=launcher_set)
    run = rlnb.train(
        script=path,
        args=context.args,
        nproc_per_node=_ranks(nproc_per_node),
        launcher=_launcher(launcher, settings),
        python=python,
        tags=tag or (),
    )
    _wait_or_detach(run, wait)


def resume(
    run: RunId,
    max_iterations: Annotated[int | None, typer.Option(help="Iteration at which the training ends.")] = None,
    checkpoint: Checkpoint = None,
    trust: Trust = False,
    wait: Wait = True,
) -> None:
    """Continue the training of a run from a checkpoint."""
    import rlnb

    record = rlnb.get_run(run).resume(max_iterations=max_iterations, checkpoint=checkpoint, trust=trust)
    _wait_or_detach(record, wait)


def rerun(
    run: RunId,
    launcher: Where = None,
    launcher_set: WhereSet = None,
    tag: Annotated[list[str] | None, typer.Option(help="Tag of the new run. Repeatable.")] = None,
    trust: Trust = False,
    wait: Wait = True,
    **arguments: Any,
) -> None:
    """Train a run again, with its code, config and seed. Options replace its arguments."""
    import rlnb
    from rlnb.simulation.pool import pool

    (settings,) = values(launcher_set=launcher_set)
    arguments["launcher"] = _launcher(launcher, settings)
    changes = {name: value for name, value in arguments.items() if value is not None}
    pool.keeps = False
    _wait_or_detach(rlnb.train(like=run, tags=tag or (), trust=trust, **changes), wait)


_with_options_of_train(rerun, defaults=False)


class _Terminated(KeyboardInterrupt):
    """Raised by SIGTERM."""


@contextlib.contextmanager
def _terminable(local: bool) -> Iterator[None]:
    """Raise an error on SIGTERM, if the run is on this machine. The first command of a container takes it with it."""

    def terminate(*_: object) -> None:
        raise _Terminated

    former = signal.signal(signal.SIGTERM, terminate) if local else None
    try:
        yield
    finally:
        if local:
            signal.signal(signal.SIGTERM, former)


def _wait_or_detach(run: Run, wait: bool) -> None:
    if not wait:
        screen.say(run.id)
        return
    hint = f"The run continues. Next: rlnb show {run.id}, rlnb logs {run.id} --follow, rlnb cancel {run.id}"
    screen.say(f"{run.id} started in {run.path}", stderr=True)
    try:
        with _terminable(run.manifest.launcher == "local"):
            run.wait()
    except _Terminated:
        run.cancel()
        run.wait()
        screen.say(f"SIGTERM cancelled {run.id}. To continue it: rlnb resume {run.id}", stderr=True)
        raise typer.Exit(TERMINATED) from None
    except KeyboardInterrupt:
        screen.say(f"No longer waiting for {run.id}. {hint}", stderr=True)
        raise typer.Exit(INTERRUPTED) from None
    show_run(run)
    if run.state == "cancelled":
        raise typer.Exit(1)


def show(run: RunId) -> None:
    """Show the arguments, state, lineage, metrics and files of a run."""
    import rlnb

    record = rlnb.get_run(run)
    show_run(record)
    if lineage := record.lineage():
        screen.say(f"\n{lineage!r}")


def show_run(run: Run) -> None:
    """Print a run as a table with two columns."""
    manifest, started = run.manifest, run.started
    *rows, folder = run.overview()
    rows += [
        ("name", run.name),
        ("created", run.created.astimezone().strftime("%Y-%m-%d %H:%M:%S")),
        ("launcher", manifest.launcher),
        ("devices", ", ".join(started.devices) if started else ""),
        ("overrides", screen.assigned(manifest.task.overrides)),
        ("launcher_args", screen.assigned(manifest.task.launcher_args)),
        ("deterministic", "yes" if manifest.deterministic else ""),
        ("agent", screen.assigned(manifest.agent)),
        ("tags", ", ".join(run.tags)),
        *[(f"evaluation {n}", "; ".join(map(" ".join, e.rows()))) for n, e in enumerate(run.evaluations)],
        ("jobs", ", ".join(f"{job.folder.path.name} {job.state()}" for job in run.jobs)),
        ("checkpoint", str(run.checkpoints.last or "")),
        folder,
        ("command", run.command),
    ]
    screen.table(["", ""], [row for row in rows if row[1] != ""], title=run.id)
