"""The plugin manager, and the look-ups by name that all other modules use."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import logging
import sys
import traceback
import warnings
from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any, TypeVar

import pluggy

from rlnb import hookspecs
from rlnb.errors import CheckError, Problem, RlnbError, did_you_mean, unknown
from rlnb.spec import AssetPack, Json, LauncherType, Library, Manifest, Task

if TYPE_CHECKING:
    from rlnb.contracts import Launcher

logger = logging.getLogger(__name__)
N = TypeVar("N", Library, LauncherType, Task, AssetPack)

LOCAL = LauncherType(name="local", factory="rlnb.launch.local:LocalLauncher")
INJECTED = LauncherType(name="injected", factory="rlnb.launch.injected:InjectedLauncher")
OWN = {LOCAL.name: LOCAL, INJECTED.name: INJECTED}
"""The launchers of rlnb itself, by name."""
_KINDS: Mapping[type, str] = {
    Library: "a library",
    LauncherType: "a launcher",
    Task: "a task",
    AssetPack: "an asset pack",
}

SCRIPT = Library(name="script", backend="", checkpoint_glob="**/*.pt*", simulator=False)
"""The library of a run that starts a plain training script."""


@functools.cache
def manager() -> pluggy.PluginManager:
    """Return the plugin manager with every installed plugin loaded.

    A plugin that fails to import is left out, with a warning that shows its traceback. The second of two plugins with
    the same name is left out too.
    """
    pm = pluggy.PluginManager("rlnb")
    pm.add_hookspecs(hookspecs)
    modules: dict[str, str] = {}
    for entry in sorted(metadata.entry_points(group="rlnb")):
        value = modules.setdefault(entry.name, entry.value)
        if value != entry.value:
            text = f"Two packages provide an rlnb plugin named {entry.name!r}: {value} and {entry.value}."
            warnings.warn(f"{text} The second is left out; uninstall one.", stacklevel=2)
        if value != entry.value or pm.has_plugin(entry.name):
            continue
        try:
            with contextlib.redirect_stdout(sys.stderr):  # stdout carries the output of a command
                plugin = entry.load()
            pm.register(plugin, name=entry.name)
        except Exception:  # a broken plugin must not break the others
            warnings.warn(f"The rlnb plugin {entry.name!r} did not load:\n{traceback.format_exc()}", stacklevel=2)
    return pm


def register(plugin: object, name: str | None = None) -> None:
    """Register a plugin by hand, e.g. from a notebook. It applies to this process only.

    Args:
        plugin: Module or object whose functions are marked with ``rlnb.hookimpl``.
        name: Name of the plugin; None takes the plugin's own name.
    """
    manager().register(plugin, name=name)


def _by_name(hook: str, cls: type[N]) -> dict[str, N]:
    """Return the results of a registration hook from all plugins, by name, sorted."""
    items: dict[str, N] = {}
    owners: dict[str, str] = {}
    pm = manager()
    for impl in getattr(pm.hook, hook).get_hookimpls():
        for item in impl.function():
            name = item.id if isinstance(item, Task) else item.name
            owner = owners.setdefault(name, impl.plugin_name)
            if owner != impl.plugin_name:
                both = f"{owner} and {impl.plugin_name}"
                raise RlnbError(f"Two plugins provide {_KINDS[cls]} named {name!r}: {both}. Uninstall one.")
            items[name] = item
    return dict(sorted(items.items()))


def libraries() -> dict[str, Library]:
    """Return the installed RL libraries by name."""
    return _by_name("rlnb_libraries", Library)


def launchers() -> dict[str, LauncherType]:
    """Return the installed launchers by name."""
    others = _by_name("rlnb_launchers", LauncherType)
    for name in OWN:
        if name in others:
            raise RlnbError(f"A plugin provides a launcher named {name!r}, which is rlnb's own. Uninstall it.")
    return {**OWN, **others}


def tasks() -> dict[str, Task]:
    """Return the tasks that plugins register, by id: their own, and tasks of Isaac Lab with a success function."""
    return _by_name("rlnb_tasks", Task)


def asset_packs() -> dict[str, AssetPack]:
    """Return the asset packs that can be built on this machine, by name."""
    return _by_name("rlnb_asset_packs", AssetPack)


def library(name: str) -> Library:
    """Return the library of that name.

    Raises:
        NotFoundError: No installed plugin has a library of that name.
    """
    if name == SCRIPT.name:
        return SCRIPT
    return _get("RL library", name, libraries())


def launcher(name: str) -> LauncherType:
    """Return the launcher type of that name.

    Raises:
        NotFoundError: Neither rlnb nor an installed plugin has a launcher of that name.
    """
    return _get("launcher", name, launchers())


def make_launcher(name: str, settings: Mapping[str, Json]) -> Launcher:
    """Return a launcher by its name, like ``rlnb.<name>(**settings)``.

    Args:
        name: Name of an installed launcher.
        settings: Arguments of the launcher, as JSON values.

    Raises:
        CheckError: The launcher does not exist, or does not have a setting; each such setting is a problem.
        RlnbError: The launcher refuses a value.
    """
    if name not in (types := launchers()):
        raise CheckError("launcher", [_not_one_of("a launcher", name, types)])
    factory = load(types[name].factory)
    parameters = inspect.signature(factory).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    if strange := [key for key in settings if key not in parameters and not takes_any]:
        raise CheckError(name, [_not_one_of(f"a setting of {name}", key, parameters) for key in strange])
    try:
        instance: Launcher = factory(**settings)
    except RlnbError:
        raise
    except Exception as exc:  # a plugin may raise anything for a value of a wrong type
        arguments = ", ".join(f"{key}={value!r}" for key, value in settings.items())
        what = f"{name}({arguments}) could not be made: {type(exc).__name__}: {exc}."
        fix = f"Use the settings of help(rlnb.{name})."
        raise CheckError(name, [Problem(what=what, fix=fix)]) from exc
    return instance


def _not_one_of(kind: str, name: str, choices: Iterable[str]) -> Problem:
    names = sorted(choices)
    fix = f"Use one of {', '.join(names)}." if names else "Leave it out."
    return Problem(what=f"{name!r} is not {kind}.{did_you_mean(name, names)}", fix=fix)


def launcher_of(manifest: Manifest) -> Launcher:
    """Return a launcher equal to the one that started a run."""
    instance: Launcher = load(launcher(manifest.launcher).factory)(**manifest.launcher_settings)
    return instance


def _get(kind: str, name: str, items: Mapping[str, N]) -> N:
    if name not in items:
        raise unknown(kind, name, items)
    return items[name]


def load(reference: str) -> Any:
    """Return the object that a ``"module:attr"`` string names, importing its module.

    Raises:
        RlnbError: The module or the attribute does not exist. The message names the missing package.
    """
    module_name, _, attribute = reference.partition(":")
    try:
        value: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError) as exc:
        raise RlnbError(f"{reference!r} cannot be loaded by {sys.executable}: {exc}") from exc
    return value
