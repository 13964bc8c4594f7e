"""``rlnb plugins``: list the plugins, print their figures, and create a new plugin from a template."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlnb.cli import screen
from rlnb.cli.arguments import RunId

if TYPE_CHECKING:
    from rlnb.hooks.plugin import Plugin

plugins_app = typer.Typer(invoke_without_command=True, help="List the plugins, or create a new one.")


@plugins_app.callback()
def list_plugins(context: typer.Context) -> None:
    """List the plugins with their additions, and with the error if a plugin does not load."""
    if context.invoked_subcommand is not None:
        return
    from rlnb.hooks.registry import installed

    rows = [
        (
            plugin.name,
            plugin.distribution or "registered by hand",
            plugin.version,
            _additions(plugin),
            _faults(plugin),
        )
        for plugin in installed()
    ]
    screen.table(["plugin", "distribution", "version", "adds", "error"], rows)


def _faults(plugin: Plugin) -> str:
    """Return why a plugin is left out, and its faults that do not keep it from its work."""
    error = [f"left out: {plugin.error}. {plugin.fix}"] if plugin.error else []
    return "; ".join(fault.rstrip(".") for fault in (*error, *plugin.remarks))


def _additions(plugin: Plugin) -> str:
    """Return the libraries, launchers, tasks and asset packs of a plugin, and the names of its other hooks."""
    from rlnb.hooks.registry import REGISTRATION, hooks_of, registered

    additions = []
    for hook in hooks_of(plugin):
        if hook in REGISTRATION:
            items = next(items for owner, items in registered(hook) if owner.name == plugin.name)
            names = ", ".join(item.id if hook == "rlnb_tasks" else item.name for item in items)
            additions.append(f"{hook.removeprefix('rlnb_').replace('_', ' ')}: {names}")
        else:
            additions.append(f"hook {hook}")
    return "; ".join(sorted(additions))


@plugins_app.command()
def figures(run: RunId) -> None:
    """Print the figures that plugins add to a run. The output is a JSON list of Jupyter mime bundles."""
    import rlnb
    from rlnb.curves import panels

    screen.print_json(list(panels.bundles([rlnb.get_run(run)])))


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
    from rlnb.machine.packages import editable_line

    folder = make_plugin(name, kind, out)
    screen.say(f"{folder} is ready. Next:", stderr=True)
    screen.say(editable_line(folder, "test"))
    screen.say(f"{shlex.quote(sys.executable)} -m pytest {shlex.quote(str(folder.absolute()))}")
