"""Calls one hook of one plugin: catches what it raises, and checks what it returns.

No other code calls the hooks of a plugin, so an error in one always has the plugin's name.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath
from typing import Any, NoReturn

from pluggy import HookImpl

from rlnb.contracts.libraries import STEM, Input, Library
from rlnb.contracts.plugin_types import AssetPack, LauncherType, Panel, QueueTable
from rlnb.errors import Problem
from rlnb.hooks.plugin import INTERRUPTS, HookError, Plugin, cause_of
from rlnb.machine.packages import is_requirement
from rlnb.spec import METRICS, Command, Manifest, Result, Task
from rlnb.storage.serial import wrong_fields

LISTS: Mapping[str, tuple[type, str]] = types.MappingProxyType(
    {
        "rlnb_libraries": (Library, "rlnb.plugin.Library"),
        "rlnb_launchers": (LauncherType, "rlnb.launchers.LauncherType"),
        "rlnb_tasks": (Task, "rlnb.Task"),
        "rlnb_asset_packs": (AssetPack, "rlnb.plugin.AssetPack"),
        "rlnb_check": (Problem, "rlnb.plugin.Problem"),
        "rlnb_panels": (Panel, "rlnb.plugin.Panel"),
    }
)
"""Hooks that return a list, with the type of its items, and that type's public name."""
READ_ONLY = (Manifest, Command, Result)
"""Types of arguments that no hook may change, although the mappings in them can be changed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a hook of a plugin returned."""

    plugin: Plugin
    """The plugin."""
    value: Any = None
    """The checked value, a tuple for a hook that returns a list; None if the hook failed."""
    error: HookError | None = None
    """Why the hook failed; None if it did not."""

    @property
    def problem(self) -> Problem:
        """The error as a problem of a request."""
        assert self.error is not None, "only a hook that failed is a problem"
        return Problem(what=f"{self.error.what}.", fix=self.error.fix)


class _WrongAnswer(Exception):
    """Raised for a value that a hook must not return."""


def answers(hook: str, implementations: Iterable[tuple[Plugin, HookImpl]], /, **arguments: Any) -> Iterator[Answer]:
    """Call a hook of plugins one after the other, each when its answer is taken.

    Args:
        hook: Name of the hook.
        implementations: Plugins and their functions.
        arguments: Arguments of the hook by name.
    """
    for plugin, implementation in implementations:
        yield answer_of(hook, implementation, plugin, **arguments)


def answer_of(hook: str, implementation: HookImpl, plugin: Plugin, /, **arguments: Any) -> Answer:
    """Call a plugin's implementation of a hook, and return its answer or its error.

    Args:
        hook: Name of the hook.
        implementation: The plugin's function, as pluggy keeps it.
        plugin: The plugin.
        arguments: Arguments of the hook by name. The function gets those that it takes.
    """
    try:
        before = _records(arguments)
        value = implementation.function(*[arguments[name] for name in implementation.argnames])
        if changed := [name for name, text in _records(arguments).items() if text != before.get(name)]:
            raise _WrongAnswer(f"changed {', '.join(changed)}, which it may only read")
        return Answer(plugin=plugin, value=_checked(hook, value, arguments.get("frames")))
    except INTERRUPTS:
        raise
    except _WrongAnswer as exc:
        return Answer(plugin=plugin, error=_error(hook, plugin, str(exc)))
    except BaseException as exc:  # a plugin may raise anything
        error = _error(hook, plugin, cause_of(exc))
        error.__cause__ = exc
        return Answer(plugin=plugin, error=error)


def _records(arguments: Mapping[str, object]) -> dict[str, str]:
    """Return the text of each field of the arguments that are records, such as ``manifest.seed``."""
    records = {name: value for name, value in arguments.items() if isinstance(value, READ_ONLY)}
    return {
        f"{name}.{field.name}": repr(getattr(record, field.name))
        for name, record in records.items()
        for field in dataclasses.fields(record)
    }


def _error(hook: str, plugin: Plugin, what: str) -> HookError:
    return HookError(f"{hook}() of the {plugin} {what}", fault=f"{hook}() {what}", fix=plugin.usual_fix)


def _checked(hook: str, value: object, frames: Any) -> object:
    """Return the value of a hook, a list as a tuple.

    Args:
        hook: Name of the hook.
        value: Its value.
        frames: The frames that ``rlnb_colorize`` was given.

    Raises:
        _WrongAnswer: The value has the wrong type.
    """
    if hook in LISTS:
        return _items(value, *LISTS[hook], optional=hook == "rlnb_panels")
    if value is None:
        return None
    if hook == "rlnb_wrap_command":
        return _command(value)
    if hook == "rlnb_colorize":
        return _pictures(value, frames)
    _refuse(value, "None, since its result is not used")


def _refuse(value: object, expected: str) -> NoReturn:
    raise _WrongAnswer(f"returned {'None' if value is None else type(value).__name__}, which is not {expected}")


def _items(value: object, kind: type, name: str, *, optional: bool) -> tuple[object, ...]:
    expected = f"a list of {name}"
    if value is None and optional:
        return ()
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes, Mapping)):
        _refuse(value, expected)
    items = tuple(value)
    for item in items:
        if not isinstance(item, kind):
            raise _WrongAnswer(f"returned a list with {_article(type(item).__name__)}, which is not {expected}")
        if faults := [*wrong_fields(item), *_FAULTS.get(kind, lambda _: [])(item)]:
            raise _WrongAnswer(f"returned a {kind.__name__} in which {' and '.join(faults)}")
    return items


def _article(noun: str) -> str:
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


def _command(value: object) -> object:
    if not isinstance(value, Command):
        _refuse(value, "an rlnb.plugin.Command or None")
    faults = wrong_fields(value) or ([] if value.argv else ["argv=() names no program"])
    if faults:
        raise _WrongAnswer(f"returned a Command in which {' and '.join(faults)}")
    return value


def _pictures(value: Any, frames: Any) -> object:
    expected = (*frames.shape[:3], 3)
    if getattr(value, "shape", None) != expected or str(getattr(value, "dtype", "")) != "uint8":
        kind = f"{value.dtype} of shape {value.shape}" if hasattr(value, "dtype") else type(value).__name__
        raise _WrongAnswer(f"returned {kind}, which is not an array of uint8 of shape {expected}")
    return value


def _library_faults(library: Library) -> list[str]:
    faults = [*_reference_faults(library, "backend"), *_name_faults(library)]
    if library.exports and not library.simulator:
        reason = "since only policies of Isaac Lab's envs can be exported"
        faults.append(f"exports={library.exports!r} needs a simulator, {reason}")
    if library.roles and not library.distributed:
        faults.append(f"roles={library.roles!r} needs distributed=True")
    for pattern in library.stock_checkpoints if isinstance(library.stock_checkpoints, tuple | list) else ():
        try:
            re.compile(pattern)
        except re.error as exc:
            faults.append(f"stock_checkpoints={pattern!r}: {exc}")
    try:
        if re.compile(library.checkpoint_pattern).groups < 1:
            faults.append(f"checkpoint_pattern={library.checkpoint_pattern!r} has no group for the iteration")
    except (re.error, TypeError) as exc:  # a TypeError has a clause of its own
        faults += [f"checkpoint_pattern={library.checkpoint_pattern!r}: {exc}"] if isinstance(exc, re.error) else []
    faults += [*_iteration_faults(library), *_requirement_faults(library), *_regex_faults(library)]
    return faults + _checkpoint_faults(library) + _input_faults(library)


def _checkpoint_faults(library: Library) -> list[str]:
    """Return what is wrong with the companions and the glob; their types have clauses of their own."""
    companions = library.checkpoint_companions if isinstance(library.checkpoint_companions, tuple | list) else ()
    faults = [
        f"checkpoint_companions has {name!r}, which is not the name of a .npz or .safetensors file with {STEM}"
        for name in companions
        if isinstance(name, str) and not re.fullmatch(r"[^/{}]*\{stem\}[^/{}]*\.(npz|safetensors)", name)
    ]
    glob = library.checkpoint_glob
    if isinstance(glob, str) and not _is_below(glob):
        faults.append(f"checkpoint_glob={glob!r} is not a pattern of paths below the logs of a run")
    faults += [
        f"checkpoint_companions has {name!r}, which also names the checkpoints of checkpoint_glob={glob!r}"
        for name in companions
        if isinstance(name, str) and isinstance(glob, str)
        if fnmatch.fnmatchcase(PurePath(glob).name.replace("*", "x"), name.replace(STEM, "*"))
    ]
    if library.checkpoint_is_folder and isinstance(glob, str) and "**" in glob:
        faults.append(f"checkpoint_glob={glob!r} names folders at any depth, where it has to name their parents")
    return faults


def _iteration_faults(library: Library) -> list[str]:
    """Return what is wrong with the function of checkpoint numbers, which is called for every name later."""
    if not callable(library.checkpoint_iteration):  # its type has a clause of its own
        return []
    for arguments in ((1, 1), (0, 1), (4800, 24)):
        try:
            value = library.checkpoint_iteration(*arguments)
        except INTERRUPTS:
            raise
        except BaseException as exc:  # a plugin may raise anything
            return [f"checkpoint_iteration{arguments} {cause_of(exc)}"]
        if not isinstance(value, int | float):
            return [f"checkpoint_iteration{arguments} is {value!r}, not a number"]
    return []


def _is_below(pattern: str) -> bool:
    """Return whether a path or pattern leads to files below a folder, and to no others."""
    parts = PurePosixPath(pattern).parts
    is_valid = bool(parts) and all(part == "**" or "**" not in part for part in parts)
    return is_valid and parts[0] not in ("/", "//") and ".." not in parts and pattern.isprintable()


def _requirement_faults(library: Library) -> Iterator[str]:
    for text in library.requires if isinstance(library.requires, tuple | list) else ():
        if isinstance(text, str) and not is_requirement(text):
            yield f"requires has {text!r}, which is not a requirement of pip"


def _regex_faults(library: Library) -> Iterator[str]:
    for text in library.hidden if isinstance(library.hidden, tuple | list) else ():
        if isinstance(text, str):
            try:
                re.compile(text)
            except re.error as exc:
                yield f"hidden has {text!r}: {exc}"


def _pack_faults(pack: AssetPack) -> list[str]:
    paths = [path for path in pack.files if isinstance(path, str)] if isinstance(pack.files, Mapping) else []
    outside = [f"files has {path!r}, which is not a path below the folder" for path in paths if not _is_below(path)]
    return [*_reference_faults(pack, "build"), *outside]


def _table_faults(launcher: LauncherType) -> list[str]:
    tables = launcher.tables if isinstance(launcher.tables, tuple | list) else ()
    return [
        f"the table {one.title!r} names no program" for one in tables if isinstance(one, QueueTable) and not one.argv
    ]


def _input_faults(library: Library) -> list[str]:
    inputs = library.inputs if isinstance(library.inputs, Mapping) else {}
    pairs = [(name, one) for name, one in inputs.items() if isinstance(one, Input)]
    return [f"{clause} in the input {name!r}" for name, one in pairs for clause in wrong_fields(one)]


def _name_faults(library: Library) -> Iterator[str]:
    for name in library.metric_names if isinstance(library.metric_names, Mapping) else ():
        if name in METRICS:
            yield f"metric_names has {name!r}, which is a name of rlnb's own"
        elif isinstance(name, str) and not name.isidentifier():
            yield f"metric_names has {name!r}, which is not a name of letters, digits and underscores"


def _reference_faults(item: Any, field: str) -> list[str]:
    faults = [] if item.name else ["name='' is empty"]
    if isinstance(item.name, str) and item.name and not re.fullmatch(r"\w[\w.-]*", item.name, re.ASCII):
        faults = [f"name={item.name!r} is not a name of letters, digits, dots, underscores and hyphens"]
    reference = getattr(item, field)
    module, _, attribute = reference.partition(":") if isinstance(reference, str) else ("ok", "", "ok")
    return faults if module and attribute else [*faults, f"{field}={reference!r} is not 'module:name'"]


def _task_faults(id: object) -> list[str]:
    if isinstance(id, str) and id and (not id.isprintable() or id.startswith("-") or " " in id):
        return [f"id={id!r} is not the id of a task"]
    return [] if id else ["id='' is empty"]


_FAULTS: Mapping[type, Callable[[Any], list[str]]] = {
    Library: _library_faults,
    LauncherType: lambda launcher: [*_reference_faults(launcher, "factory"), *_table_faults(launcher)],
    AssetPack: _pack_faults,
    Task: lambda task: _task_faults(task.id),
}
"""For each type, the function that finds values which have the right type and are still wrong."""
