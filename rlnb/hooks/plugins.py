"""The look-ups by name of what plugins register, which all other modules use."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.resources
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from rlnb.contracts.libraries import Library, Role, Space, Spaces
from rlnb.contracts.plugin_types import AssetPack, LauncherType
from rlnb.errors import CheckError, Problem, RlnbError, did_you_mean, unknown
from rlnb.hooks.plugin import INTERRUPTS, HookError, Plugin, cause_of, reason_of
from rlnb.hooks.registry import OWN_LAUNCHERS, registered
from rlnb.spec import METRICS, Json, Manifest, Task
from rlnb.storage.serial import wrong_fields
from rlnb.storage.yaml_file import read_agent

if TYPE_CHECKING:
    from rlnb.contracts.launchers import Launcher

N = TypeVar("N", Library, LauncherType, Task, AssetPack)

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


def metrics() -> dict[str, str]:
    """Return the metric names of rlnb and of the installed libraries, each with its meaning.

    A name to which two libraries give different meanings has both.
    """
    meanings_of: dict[str, dict[str, str]] = {}
    for library in libraries().values():
        for name, meaning in library.metric_names.items():
            meanings_of.setdefault(name, {}).setdefault(meaning, library.name)
    meanings = {
        name: next(iter(of_name))
        if len(of_name) == 1
        else "; ".join(f"{library}: {meaning}" for meaning, library in of_name.items())
        for name, of_name in meanings_of.items()
    }
    return {**METRICS, **meanings}


def launchers() -> dict[str, LauncherType]:
    """Return the installed launchers by name."""
    found = _by_name("rlnb_launchers", LauncherType)
    return {**{name: found[name] for name in OWN_LAUNCHERS if name in found}, **found}


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


def owner_of(library: Library) -> Plugin:
    """Return the plugin that registers a library of this name, or one of the library's name if there is none."""
    pairs = registered("rlnb_libraries")
    owners = (plugin for plugin, items in pairs if any(item.name == library.name for item in items))
    return next(owners, Plugin(name=library.name))


def new_backend(library: Library) -> Any:
    """Return a new backend of a library.

    Raises:
        HookError: The plugin's class cannot be loaded, or fails when it is called. The error names the plugin.
    """
    backend = _loaded(library.backend, functools.partial(_backend_error, library))
    try:
        return backend()
    except (RlnbError, *INTERRUPTS):
        raise
    except BaseException as exc:  # a plugin may raise anything
        raise _backend_error(library, cause_of(exc)) from exc


def roles_of(library: Library, world_size: int, agent: Mapping[str, Json]) -> tuple[Role, ...]:
    """Return the role of each rank of a training; empty if all ranks of the library do the same.

    Args:
        library: The library.
        world_size: Number of ranks over all nodes.
        agent: Agent config values of the user, as in :attr:`rlnb.plugin.Manifest.agent`.

    Raises:
        HookError: The plugin's function fails, or does not return a role for each rank.
        RlnbError: The plugin refuses this number of ranks.
    """
    if not library.roles:
        return ()
    values = {path.removeprefix("+"): value for path, value in agent.items()}
    error = functools.partial(_function_error, library, "roles", library.roles)
    function = _loaded(library.roles, error)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            roles = tuple(function(world_size, values))
    except (RlnbError, *INTERRUPTS):
        raise
    except BaseException as exc:  # a plugin may raise anything
        raise error(cause_of(exc)) from exc
    if fault := _fault_of(roles, world_size):
        raise error(fault)
    return roles


def size_problems(
    library: Library, values: Mapping[str, Json], usual: Mapping[str, Json], num_envs: int
) -> list[Problem]:
    """Return the problems of the sizes in an agent config, with which a library would fail late, or learn nothing.

    Args:
        library: The library.
        values: The agent config by dotted path.
        usual: The same without the values that the user has set.
        num_envs: Number of envs of a rank.

    Raises:
        HookError: The plugin's function fails, or does not return problems.
    """
    fixes = {
        path: size or _positive(usual.get(path))
        for path, size in library.positive.items()
        if isinstance(value := values.get(path), int) and value < 1
    }
    problems = [
        Problem(what=f"{path}={values[path]} is not a positive number.", fix=f"Use {path}={size}.")
        for path, size in fixes.items()
    ]
    if not library.sizes:
        return problems
    fixed = {**values, **fixes}  # the plugin finds what is left after these fixes
    return [*problems, *_problems(library, "sizes", library.sizes, fixed, usual, num_envs)]


def space_problems(
    library: Library, values: Mapping[str, Json], observations: Spaces, actions: Space | None
) -> list[Problem]:
    """Return the problems of a task's spaces, which the networks of an agent config cannot take or give.

    Args:
        library: The library.
        values: The agent config by dotted path.
        observations: Spaces of the observation groups, as far as they are known.
        actions: Space of the actions; None if it is not known, for several agents.

    Raises:
        HookError: The plugin's function fails, or does not return problems.
    """
    if not library.spaces or actions is None:
        return []
    return _problems(library, "spaces", library.spaces, values, observations, actions)


def fitted_agent(library: Library, spaces: tuple[Spaces, Space | None], config: Any) -> Any:
    """Return the generic agent config of a library, fitted to the spaces of a task.

    Args:
        library: The library.
        spaces: Spaces of the observation groups and of the actions.
        config: The config of :attr:`rlnb.plugin.Library.default_agent`.
    """
    return load(library.fitted_agent)(config, *spaces)


def _problems(library: Library, kind: str, reference: str, *arguments: object) -> list[Problem]:
    """Return the problems that a plugin's function finds.

    Args:
        library: The library.
        kind: What the function is about, for errors.
        reference: The function, as ``"module:function"``.
        arguments: Arguments of the function.
    """
    error = functools.partial(_function_error, library, kind, reference)
    function = _loaded(reference, error)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            problems = list(function(*arguments))
    except INTERRUPTS:
        raise
    except BaseException as exc:  # a plugin may raise anything
        raise error(cause_of(exc)) from exc
    if strange := [one for one in problems if not isinstance(one, Problem)]:
        raise error(f"returned a list with {strange[0]!r}, which is not an rlnb.plugin.Problem")
    return problems


def _positive(size: object) -> int:
    return size if isinstance(size, int) and size > 0 else 1


def gpu_ranks(manifest: Manifest) -> int:
    """Return the number of ranks on each node of a training that use a GPU, if its device is a GPU."""
    each = manifest.resources.nproc_per_node
    item = libraries().get(manifest.library)
    roles = roles_of(item, manifest.resources.world_size, manifest.agent) if item else ()
    if not roles:
        return each
    nodes = [roles[first : first + each] for first in range(0, len(roles), each)]
    return max(sum(not role.cpu for role in node) for node in nodes)


def _fault_of(roles: Sequence[object], world_size: int) -> str:
    """Return what is wrong with the roles of a plugin; an empty string if nothing is."""
    strange = [role for role in roles if not isinstance(role, Role)]
    if strange:
        return f"returned a list with {strange[0]!r}, which is not an rlnb.plugin.Role"
    if len(roles) != world_size:
        return f"returned {len(roles)} roles for {world_size} ranks"
    by_name: dict[str, Role] = {}
    for role in roles:
        assert isinstance(role, Role)
        if faults := wrong_fields(role):
            return f"returned a Role in which {' and '.join(faults)}"
        if not re.fullmatch(r"[\w-]+", role.name):
            return f"returned a Role whose name {role.name!r} has other characters than letters, digits, _ and -"
        if by_name.setdefault(role.name, role) != role:
            return f"returned two different roles of the name {role.name!r}"
    return ""


def _loaded(reference: str, error: Callable[[str], HookError]) -> Any:
    """Return what a plugin's ``"module:attr"`` string names.

    Args:
        reference: The string.
        error: Returns the error for a fault, which names the plugin.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return load(reference)
    except INTERRUPTS:
        raise
    except BaseException as exc:  # a plugin may raise anything
        raise error(str(exc) if isinstance(exc, RlnbError) else cause_of(exc)) from exc


def _backend_error(library: Library, fault: str) -> HookError:
    plugin = owner_of(library)
    what = f"The library {library.name!r} of the {plugin} has no backend: {fault}"
    return HookError(what, fault=fault, fix=plugin.usual_fix)


def _function_error(library: Library, kind: str, reference: str, fault: str) -> HookError:
    plugin = owner_of(library)
    what = f"The {kind} function {reference!r} of the {plugin} {fault}"
    return HookError(what, fault=fault, fix=plugin.usual_fix)


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
    except (RlnbError, *INTERRUPTS):
        raise
    except BaseException as exc:  # a plugin may raise anything for a value of a wrong type
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
        raise RlnbError(f"{reference!r} cannot be loaded by {sys.executable}: {exc}{reason_of(exc)}") from exc
    return value


def agent_config(reference: str) -> Any:
    """Return the agent config that a plugin has for tasks without one, as in :attr:`rlnb.plugin.Library.default_agent`.

    Args:
        reference: ``"module:function"`` or ``"package:file.yaml"``.

    Raises:
        RlnbError: There is no such function or file, or the file is not a mapping.
    """
    module, _, name = reference.partition(":")
    if not name.endswith(".yaml"):
        return load(reference)()
    try:
        folder = importlib.resources.files(module)
    except (ImportError, TypeError) as exc:  # TypeError: the module is not a package (Python 3.11)
        raise RlnbError(f"{reference!r}: there is no package {module!r}. {exc}") from exc
    with importlib.resources.as_file(folder / name) as path:
        return read_agent(path)
