"""The one plugin manager, and the look-ups by name that everything else uses."""

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
from rlnb.spec import AssetPack, LauncherType, Library, Manifest, Task

if TYPE_CHECKING:
    from rlnb.contracts import Launcher

logger = logging.getLogger(__name__)
N = TypeVar("N", Library, LauncherType, Task, AssetPack)

LOCAL = LauncherType(name="local", factory="rlnb.launch.local:LocalLauncher")
INJECTED = LauncherType(name="injected", factory="rlnb.launch.injected:InjectedLauncher")
OWN = {LOCAL.name: LOCAL, INJECTED.name: INJECTED}
"""The launchers that rlnb itself brings."""
SCRIPT = Library(name="script", backend="", checkpoint_glob="**/*.pt*", simulator=False)


@functools.cache
def manager() -> pluggy.PluginManager:
    """Return the plugin manager with every installed plugin loaded.

    A plugin that fails to import warns with its traceback and is left out; so is the second of one name.
    """
    pm = pluggy.PluginManager("rlnb")
    pm.add_hookspecs(hookspecs)
    first: dict[str, str] = {}
    for entry in sorted(metadata.entry_points(group="rlnb")):
        taken = first.setdefault(entry.name, entry.value)
        if taken != entry.value:
            said = f"Two packages bring an rlnb plugin named {entry.name!r}: {taken} and {entry.value}."
            warnings.warn(f"{said} The second is left out; uninstall one.", stacklevel=2)
        if taken != entry.value or pm.has_plugin(entry.name):
            continue
        try:
            with contextlib.redirect_stdout(sys.stderr):  # what a plugin prints is no part of a command's answer
                plugin = entry.load()
            pm.register(plugin, name=entry.name)
        except Exception:  # whatever a broken plugin raises must not break the others
            warnings.warn(f"The rlnb plugin {entry.name!r} did not load:\n{traceback.format_exc()}", stacklevel=2)
    return pm


def register(plugin: Any, name: str | None = None) -> None:
    """Register a module or object with hook implementations by hand, e.g. from a notebook."""
    manager().register(plugin, name=name)


def _named(hook: str, kind: str) -> dict[str, Any]:
    found: dict[str, tuple[str, Any]] = {}
    pm = manager()
    for impl in getattr(pm.hook, hook).get_hookimpls():
        for item in impl.function():
            name = item.id if isinstance(item, Task) else item.name
            if name in found and found[name][0] != impl.plugin_name:
                both = f"{found[name][0]} and {impl.plugin_name}"
                raise RlnbError(f"Two plugins bring a {kind} named {name!r}: {both}. Uninstall one.")
            found[name] = (impl.plugin_name, item)
    return {name: item for name, (_, item) in sorted(found.items())}


def libraries() -> dict[str, Library]:
    """Return the installed RL libraries by name."""
    return _named("rlnb_libraries", "library")


def launchers() -> dict[str, LauncherType]:
    """Return the installed launchers by name."""
    found = _named("rlnb_launchers", "launcher")
    for name in OWN:
        if name in found:
            raise RlnbError(f"A plugin brings a launcher named {name!r}, which is rlnb's own. Uninstall it.")
    return {**OWN, **found}


def tasks() -> dict[str, Task]:
    """Return what plugins say of tasks, by id."""
    return _named("rlnb_tasks", "task")


def asset_packs() -> dict[str, AssetPack]:
    """Return the asset packs that can be built here, by name."""
    return _named("rlnb_asset_packs", "asset pack")


def library(name: str) -> Library:
    """Return the library of that name.

    Raises:
        NotFoundError: No plugin brings it.
    """
    if name == SCRIPT.name:
        return SCRIPT
    return _get("RL library", name, libraries())


def launcher(name: str) -> LauncherType:
    """Return the launcher of that name.

    Raises:
        NotFoundError: No plugin brings it.
    """
    return _get("launcher", name, launchers())


def make_launcher(name: str, settings: Mapping[str, Any]) -> Launcher:
    """Return the installed launcher of that name with these settings, as ``rlnb.<name>(**settings)`` does.

    Raises:
        CheckError: There is no such launcher, or it does not take these settings; each of them is a problem.
        RlnbError: The launcher itself refuses a value.
    """
    if name not in (installed := launchers()):
        raise CheckError("launcher", [_not_one_of("a launcher", name, installed)])
    factory = load(installed[name].factory)
    parameters = inspect.signature(factory).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    if strange := [key for key in settings if key not in parameters and not takes_any]:
        raise CheckError(name, [_not_one_of(f"a setting of {name}", key, parameters) for key in strange])
    try:
        made: Launcher = factory(**settings)
    except RlnbError:
        raise
    except Exception as exc:  # whatever a plugin's own code does with a value of another type
        given = ", ".join(f"{key}={value!r}" for key, value in settings.items())
        what = f"{name}({given}) could not be made: {type(exc).__name__}: {exc}."
        fix = f"Use the settings of help(rlnb.{name})."
        raise CheckError(name, [Problem(what=what, fix=fix)]) from exc
    return made


def _not_one_of(kind: str, name: str, known: Iterable[str]) -> Problem:
    names = sorted(known)
    fix = f"Use one of {', '.join(names)}." if names else "Leave it out."
    return Problem(what=f"{name!r} is not {kind}.{did_you_mean(name, names)}", fix=fix)


def launcher_of(manifest: Manifest) -> Any:
    """Return a launcher like the one that a run was started with."""
    return load(launcher(manifest.launcher).factory)(**manifest.launcher_settings)


def _get(kind: str, name: str, known: dict[str, N]) -> N:
    if name not in known:
        raise unknown(kind, name, known)
    return known[name]


def load(reference: str) -> Any:
    """Import ``"module:attr"`` and return it.

    Raises:
        RlnbError: The module or the attribute does not exist; names the missing package.
    """
    module_name, _, attribute = reference.partition(":")
    try:
        value: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError) as exc:
        raise RlnbError(f"{reference!r} cannot be loaded by {sys.executable}: {exc}") from exc
    return value
