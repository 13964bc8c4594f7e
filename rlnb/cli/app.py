"""The ``rlnb`` command: each subcommand calls a public function of the package and prints the result.

Each subcommand imports the heavy packages that it needs in its own body, so that ``rlnb --help`` is quick.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rlnb.cli import screen
from rlnb.cli.arguments import AsJson, AssetRoot, Checkpoint, Imports, Mode, Python, RunId, TaskId, Trust
from rlnb.cli.assets import assets_app
from rlnb.cli.containers import containers_app
from rlnb.cli.plugins import plugins_app
from rlnb.cli.runs import following, goodput, runs_app
from rlnb.cli.training import rerun, resume, script, show, train
from rlnb.errors import RlnbError, did_you_mean

app = typer.Typer(
    cls=screen.Commands,
    no_args_is_help=True,
    rich_markup_mode=None,  # typer's coloured help imports half of rich, 0.3 s
    pretty_exceptions_show_locals=False,
    help="Reinforcement learning of robots with NVIDIA Isaac Lab.",
)
app.add_typer(assets_app, name="assets")
app.add_typer(containers_app, name="containers")
app.add_typer(plugins_app, name="plugins")
app.add_typer(runs_app, name="runs")


def _version(requested: bool) -> None:
    if requested:
        import rlnb

        screen.console().print(f"rlnb {rlnb.__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def main(
    debug: Annotated[
        bool, typer.Option("--debug", envvar="RLNB_DEBUG", help="Show the traceback of an error.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Reinforcement learning of robots with NVIDIA Isaac Lab."""
    from rlnb.settings import options
    from rlnb.storage import files

    files.restrict_umask(options.folders.path)


# -- one run ---------------------------------------------------------------------------------------------------------

app.command()(train)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(script)
app.command()(resume)
app.command()(rerun)
app.command()(show)


@app.command()
def logs(
    run: RunId,
    lines: Annotated[int, typer.Option("-n", "--lines", min=0, help="Number of lines from the end of the log.")] = 40,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new lines until the job ends.")] = False,
) -> None:
    """Print the last lines of the log of a run's newest job."""
    import rlnb

    record = rlnb.get_run(run)
    if follow:
        for text in following(record, lines):
            screen.print_log(text)
    elif text := record.logs(lines) if lines else "":
        screen.print_log(text)


@app.command()
def cancel(run: RunId) -> None:
    """Cancel a run. Its checkpoints are kept."""
    import rlnb
    from rlnb.spec import ENDED

    record = rlnb.get_run(run)
    if all(job.state() in ENDED for job in record.jobs):
        screen.say(f"{record.id} has already ended: {record.state}.")
        return
    record.cancel()
    screen.say(f"{record.id} will stop shortly. To check its state: rlnb show {record.id}")


@app.command()
def evaluate(
    run: RunId,
    episodes: Annotated[int, typer.Option(help="Minimum number of complete episodes.")] = 100,
    num_envs: Annotated[int | None, typer.Option(help="Number of envs that run in parallel.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the env.")] = 1000,
    checkpoint: Checkpoint = None,
    trust: Trust = False,
    sampled: Annotated[bool, typer.Option("--sampled", help="Sample the actions, as in training.")] = False,
    mode: Mode = None,
) -> None:
    """Evaluate the policy over complete episodes. Actions are deterministic by default."""
    import rlnb

    record = rlnb.get_run(run)
    evaluation = record.evaluate(
        episodes,
        num_envs=num_envs,
        seed=seed,
        checkpoint=checkpoint,
        trust=trust,
        deterministic=not sampled,
        mode=mode,  # type: ignore[arg-type]  # checked there
    )
    screen.table(["", "value", "95 % interval"], evaluation.rows(), title=f"{record.id}, {evaluation.checkpoint}")


@app.command()
def play(
    run: RunId,
    num_envs: Annotated[int, typer.Option(help="Number of envs. The video shows at most 4.")] = 4,
    seed: Annotated[int, typer.Option(help="Seed of the env.")] = 1000,
    checkpoint: Checkpoint = None,
    trust: Trust = False,
    camera: Annotated[
        str | None, typer.Option(help="Name of a camera of the task. A task without cameras gets one.")
    ] = None,
    mode: Mode = None,
) -> None:
    """Record a video of the policy, and print its path."""
    import rlnb

    record = rlnb.get_run(run)
    film = record.play(num_envs, seed=seed, checkpoint=checkpoint, trust=trust, mode=mode, camera=camera)  # type: ignore[arg-type]
    screen.say(str(film.path))


@app.command()
def export(
    run: RunId,
    formats: Annotated[
        list[str] | None, typer.Option("--format", help="Format of the file: onnx or torchscript. Repeatable.")
    ] = None,
    checkpoint: Checkpoint = None,
    trust: Trust = False,
    mode: Mode = None,
) -> None:
    """Export the policy for deployment."""
    import rlnb

    paths = rlnb.get_run(run).export(*formats or (), checkpoint=checkpoint, trust=trust, mode=mode)  # type: ignore[arg-type]
    screen.table(["format", "file"], list(paths.items()))


@app.command()
def report(
    run: RunId,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Path of the HTML file.")] = None,
) -> None:
    """Write a report as one HTML file, and print its path."""
    import rlnb

    screen.say(str(rlnb.get_run(run).report(output)))


@app.command()
def preview(
    task: TaskId,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Path of a .png file, or of a .gif or .mp4 file for a video.")
    ],
    num_envs: Annotated[int, typer.Option(help="Number of envs to show.")] = 16,
    steps: Annotated[int, typer.Option(help="Number of env steps before the picture is taken.")] = 60,
    every: Annotated[int | None, typer.Option(help="Number of env steps between two frames of a video.")] = None,
    policy: Annotated[str | None, typer.Option(help="Run whose policy acts. By default, actions are random.")] = None,
    camera: Annotated[
        list[str] | None, typer.Option(help="Name of a camera; all cameras by default. Repeatable.")
    ] = None,
    data_type: Annotated[
        list[str] | None, typer.Option(help="Camera output, such as rgb or depth. Repeatable.")
    ] = None,
) -> None:
    """Save a picture or a video of the camera views of a task."""
    import rlnb

    pictures = rlnb.preview(
        task, cameras=camera, data_types=data_type, num_envs=num_envs, steps=steps, every=every, policy=policy
    )
    for finding in pictures.findings:
        screen.say(f"{finding.camera} {finding.data_type}: {finding}")
    screen.say(str(pictures.save(output)))


@app.command("compile")
def compile_kernels(
    tasks: Annotated[list[str], typer.Argument(metavar="TASK", help="Tasks whose kernels are compiled.")],
    python: Python = None,
    asset_root: AssetRoot = None,
) -> None:
    """Compile the kernels of tasks into Warp's cache.

    Simulation and rendering need these kernels. Every process that shares the cache then starts faster.
    The cache is the folder WARP_CACHE_PATH. On a cluster, set it to a folder that all nodes share.
    """
    import rlnb
    from rlnb.protocol.requests import Compile
    from rlnb.simulation.pool import pool

    for task in tasks:
        compilation = pool.request(Compile(task=rlnb.task(task)), python, asset_root)
        size = f"{compilation.cache_mib:.0f} MiB"
        screen.say(f"{task}: {compilation.seconds:.1f} s; cache: {compilation.cache} ({size})")


# -- lists -----------------------------------------------------------------------------------------------------------

app.command()(goodput)


@app.command()
def tasks(
    pattern: Annotated[
        str, typer.Argument(metavar="PATTERN", help="Part of the name, or a pattern with * and ?. Case is ignored.")
    ] = "",
    imports: Imports = None,
    python: Python = None,
    asset_root: AssetRoot = None,
) -> None:
    """List the tasks of Isaac Lab and of your packages."""
    import fnmatch

    from rlnb.configs.card import OWN_TASKS
    from rlnb.display.status import status
    from rlnb.protocol import requests
    from rlnb.settings import options
    from rlnb.simulation.pool import pool
    from rlnb.tasks.task import module_names

    call = requests.Tasks(imports=module_names(options.imports if imports is None else imports))
    with status("Listing the tasks of Isaac Lab (10 to 15 s)"):
        names = pool.request(call, python, asset_root).ids
    glob = pattern.lower() if set("*?[") & set(pattern) else f"*{pattern.lower()}*"
    matches = [name for name in names if fnmatch.fnmatchcase(name.lower(), glob)]
    if not matches:
        hint = did_you_mean(pattern, names)
        raise RlnbError(f"None of the {len(names)} tasks matches {pattern!r}.{hint} {OWN_TASKS}")
    for name in matches:
        screen.say(name)


@app.command()
def libraries(as_json: AsJson = False) -> None:
    """List the installed RL libraries."""
    from rlnb.hooks import plugins

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
def launchers(as_json: AsJson = False) -> None:
    """List the launchers, the places where trainings can run."""
    from rlnb.hooks import plugins

    types = sorted(plugins.launchers().values(), key=lambda launcher: launcher.name)
    if as_json:
        from rlnb.storage.serial import to_json

        return screen.print_json(to_json(types))
    screen.table(["launcher", "in Python"], [(launcher.name, f"rlnb.{launcher.name}(...)") for launcher in types])


# -- the installation ------------------------------------------------------------------------------------------------


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the notebook, its runs and its report.")] = Path("rlnb-demo"),
) -> None:
    """Execute the quickstart notebook and print its report's path."""
    from rlnb.cli.demo import execute

    screen.say(str(execute(out)))


@app.command()
def doctor(python: Python = None, asset_root: AssetRoot = None, as_json: AsJson = False) -> None:
    """Check this machine and print a fix for each fault. The exit status is 1 if a check finds a fault."""
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
            (item.name, f"[{colour[item.level]}]{item.level}[/]", f"{screen.safe(item.text)}{_fix(item.fix)}")
            for item in findings
        ]
        screen.table(["part", "level", "state"], rows, markup=True)
    if any(item.level == "fault" for item in findings):
        raise typer.Exit(1)


def _fix(fix: str) -> str:
    return f"\n[bold]fix:[/] {screen.safe(fix)}" if fix else ""
