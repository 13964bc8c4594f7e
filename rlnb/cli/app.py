"""The ``rlnb`` command: the verbs of the package on a terminal, with tables.

Thin on purpose. Nothing heavy is imported before a command needs it, so that ``rlnb --help`` is quick.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rlnb.cli import follow as tail
from rlnb.cli import screen
from rlnb.cli.arguments import AssetRoot, Checkpoint, Json, Python, RunId, TaskId, Trust
from rlnb.cli.assets import assets_app
from rlnb.cli.plugins import plugins_app
from rlnb.cli.runs import runs_app
from rlnb.cli.training import resume, script, show, train
from rlnb.errors import RlnbError

app = typer.Typer(
    cls=screen.Shown,
    no_args_is_help=True,
    rich_markup_mode=None,  # typer's coloured help imports half of rich, 0.3 s
    pretty_exceptions_show_locals=False,
    help="Reinforcement learning of robots with NVIDIA Isaac Lab.",
)
app.add_typer(assets_app, name="assets")
app.add_typer(plugins_app, name="plugins")
app.add_typer(runs_app, name="runs")


def _version(wanted: bool) -> None:
    if wanted:
        import rlnb

        screen.console().print(f"rlnb {rlnb.__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def main(
    debug: Annotated[bool, typer.Option("--debug", envvar="RLNB_DEBUG", help="Show tracebacks.")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    """Reinforcement learning of robots with NVIDIA Isaac Lab."""


# -- runs ------------------------------------------------------------------------------------------------

app.command()(train)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(script)
app.command()(resume)
app.command()(show)


@app.command()
def logs(
    run: RunId,
    lines: Annotated[int, typer.Option("-n", "--lines", min=0, help="Lines from the end.")] = 40,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job ends.")] = False,
) -> None:
    """Print the end of the log of a run's newest job."""
    import rlnb

    found = rlnb.get_run(run)
    if follow:
        for text in tail.follow(found, lines):
            screen.print_log(text)
    elif text := found.logs(lines) if lines else "":
        screen.print_log(text)


@app.command()
def cancel(run: RunId) -> None:
    """Ask a run to end. Its checkpoints stay."""
    import rlnb
    from rlnb.spec import ENDED

    found = rlnb.get_run(run)
    if all(job.state() in ENDED for job in found.jobs):
        screen.say(f"{found.id} has ended already: {found.state}.")
        return
    found.cancel()
    screen.say(f"{found.id} was asked to end. How it goes: rlnb show {found.id}")


@app.command()
def evaluate(
    run: RunId,
    episodes: Annotated[int, typer.Option(help="Whole episodes, at least.")] = 100,
    num_envs: Annotated[int | None, typer.Option(help="Envs side by side.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the env.")] = 1000,
    checkpoint: Checkpoint = None,
    trust: Trust = False,
    sampled: Annotated[bool, typer.Option("--sampled", help="Sample actions, as in training.")] = False,
) -> None:
    """Run whole episodes, with deterministic actions unless they are to be sampled."""
    import rlnb

    found = rlnb.get_run(run)
    evaluation = found.evaluate(
        episodes, num_envs=num_envs, seed=seed, checkpoint=checkpoint, trust=trust, deterministic=not sampled
    )
    screen.table(["", "value", "95 % interval"], evaluation.rows(), title=f"{found.id}, {evaluation.checkpoint}")


@app.command()
def play(
    run: RunId,
    num_envs: Annotated[int, typer.Option(help="Envs, at most 4 of them in the picture.")] = 4,
    seed: Annotated[int, typer.Option(help="Seed of the env.")] = 1000,
    checkpoint: Checkpoint = None,
    trust: Trust = False,
    camera: Annotated[
        str | None, typer.Option(help="Which of the task's cameras; one is added if there is none.")
    ] = None,
) -> None:
    """Film the policy; print the path of the MP4."""
    import rlnb

    found = rlnb.get_run(run)
    film = found.play(num_envs, seed=seed, checkpoint=checkpoint, trust=trust, camera=camera)
    screen.say(str(film.path))


@app.command()
def export(
    run: RunId,
    formats: Annotated[list[str] | None, typer.Option("--format", help="onnx, torchscript. Repeatable.")] = None,
    checkpoint: Checkpoint = None,
    trust: Trust = False,
) -> None:
    """Write the policy for deployment."""
    import rlnb

    written = rlnb.get_run(run).export(*formats or (), checkpoint=checkpoint, trust=trust)
    screen.table(["format", "file"], list(written.items()))


@app.command()
def report(
    run: RunId,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="HTML file.")] = None,
) -> None:
    """Write a report as one self-contained HTML file, and print its path."""
    import rlnb

    screen.say(str(rlnb.get_run(run).report(output)))


@app.command()
def preview(
    task: TaskId,
    output: Annotated[Path, typer.Option("-o", "--output", help="File: .png, or .gif or .mp4 for a film.")],
    num_envs: Annotated[int, typer.Option(help="Envs to show.")] = 16,
    steps: Annotated[int, typer.Option(help="Env steps before the picture.")] = 60,
    every: Annotated[int | None, typer.Option(help="Steps from frame to frame of a film.")] = None,
    policy: Annotated[str | None, typer.Option(help="Run whose policy acts; else actions are random.")] = None,
    camera: Annotated[list[str] | None, typer.Option(help="Camera, all by default. Repeatable.")] = None,
    data_type: Annotated[list[str] | None, typer.Option(help="rgb, depth, ... Repeatable.")] = None,
) -> None:
    """Take a picture of what a task's cameras see."""
    import rlnb

    taken = rlnb.preview(
        task, cameras=camera, data_types=data_type, num_envs=num_envs, steps=steps, every=every, policy=policy
    )
    for finding in taken.findings:
        screen.say(f"{finding.camera} {finding.data_type}: {finding}")
    screen.say(str(taken.save(output)))


@app.command("compile")
def compile_kernels(
    tasks: Annotated[list[str], typer.Argument(help="Tasks whose kernels to compile.")],
    python: Python = None,
    asset_root: AssetRoot = None,
) -> None:
    """Compile the simulation and rendering kernels of tasks into Warp's cache, once for all processes that share it.

    WARP_CACHE_PATH says where the cache lies; on a cluster, set it to a folder that all nodes see.
    """
    import rlnb
    from rlnb.simulation.simulator import request
    from rlnb.tasks.requests import Compile

    for task in tasks:
        compilation = request(Compile(task=rlnb.task(task)), python, asset_root)
        size = f"{compilation.cache_mib:.0f} MiB"
        screen.say(f"{task}: {compilation.seconds:.1f} s; cache: {compilation.cache} ({size})")


# -- what there is ---------------------------------------------------------------------------------------


@app.command()
def tasks(
    pattern: Annotated[str, typer.Argument(help="Part of the name, or a pattern with * and ?; case is ignored.")] = "",
    python: Python = None,
    asset_root: AssetRoot = None,
) -> None:
    """List Isaac Lab's tasks."""
    import fnmatch

    from rlnb.display.status import status
    from rlnb.simulation import simulator
    from rlnb.tasks import requests

    with status("Asking the worker for its tasks (10 to 15 s)"):
        known = simulator.request(requests.Tasks(), python, asset_root).ids
    wanted = pattern.lower() if set("*?[") & set(pattern) else f"*{pattern.lower()}*"
    found = [name for name in known if fnmatch.fnmatchcase(name.lower(), wanted)]
    if not found:
        from rlnb.errors import did_you_mean

        raise RlnbError(f"No task fits {pattern!r}; there are {len(known)}.{did_you_mean(pattern, known)}")
    for name in found:
        screen.say(name)


@app.command()
def libraries(as_json: Json = False) -> None:
    """List the installed RL libraries."""
    from rlnb import plugins

    if as_json:
        names = ("name", "step_unit", "multi_agent", "distributed", "exports", "requires")
        return screen.print_json([{name: getattr(lib, name) for name in names} for lib in plugins.libraries().values()])
    rows = [
        (
            lib.name,
            lib.step_unit,
            screen.yes(lib.multi_agent),
            screen.yes(lib.distributed),
            ", ".join(lib.exports),
            ", ".join(lib.requires),
        )
        for lib in plugins.libraries().values()
    ]
    screen.table(["library", "step unit", "several agents", "several ranks", "exports", "requires"], rows)


@app.command()
def launchers(as_json: Json = False) -> None:
    """List the places where trainings can run."""
    from rlnb import plugins

    found = sorted(plugins.launchers())
    if as_json:
        return screen.print_json(found)
    screen.table(["launcher", "made by"], [(name, f"rlnb.{name}(...)") for name in found])


# -- the whole -------------------------------------------------------------------------------------------


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the notebook, its runs and its report.")] = Path("rlnb-demo"),
) -> None:
    """Execute the quickstart notebook and print the path of its HTML report."""
    from rlnb.cli.demo import execute

    screen.say(str(execute(out)))


@app.command()
def doctor(python: Python = None, asset_root: AssetRoot = None, as_json: Json = False) -> None:
    """Look whether this machine is fit, and say how to fix what is not; exit status 1 if there is a fault."""
    from rlnb.doctor.doctor import examine
    from rlnb.settings import options

    findings = examine(
        root=options.folders.path, python=python or options.python, asset_root=asset_root or options.asset_root
    )
    if as_json:
        from rlnb.storage.serial import to_json

        screen.print_json(to_json(findings))
    else:
        colour = {"ok": "green", "warning": "yellow", "fault": "red"}
        rows = [
            (item.name, f"[{colour[item.level]}]{item.level}[/]", f"{screen.safe(item.found)}{_fix(item.fix)}")
            for item in findings
        ]
        screen.table(["", "", "found"], rows, markup=True)
    if any(item.level == "fault" for item in findings):
        raise typer.Exit(1)


def _fix(fix: str) -> str:
    return f"\n[bold]fix:[/] {screen.safe(fix)}" if fix else ""
