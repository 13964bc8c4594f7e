"""Hot terms: changed rewards, terminations, events and commands of a living manager-based env, without a new env.

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
"""Sections of a config that can be swapped, in the order in which managers look each other up."""
_AT_START = ("startup", "prestartup")
"""Events of these modes have had their effect when the env is there."""
OWN = "rlnb_task_"
"""Prefix of the modules of tasks' cells; see :func:`rlnb.worker.isaac.module.import_file`."""


def fingerprints(env_cfg: Any) -> dict[str, str]:
    """Return a hash of each hot section of a config, and under ``""`` of all the rest.

    Two configs with the same hash make the same env: values are compared, and of functions from a task's own module
    the source, with that of everything of the module that they use.
    """
    rest: list[str] = []
    hashes = {}
    for name, value in sorted(vars(env_cfg).items()):
        lines = list(_lines(name, value))
        if name == "events" and value:
            for term, cfg in vars(value).items():
                # A class captures the env when it is built; a second one would capture an env that is randomised.
                if getattr(cfg, "mode", None) in _AT_START or inspect.isclass(getattr(cfg, "func", None)):
                    rest += _lines(f"events.{term}", cfg)
        if name == "curriculum" and value and any(vars(value).values()):
            rest += [line for section in HOT for line in _lines(section, getattr(env_cfg, section, None))]
        if name == "commands":  # observations may have the size of what these return
            rest += [f"{term} {type(cfg).__qualname__}" for term, cfg in vars(value).items()] if value else []
        if name in HOT:
            hashes[name] = _hash(lines)
        else:
            rest += lines
    return {**hashes, "": _hash(rest)}


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the sections to swap so that one env becomes the other; None where it takes a new env."""
    if before[""] != after[""] or before.keys() != after.keys():
        return None
    names = {name for name in HOT if name in after and before[name] != after[name]}
    if "terminations" in names and "rewards" in after:
        names.add("rewards")  # which may name terminations
    return tuple(name for name in HOT if name in names)


def swap(env: Any, env_cfg: Any, sections: tuple[str, ...]) -> None:
    """Rebuild the managers of some sections from a changed config. All of them, or none where one refuses.

    Args:
        env: A manager-based env, as it lives.
        env_cfg: The changed config, resolved.
        sections: Which of :data:`HOT`.

    Raises:
        ValueError: A term names a joint, body or entity that does not exist, and the like; from Isaac Lab.
    """
    before = {name: getattr(env, name) for name, _ in (_managers()[section] for section in sections)}
    try:
        for section in sections:
            name, manager = _managers()[section]
            setattr(env, name, manager(getattr(env_cfg, section), env))  # the next one may ask it for its terms
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
    """Return what a function or class is: its name, and if it is of a task's own module its source and all it uses.

    An object without readable source (a Warp kernel, a TorchScript function) counts as all of its module.
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
        return f"{name} {module}"  # the module's name has the hash of its text
    used = [_used(other, visits) for other in _behind(value)]
    return "\n".join([name, source, *used])


def _used(value: Any, visits: set[int]) -> str:
    if isinstance(value, types.ModuleType):
        return value.__name__
    return code(value, visits) if callable(value) else repr(value)


def _behind(value: Any) -> Iterator[Any]:
    """Yield what a function, or a class and its methods, use beside their own text: names of the module, values that
    were bound when they were made, base classes, what a decorator wraps."""
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
