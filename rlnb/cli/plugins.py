"""``rlnb plugins``: list the plugins, print their figures, and create a new plugin from a template."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import keyword
import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import rlnb
from rlnb.cli import screen
from rlnb.cli.arguments import RunId
from rlnb.errors import CheckError, Problem, RlnbError, unknown
from rlnb.hooks import plugins
from rlnb.machine.packages import editable_line, install_line
from rlnb.version import ISAACLAB

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
    folder = make_plugin(name, kind, out)
    screen.say(f"{folder} is ready. Next:", stderr=True)
    screen.say(editable_line(folder, "test"))
    screen.say(f"{shlex.quote(sys.executable)} -m pytest {shlex.quote(str(folder.absolute()))}")


# -- new plugins -----------------------------------------------------------------------------------------------------


TEMPLATES = Path(__file__).absolute().parent / "templates"
KINDS = ("launcher", "library", "tasks")
LONGEST = 30
"""Maximum number of characters in a plugin's name, which is part of file names, class names and lines of code."""
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Names:
    """The names that follow from a plugin's name. The examples are for ``my-lib``."""

    name: str
    """Name of the plugin: ``my-lib``."""

    @property
    def distribution(self) -> str:
        """Name of its package: ``rlnb-my-lib``."""
        return f"rlnb-{self.name}"

    @property
    def module(self) -> str:
        """Name of its module: ``rlnb_my_lib``."""
        return self.distribution.replace("-", "_")

    @property
    def key(self) -> str:
        """Its name within rlnb: ``my_lib``."""
        return self.name.replace("-", "_")

    @property
    def cls(self) -> str:
        """Prefix of its classes: ``MyLib``."""
        return "".join(part.capitalize() for part in self.name.split("-"))

    @property
    def title(self) -> str:
        """Prefix of its tasks: ``My-Lib``."""
        return "-".join(part.capitalize() for part in self.name.split("-"))


def make_plugin(name: str, kind: str, out: Path | None = None) -> Path:
    """Write a plugin package that works without changes, and return its folder.

    Args:
        name: Name of the plugin, e.g. ``"my-lib"`` for the package ``rlnb-my-lib``.
        kind: ``"library"``, ``"tasks"`` or ``"launcher"``.
        out: Folder of the package, which must be empty if it exists; None is a folder named after the package.

    Raises:
        CheckError: The arguments have problems. The error lists all of them; nothing was written.
        RlnbError: The folder cannot be written.
    """
    names = Names(name.replace("_", "-"))
    folder = out if out is not None else Path(names.distribution)
    problems = [*_check_name(name, names, kind), *_check_kind(names, kind), *_check_folder(folder), *_check_copier()]
    if problems:
        raise CheckError(f"plugin {name!r}", problems)
    from copier import run_copy

    answers = {key: getattr(names, key) for key in ("distribution", "module", "key", "cls", "title")}
    try:
        run_copy(str(TEMPLATES / kind), folder, {**answers, "isaaclab": ISAACLAB}, defaults=True, quiet=True)
    except OSError as exc:
        raise RlnbError(f"{folder} could not be written: {exc}") from exc
    return folder


def _check_name(name: str, names: Names, kind: str) -> Iterator[Problem]:
    bad = not _NAME.fullmatch(names.name) or keyword.iskeyword(names.key) or len(names.name) > LONGEST
    if bad or names.name.startswith("rlnb-"):
        yield Problem(
            what=f"{name!r} is not a valid plugin name. Start with a letter, use lowercase letters, digits and single "
            f"dashes, at most {LONGEST} characters, and avoid Python keywords and the prefix 'rlnb-'.",
            fix=f"rlnb plugins new {_nearest(name)} --kind {kind if kind in KINDS else 'library'}",
        )
        return
    entries = importlib.metadata.entry_points(group="rlnb")
    distributions = {entry.name: entry.dist for entry in entries if entry.name != "rlnb"}
    names_in_use = {"rlnb", *distributions, *plugins.libraries(), *plugins.launchers(), plugins.SCRIPT.name}
    if names.key in names_in_use:
        dist = distributions.get(names.key)
        owner = f"the package {dist.name}" if dist else "rlnb"
        fix = f"Choose another name{f', or: pip uninstall {dist.name}' if dist else ''}."
        text = f"The name {names.key!r} belongs to {owner}. Names in use: {', '.join(sorted(names_in_use))}."
        yield Problem(what=text, fix=fix)
    elif importlib.util.find_spec(names.module) is not None:
        yield Problem(what=f"A module named {names.module!r} is already installed.", fix="Choose another name.")


def _nearest(name: str) -> str:
    """Return a valid name that resembles an invalid one."""
    valid = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-").removeprefix("rlnb-")[:LONGEST].strip("-")
    return valid if _NAME.fullmatch(valid) and not keyword.iskeyword(valid) else "my-plugin"


def _check_kind(names: Names, kind: str) -> Iterator[Problem]:
    if kind not in KINDS:
        yield Problem(what=str(unknown("kind of plugin", kind, KINDS, has="There are")), fix="--kind library")
    elif kind == "launcher" and (names.key in rlnb.__all__ or importlib.util.find_spec(f"rlnb.{names.key}")):
        yield Problem(
            what=f"rlnb.{names.key} is rlnb's own, so no launcher can have that name.",
            fix=f"rlnb plugins new my-{names.name} --kind launcher",
        )


def _check_folder(folder: Path) -> Iterator[Problem]:
    fix = "--out ANOTHER_FOLDER"
    try:
        folder.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as exc:
        yield Problem(what=f"{str(folder)[:100]} cannot be a folder: {getattr(exc, 'strerror', exc)}.", fix=fix)
        return
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists() or folder.is_symlink():
        yield Problem(what=f"{folder} exists and is {'not empty' if folder.is_dir() else 'not a folder'}.", fix=fix)
        return
    above = next(parent for parent in folder.absolute().parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        yield Problem(what=f"{folder} cannot be created: {above} is not a writable folder.", fix=fix)


def _check_copier() -> Iterator[Problem]:
    if importlib.util.find_spec("copier") is None:
        yield Problem(
            what=f"copier, which fills in the template, is not installed in {sys.executable}.",
            fix=install_line("rlnb[plugins]"),
        )
