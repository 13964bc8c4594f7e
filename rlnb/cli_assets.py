"""``rlnb assets``: robot and scene files, built or looked for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rlnb import screen
from rlnb.cli_arguments import AssetRoot, Python, TaskId
from rlnb.errors import RlnbError

assets_app = typer.Typer(
    no_args_is_help=True, help="Robot and scene files: build them offline, or see what a task needs."
)


@assets_app.command()
def build(
    destination: Annotated[Path | None, typer.Argument(metavar="[DEST]", help="Folder; the cache by default.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Build again what is there.")] = False,
    python: Python = None,
) -> None:
    """Make robots and scenes on this machine, without a download; print their folder."""
    import subprocess

    from rlnb.launch.command import interpreter
    from rlnb.notebook.display import status
    from rlnb.settings import options

    argv = [*interpreter(python or options.python), "-m", "rlnb.worker", "assets-build"]
    argv += [*([str(destination)] if destination else []), *(["--force"] if force else [])]
    with status("Building the asset packs"):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    folder = done.stdout.strip().splitlines()[-1:]
    if done.returncode or not folder:
        tail = "\n".join(done.stderr.strip().splitlines()[-10:])
        raise RlnbError(f"The asset packs could not be built: exit status {done.returncode} of {argv[0]}\n{tail}")
    screen.say(folder[0])


@assets_app.command("check")
def check_assets(task: TaskId, python: Python = None, asset_root: AssetRoot = None) -> None:
    """Show where each file of a task comes from; exit status 1 if one is missing."""
    from rlnb.cards import task_card

    card = task_card(task, python=python, asset_root=asset_root)
    # A card may be older than a build, so files of this machine are looked at again.
    local = {name: asset["there"] is not None for name, asset in card["assets"].items()}
    there = {name: Path(card["assets"][name]["path"]).is_file() for name in local if local[name]}
    say = {True: "there", False: "missing", None: "remote, not looked at"}
    rows = [(name, asset["path"], say[there.get(name)]) for name, asset in card["assets"].items()]
    screen.table(["file", "where", ""], rows, title=f"{card['task']}: {card['asset_root']['reason']}")
    if not all(there.values()):
        raise typer.Exit(1)
