"""``rlnb plugins``: list the plugins, print their figures, and create a new plugin from a template."""

from __future__ import annotations

import contextlib
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rlnb.cli import screen
from rlnb.cli.arguments import RunId

plugins_app = typer.Typer(invoke_without_command=True, help="List the plugins, or create a new one.")


@plugins_app.callback()
def list_plugins(context: typer.Context) -> None:
    """List the plugins with their additions, and with the error if a plugin does not load."""
    if context.invoked_subcommand is not None:
        return
    import importlib.metadata
    import warnings

    from rlnb import plugins
    from rlnb.doctor.doctor import load_error

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table shows the error of a broken plugin
        manager = plugins.manager()
    entries = {entry.name: entry for entry in importlib.metadata.entry_points(group="rlnb")}
    by_hand = [name for name, _ in manager.list_name_plugin() if name not in entries]
    rows = []
    for name in [*sorted(entries), *by_hand]:
        dist = entries[name].dist if name in entries else None
        package = (dist.name, dist.version) if dist else ("" if name in entries else "registered by hand", "")
        error = load_error(entries[name]) if name in entries and not manager.has_plugin(name) else ""
        rows.append((name, *package, _additions(manager.get_plugin(name)), error))
    screen.table(["plugin", "distribution", "version", "adds", "error"], rows)


def _additions(plugin: object) -> str:
    """Return the libraries, launchers, tasks and asset packs of a plugin, and the names of its other hooks."""
    from rlnb import plugins

    additions = []
    for caller in plugins.manager().get_hookcallers(plugin) or [] if plugin is not None else []:
        kind = caller.name.removeprefix("rlnb_")
        if kind in ("libraries", "launchers", "tasks", "asset_packs"):
            items: Any = next(impl for impl in caller.get_hookimpls() if impl.plugin is plugin).function()
            kind = kind.replace("_", " ")
            additions.append(f"{kind}: {', '.join(item.id if kind == 'tasks' else item.name for item in items)}")
        else:
            additions.append(f"hook {caller.name}")
    return "; ".join(sorted(additions))


@plugins_app.command()
def figures(run: RunId) -> None:
    """Print the figures that plugins add to a run. The output is a JSON list of Jupyter mime bundles."""
    import rlnb
    from rlnb.curves import panels

    with contextlib.redirect_stdout(sys.stderr):  # a plugin's own output must not mix with the JSON
        bundles = list(panels.bundles([rlnb.get_run(run)]))
    screen.print_json(bundles)


@plugins_app.command()
def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the plugin: my-lib becomes the package rlnb-my-lib.")
    ],
    kind: Annotated[str, typer.Option(metavar="library|tasks|launcher", help="Kind of the plugin.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the package; ./rlnb-NAME by default.")] = None,
) -> None:
    """Create a plugin package that works without changes and has tests."""
    from rlnb.cli.scaffold import make_plugin

    folder = str(make_plugin(name, kind, out))
    path = folder if Path(folder).is_absolute() else f"./{folder}"  # without ./, pip reads it as a package name
    screen.say(f"{folder} is ready. Next:", stderr=True)
    screen.say(f"pip install -e {shlex.quote(f'{path}[test]')}")
    screen.say(f"pytest {shlex.quote(folder)}")
