"""``rlnb assets``: build, check and mirror robot and scene files."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from rlnb.cli import screen
from rlnb.cli.arguments import AssetRoot, Python, TaskId
from rlnb.errors import RlnbError

assets_app = typer.Typer(no_args_is_help=True, help="Build, check and mirror robot and scene files.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """The result of ``python -m rlnb.worker assets-build``; see ``rlnb.worker.assets.packs.Built``."""

    folder: str
    foreign: tuple[str, ...]
    """Files that a user put into the folder; the build leaves them unchanged."""
    failed: Mapping[str, str]
    """Packs and files that could not be built, with the reason."""


@assets_app.command()
def build(
    destination: Annotated[
        Path | None, typer.Argument(metavar="DEST", help="Folder of the files; the cache by default.")
    ] = None,
    robots: Annotated[
        bool, typer.Option("--robots", help="Also build robots that need extra packages or take a long time.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Rebuild existing files.")] = False,
    python: Python = None,
) -> None:
    """Build robot and scene files without a download. Prints their folder."""
    import json
    import subprocess

    from rlnb.display.status import status
    from rlnb.launch.command import interpreter
    from rlnb.settings import options
    from rlnb.storage.serial import from_json

    argv = [*interpreter(python or options.python), "-P", "-m", "rlnb.worker", "assets-build"]
    argv += [*([str(destination.absolute())] if destination else [])]
    argv += [*(["--robots"] if robots else []), *(["--force"] if force else [])]
    with status("Building the asset packs"):
        process = subprocess.run(argv, capture_output=True, text=True, check=False)
    last_line = process.stdout.strip().splitlines()[-1:]
    if process.returncode or not last_line:
        tail = "\n".join(process.stderr.strip().splitlines()[-10:])
        raise RlnbError(f"The asset packs could not be built: exit status {process.returncode} of {argv[0]}.\n{tail}")
    outcome = from_json(Built, json.loads(last_line[0]), ignore_unknown=True)
    screen.say(outcome.folder)
    for path in outcome.foreign:
        screen.say(f"kept: {path} already exists and is not from an asset pack", stderr=True)
    for name, reason in outcome.failed.items():
        screen.say(f"failed: {name}: {reason}", stderr=True)
    if outcome.failed:
        raise typer.Exit(1)


@assets_app.command("check")
def check_assets(task: TaskId, python: Python = None, asset_root: AssetRoot = None) -> None:
    """Show where each file of a task comes from. The exit status is 1 if a file is missing."""
    from rlnb.tasks.task import task_card

    card = task_card(task, python=python, asset_root=asset_root)
    # The cached card may be older than the last build, so check local files again.
    local = [name for name, asset in card.assets.items() if asset.exists is not None]
    exists = {name: Path(card.assets[name].path).is_file() for name in local}
    states = {True: "exists", False: "missing", None: "remote, not checked"}
    rows = [(name, asset.path, states[exists.get(name)]) for name, asset in card.assets.items()]
    screen.table(["file", "path", "state"], rows, title=f"{card.task}: {card.asset_root.reason}")
    if not all(exists.values()):
        raise typer.Exit(1)


@assets_app.command()
def mirror(
    tasks: Annotated[
        list[str], typer.Argument(metavar="TASK... DEST", help="Tasks, then the folder to copy to as last argument.")
    ],
    python: Python = None,
    asset_root: AssetRoot = None,
) -> None:
    """Copy the assets of tasks to a folder. Machines without internet access can use it as their asset root."""
    import rlnb
    from rlnb.display.status import status
    from rlnb.protocol import requests
    from rlnb.simulation.pool import pool

    *names, folder = tasks
    if not names:
        raise RlnbError(
            "Give at least one task, then the folder. For example: rlnb assets mirror Isaac-Ant-Direct /mnt/assets"
        )
    destination = Path(folder).absolute()
    request = requests.Mirror(tasks=tuple(rlnb.task(name) for name in names), folder=str(destination))
    with status(f"Copying the files of {', '.join(names)}"):
        reply = pool.request(request, python, asset_root)
    size = f"{reply.bytes / 2**20:.1f} MiB"
    counts = f"{len(reply.copied)} files copied, {size}; {len(reply.existing)} existed already"
    screen.say(f"{reply.root} to {destination}: {counts}")
    for name, user in reply.outside.items():
        screen.say(f"not copied: {name}, used by {user}, is outside the asset root")
    for name, user in reply.missing.items():
        screen.say(f"missing: {name}, used by {user}")
    if reply.missing:
        raise typer.Exit(1)
    screen.say(f"Use it: export ISAACSIM_ASSET_ROOT={shlex.quote(str(destination))}")
