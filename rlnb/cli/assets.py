"""``rlnb assets``: robot and scene files, built or looked for."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from rlnb.cli import screen
from rlnb.cli.arguments import AssetRoot, Python, TaskId
from rlnb.errors import RlnbError

assets_app = typer.Typer(
    no_args_is_help=True, help="Robot and scene files: build them offline, or see what a task needs."
)


@assets_app.command()
def build(
    destination: Annotated[Path | None, typer.Argument(metavar="[DEST]", help="Folder; the cache by default.")] = None,
    robots: Annotated[bool, typer.Option("--robots", help="Also those that need further packages, or time.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Build again what is there.")] = False,
    python: Python = None,
) -> None:
    """Make robots and scenes on this machine, without a download; print their folder."""
    import json
    import subprocess

    from rlnb.display.status import status
    from rlnb.launch.command import interpreter
    from rlnb.settings import options

    argv = [*interpreter(python or options.python), "-m", "rlnb.worker", "assets-build"]
    argv += [*([str(destination.absolute())] if destination else [])]
    argv += [*(["--robots"] if robots else []), *(["--force"] if force else [])]
    with status("Building the asset packs"):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    last = done.stdout.strip().splitlines()[-1:]
    if done.returncode or not last:
        tail = "\n".join(done.stderr.strip().splitlines()[-10:])
        raise RlnbError(f"The asset packs could not be built: exit status {done.returncode} of {argv[0]}\n{tail}")
    built = json.loads(last[0])
    screen.say(built["folder"])
    for path in built["foreign"]:
        screen.say(f"kept: {path} was there and is not from an asset pack", stderr=True)
    for name, why in built["failed"].items():
        screen.say(f"failed: {name}: {why}", stderr=True)
    if built["failed"]:
        raise typer.Exit(1)


@assets_app.command("check")
def check_assets(task: TaskId, python: Python = None, asset_root: AssetRoot = None) -> None:
    """Show where each file of a task comes from; exit status 1 if one is missing."""
    from rlnb.simulation.card import task_card

    card = task_card(task, python=python, asset_root=asset_root)
    # A card may be older than a build, so files of this machine are looked at again.
    local = {name: asset.exists is not None for name, asset in card.assets.items()}
    there = {name: Path(card.assets[name].path).is_file() for name in local if local[name]}
    say = {True: "there", False: "missing", None: "remote, not looked at"}
    rows = [(name, asset.path, say[there.get(name)]) for name, asset in card.assets.items()]
    screen.table(["file", "where", ""], rows, title=f"{card.task}: {card.asset_root.reason}")
    if not all(there.values()):
        raise typer.Exit(1)


@assets_app.command()
def mirror(
    tasks: Annotated[list[str], typer.Argument(metavar="TASK... DEST", help="Tasks, and last the folder to copy to.")],
    python: Python = None,
    asset_root: AssetRoot = None,
) -> None:
    """Copy what tasks need from a reachable asset root to a folder, which is then an asset root of its own."""
    import rlnb
    from rlnb.display.status import status
    from rlnb.simulation import simulator
    from rlnb.tasks import requests

    *names, folder = tasks
    if not names:
        raise RlnbError("Which tasks, and where to? rlnb assets mirror Isaac-Ant-Direct /mnt/assets")
    destination = Path(folder).absolute()
    request = requests.Mirror(tasks=tuple(rlnb.task(name) for name in names), folder=str(destination))
    with status(f"Copying the files of {', '.join(names)}"):
        done = simulator.request(request, python, asset_root)
    size = f"{done.bytes / 2**20:.1f} MiB"
    screen.say(f"{done.root} to {destination}: {len(done.copied)} files, {size}; {len(done.existing)} were there")
    for name, named_by in done.outside.items():
        screen.say(f"not copied: {name}, which {named_by} refers to, lies outside of the asset root")
    for name, named_by in done.missing.items():
        screen.say(f"missing: {name}, which {named_by} names")
    if done.missing:
        raise typer.Exit(1)
    screen.say(f"Use it: export ISAACSIM_ASSET_ROOT={shlex.quote(str(destination))}")
