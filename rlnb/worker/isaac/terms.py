"""Hot terms: rewards, terminations, events and commands that are changed in a living manager-based env.

Managers are rebuilt from their config, which checks every name as a new env would. (A manager's own ``set_term_cfg``
accepts joints that do not exist.)
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

HOT = ("commands", "events", "terminations", "rewards")
"""Sections of a config that can be swapped without a new env, in the order in which managers look each other up."""
_AT_START = ("startup", "prestartup")
"""Modes of events that act only while the env is made."""
OWN = "rlnb_task_"
"""Prefix of the names of task cells' modules; see :func:`rlnb.worker.isaac.modules.import_file`."""


def fingerprints(env_cfg: Any) -> dict[str, str]:
    """Return a hash of each hot section of a config, and under ``""`` a hash of everything else.

    Two configs with the same hashes make the same env. A hash covers all values. For a function from a task's own
    module it covers the function's source, and the source of everything in the module that the function uses.
    """
    rest: list[str] = []
    hashes = {}
    for name, value in sorted(vars(env_cfg).items()):
        lines = list(_lines(name, value))
        if name == "events" and value:
            for term, cfg in vars(value).items():
                # A class captures the env when it is built. A second one would capture an env already randomised.
                if getattr(cfg, "mode", None) in _AT_START or inspect.isclass(getattr(cfg, "func", None)):
                    rest += _lines(f"events.{term}", cfg)
        if name == "curriculum" and value and any(vars(value).values()):
            rest += [line for section in HOT for line in _lines(section, getattr(env_cfg, section, None))]
        if name == "commands":  # the size of observations may depend on them
            rest += [f"{term} {type(cfg).__qualname__}" for term, cfg in vars(value).items()] if value else []
        if name in HOT:
            hashes[name] = _hash(lines)
        else:
            rest += lines
    return {**hashes, "": _hash(rest)}


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the sections to swap so that one env becomes the other; None if that needs a new env."""
    if before[""] != after[""] or before.keys() != after.keys():
        return None
    names = {name for name in HOT if name in after and before[name] != after[name]}
    if "terminations" in names and "rewards" in after:
        names.add("rewards")  # rewards may refer to terminations
    return tuple(name for name in HOT if name in names)


def swap(env: Any, env_cfg: Any, sections: tuple[str, ...]) -> None:
    """Rebuild the managers of some sections from a changed config: all of them, or none if one raises an error.

    Args:
        env: The living manager-based env.
        env_cfg: The changed config, resolved.
        sections: Sections to swap, from :data:`HOT`.

    Raises:
        ValueError: Isaac Lab refuses a term, for example one that names a joint, body or entity that does not exist.
    """
    before = {name: getattr(env, name) for name, _ in (_managers()[section] for section in sections)}
    try:
        for section in sections:
            name, manager = _managers()[section]
            setattr(env, name, manager(getattr(env_cfg, section), env))  # the next manager may look up its terms
    except BaseException:
        for name, manager in before.items():
            setattr(env, name, manager)
        raise
    for section in sections:
        setattr(env.cfg, section, getattr(env_cfg, section))


def _managers() -> dict[str, tuple[str, Callable[[Any, Any], Any]]]:
    from isaaclab.managers import CommandManager, EventManager, RewardManager, TerminationManager

    return {
        "rewards": ("reward_manager", RewardManager),
        "terminations": ("termination_manager", TerminationManager),
        "commands": ("command_manager", CommandManager),
        "events": ("event_manager", EventManager),
    }


def _hash(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _lines(path: str, value: Any) -> Iterator[str]:
    """Yield a line for each value of a config."""
    if isinstance(value, Mapping):
        for name in sorted(value, key=str):
            yield from _lines(f"{path}.{name}", value[name])
    elif isinstance(value, list | tuple):
        yield f"{path} {len(value)}"
        for index, item in enumerate(value):
            yield from _lines(f"{path}.{index}", item)
    elif hasattr(value, "__dataclass_fields__") and not inspect.isclass(value):
        yield f"{path} {type(value).__qualname__}"
        for name in sorted(vars(value)):
            yield from _lines(f"{path}.{name}", vars(value)[name])
    else:
        yield f"{path} {_text(value)}"


def _text(value: Any) -> str:
    if inspect.isclass(value) or callable(value):
        return code(value)
    return repr(value)


def code(value: Any, visits: set[int] | None = None) -> str:
    """Return a text that identifies a function or class: its name, plus for one from a task's own module its source.

    The text also covers everything in the module that the source uses. An object without readable source (a Warp
    kernel, a TorchScript function) is identified by its whole module.
    """
    visits = set() if visits is None else visits
    if isinstance(value, functools.partial):
        parts = [value.func, *value.args, *(part for pair in sorted(value.keywords.items()) for part in pair)]
        return "\n".join(["partial", *(_used(part, visits) for part in parts)])
    module = getattr(value, "__module__", "") or ""
    name = f"{'' if module.startswith(OWN) else module}:{getattr(value, '__qualname__', type(value).__name__)}"
    if not module.startswith(OWN) or id(value) in visits:
        return name
    visits.add(id(value))
    try:
        source = inspect.getsource(value)
    except (TypeError, OSError):
        return f"{name} {module}"  # the module's name contains a hash of its text
    used = [_used(other, visits) for other in _behind(value)]
    return "\n".join([name, source, *used])


def _used(value: Any, visits: set[int]) -> str:
    if isinstance(value, types.ModuleType):
        return value.__name__
    return code(value, visits) if callable(value) else repr(value)


def _behind(value: Any) -> Iterator[Any]:
    """Yield the objects outside their own source that a function, or a class and its methods, use.

    These are globals of the module, defaults and closure values, base classes, and functions that a decorator wraps.
    """
    yield from getattr(value, "__bases__", ())
    functions = [value] if isinstance(value, types.FunctionType) else _methods(value)
    for function in functions:
        for name in sorted(_names(function.__code__)):
            if name in function.__globals__:
                yield function.__globals__[name]
        yield from function.__defaults__ or ()
        yield from (function.__kwdefaults__ or {}).values()
        yield from (cell.cell_contents for cell in function.__closure__ or () if cell.cell_contents is not value)
        if hasattr(function, "__wrapped__"):
            yield function.__wrapped__


def _methods(cls: Any) -> list[types.FunctionType]:
    members = vars(cls).values() if inspect.isclass(cls) else ()
    return [member for member in members if isinstance(member, types.FunctionType)]


def _names(block: types.CodeType) -> set[str]:
    inner = [_names(constant) for constant in block.co_consts if isinstance(constant, types.CodeType)]
    return set(block.co_names).union(*inner)
