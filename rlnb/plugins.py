"""The look-ups by name of what plugins register, which all other modules use."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from rlnb.errors import CheckError, Problem, RlnbError, did_you_mean, unknown
from rlnb.hooks.plugin import Plugin
from rlnb.hooks.registry import registered
from rlnb.registration.library import Library
from rlnb.registration.plugin_types import AssetPack, LauncherType
from rlnb.spec import Json, Manifest, Task

if TYPE_CHECKING:
    from rlnb.contracts import Launcher

N = TypeVar("N", Library, LauncherType, Task, AssetPack)

LOCAL = LauncherType(name="local", factory="rlnb.launch.local:LocalLauncher")
INJECTED = LauncherType(name="injected", factory="rlnb.launch.injected:InjectedLauncher")
OWN = {LOCAL.name: LOCAL, INJECTED.name: INJECTED}
"""The launchers of rlnb itself, by name."""

SCRIPT = Library(name="script", backend="", checkpoint_glob="**/*.pt*", simulator=False)
"""The library of a run that starts a plain training script."""


def _by_name(hook: str, cls: type[N]) -> dict[str, N]:
    """Return the objects that all plugins register with a hook, by name, sorted."""
    items: dict[str, N] = {}
    for _, of_plugin in registered(hook):
        for item in of_plugin:
            assert isinstance(item, cls), "the registry has checked the types"
            items[item.id if isinstance(item, Task) else item.name] = item
    return dict(sorted(items.items()))


def libraries() -> dict[str, Library]:
    """Return the installed RL libraries by name."""
    return _by_name("rlnb_libraries", Library)


def launchers() -> dict[str, LauncherType]:
    """Return the installed launchers by name."""
    return {**OWN, **_by_name("rlnb_launchers", LauncherType)}


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


def plugin_of(library: str) -> Plugin | None:
    """Return the plugin of a library; None for one that rlnb has itself, or that is not installed."""
    pairs = registered("rlnb_libraries")
    return next((plugin for plugin, items in pairs if any(item.name == library for item in items)), None)


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
