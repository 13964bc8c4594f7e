"""The plugins of this process, those that work and those that are left out, and calls of a hook in all of them."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

import pluggy

from rlnb.errors import RlnbError, did_you_mean
from rlnb.hooks import hookspecs
from rlnb.hooks.answers import Answer, answer_of, answers
from rlnb.hooks.plugin import INTERRUPTS, HookError, Plugin, absent_module, load_module, plugin_of, text_of
from rlnb.spec import Task

REGISTRATION = {
    "rlnb_libraries": "a library",
    "rlnb_launchers": "a launcher",
    "rlnb_tasks": "a task",
    "rlnb_asset_packs": "an asset pack",
}
"""The hooks that register objects, with the kind of these objects. A plugin that fails in one is left out."""
OWN = "rlnb"
"""Name of the package, and of the entry point by which it registers its own launchers."""
OWN_LAUNCHERS = ("local", "injected")


@functools.cache
def reserved(hook: str) -> frozenset[str]:
    """Return the names that no plugin may register. A launcher becomes ``rlnb.<name>``, which must be free."""
    if hook == "rlnb_launchers":
        return frozenset({*OWN_LAUNCHERS, *sys.modules["rlnb"]._every_name()})
    return frozenset({"script"} if hook == "rlnb_libraries" else ())


_lock = threading.RLock()
"""Held by each function that reads or changes the registry: the threads of a Jupyter server look up plugins at the same
time. The calls of hooks below do not hold it."""


def _without_instance(module: object, hooks: Iterable[tuple[str, pluggy.HookImpl]]) -> str:
    """Return what is wrong with a plugin that is a class whose hooks are methods; empty if it is none."""
    names = [name for name, one in hooks if inspect.isclass(module) and inspect.isfunction(vars(module).get(name))]
    if not names:
        return ""
    return f"it is the class {getattr(module, '__qualname__', '')}, whose {names[0]} is a method. Name an instance"


class Registry:
    """The plugins of this process, and what they have registered."""

    def __init__(self) -> None:
        self.manager = pluggy.PluginManager("rlnb")
        self.manager.add_hookspecs(hookspecs)
        self.plugins: dict[str, Plugin] = {}
        """Every plugin by name, also those that are left out."""
        self._settled: dict[str, list[pluggy.HookImpl]] = {}
        """For each hook of :data:`REGISTRATION`, the implementations that have been called."""
        self._items: dict[str, list[tuple[Plugin, tuple[Any, ...]]]] = {}
        """For each hook of :data:`REGISTRATION`, what plugins register with it."""
        self._calling = False
        self._untold: list[str] = []
        self._load()

    def _load(self) -> None:
        values: dict[str, str] = {}
        entries = sorted(metadata.entry_points(group="rlnb"))
        found = sorted(zip(map(plugin_of, entries), entries, strict=True), key=lambda one: not one[0].is_own)
        if not any(plugin.is_own for plugin, _ in found):
            error = "it is not installed as a package, so no run can start"
            self.plugins[OWN] = Plugin(name=OWN, distribution=OWN, error=error, fix="Install it again.")
        for plugin, entry in found:  # rlnb's own first
            value = values.setdefault(entry.name, entry.value)
            if value != entry.value:
                remark = f"has the name of another plugin, that of {plugin.package}, which is left out. Uninstall one."
                self.plugins[entry.name].remarks += (remark,)
            if entry.name in self.plugins:
                continue
            self.plugins[entry.name] = plugin
            module = load_module(entry, plugin)
            if module is not None:
                self._add(plugin, module)
        for plugin in self.plugins.values():
            self._untold += [left_out(plugin)] if plugin.error else []
            self._untold += [f"The {plugin} {remark}" for remark in plugin.remarks]

    def _add(self, plugin: Plugin, module: object) -> None:
        """Register the hooks of a plugin; an error is noted in the plugin."""
        try:
            self.manager.register(module, name=plugin.name)
            wrappers = [hook for hook, one in self._hooks(module) if one.wrapper or one.hookwrapper]
            if wrappers:
                plugin.error = f"{wrappers[0]} is a wrapper, which rlnb's hooks do not have"
            else:
                plugin.error = _without_instance(module, self._hooks(module))
        except INTERRUPTS:
            raise
        except BaseException as exc:  # an argument that the hook does not have, or a property that raises
            plugin.error = " ".join(text_of(exc).split())
        if plugin.error:
            plugin.fix = plugin.usual_fix
            self._unregister(plugin)
        else:
            plugin.remarks += tuple(_remarks(module, dict(self._hooks(module))))

    def _unregister(self, plugin: Plugin) -> None:
        if self.manager.has_plugin(plugin.name):
            self.manager.unregister(name=plugin.name)

    def _hooks(self, module: object) -> list[tuple[str, pluggy.HookImpl]]:
        """Return the implementations of a plugin, with the names of their hooks."""
        callers = self.manager.get_hookcallers(module) or []
        return [(caller.name, one) for caller in callers for one in caller.get_hookimpls() if one.plugin is module]

    def add(self, module: object, name: str | None) -> None:
        """Register a plugin by hand.

        Raises:
            HookError: The plugin cannot be used. It is not registered.
        """
        plugin = Plugin(name=name or self.manager.get_canonical_name(module))
        if self.manager.has_plugin(plugin.name):
            fault = "its name is in use"
            raise HookError(f"The {plugin} was not registered: {fault}", fault=fault, fix="Use another name.")
        names = {hook: [_name(one) for _, items in self.items(hook) for one in items] for hook in REGISTRATION}
        self._add(plugin, module)
        with self._calls():
            fault = plugin.error or next(self._faults(plugin, module, names), "")
        if fault:
            self._unregister(plugin)
            raise HookError(f"The {plugin} was not registered: {fault}", fault=fault, fix=plugin.usual_fix)
        self.plugins[plugin.name] = plugin
        self._untold += [f"The {plugin} {remark}" for remark in plugin.remarks]

    def _faults(self, plugin: Plugin, module: object, names: Mapping[str, Sequence[str]]) -> Iterator[str]:
        """Find why a plugin cannot be registered by hand, given the names that others register with each hook."""
        for hook, implementation in self._hooks(module):
            if hook in REGISTRATION:
                answer = answer_of(hook, implementation, plugin)
                if answer.error is not None:
                    yield answer.error.fault
                for one in answer.value or ():
                    if _name(one) in (*names[hook], *reserved(hook)):
                        yield f"{REGISTRATION[hook]} named {_name(one)!r} is there already"

    def items(self, hook: str) -> list[tuple[Plugin, tuple[Any, ...]]]:
        """Return what each plugin registers with a hook of :data:`REGISTRATION`."""
        self.settle()
        return self._items[hook]

    def settle(self) -> None:
        """Call the hooks of :data:`REGISTRATION` of all plugins, unless that is done.

        A plugin that fails in one is left out of all hooks. A name that two plugins register belongs to neither.

        Raises:
            RlnbError: Such a hook is running, and looks up what plugins register.
        """
        if self._calling:
            raise RlnbError("A hook that registers objects cannot look up such objects. Name them by strings.")
        implementations = {hook: self.implementations(hook) for hook in REGISTRATION}
        if self._settled == implementations:
            return
        with self._calls():
            pairs = {hook: list(self._answers(hook, ones)) for hook, ones in implementations.items()}
        for hook in REGISTRATION:
            self._items[hook] = self._unique(hook, [pair for pair in pairs[hook] if not pair[0].error])
        self._remark_absent_backends()
        self._settled = {hook: self.implementations(hook) for hook in REGISTRATION}

    @contextlib.contextmanager
    def _calls(self) -> Iterator[None]:
        """Mark that hooks of :data:`REGISTRATION` are called, so that :meth:`settle` does not call them again."""
        self._calling = True
        try:
            yield
        finally:
            self._calling = False

    def _answers(self, hook: str, implementations: Iterable[pluggy.HookImpl]) -> Iterator[tuple[Plugin, Any]]:
        """Call a hook of plugins, and yield what each registers. A plugin that fails is left out from then on."""
        for one in implementations:
            plugin = self.of(one)
            if plugin.error:  # it has failed in another hook
                continue
            answer = answer_of(hook, one, plugin)
            if answer.error is None:
                yield plugin, answer.value
            else:
                plugin.error, plugin.fix = answer.error.fault, answer.error.fix
                self._unregister(plugin)
                self._untold.append(left_out(plugin))

    def _unique(self, hook: str, pairs: Sequence[tuple[Plugin, Any]]) -> list[tuple[Plugin, tuple[Any, ...]]]:
        """Return what plugins register with a hook, without a name of rlnb and without one that is there twice.

        The plugins that register such a name get a remark.
        """
        owners: dict[str, list[Plugin]] = {}
        for plugin, items in pairs:
            for name in dict.fromkeys(map(_name, items)):
                owners.setdefault(name, []).append(plugin)
        own, kind = reserved(hook), REGISTRATION[hook]
        for name in sorted(owners):
            for plugin in owners[name]:
                others = " and ".join(f"the {other}" for other in owners[name] if other is not plugin)
                if plugin.is_own:
                    continue
                if name in own:
                    self._remark(plugin, f"registers {kind} named {name!r}, which is a name of rlnb's own. Rename it.")
                elif others:
                    fix = "Uninstall one of them. Until then, neither is used."
                    self._remark(plugin, f"has {kind} named {name!r}, as has {others}. {fix}")
        unique = {name for name in owners if len(owners[name]) == 1 and name not in own}
        return [
            (plugin, tuple(item for item in items if _name(item) in (own if plugin.is_own else unique)))
            for plugin, items in pairs
        ]

    def _remark_absent_backends(self) -> None:
        """Remark each library whose backend is in a module that does not exist, so that no run of it can start."""
        for plugin, libraries in self._items["rlnb_libraries"]:
            for library in libraries:
                if module := absent_module(library.backend):
                    what = f"has a library {library.name!r} whose backend is in {module!r}, which does not exist."
                    self._remark(plugin, f"{what} Correct Library.backend.")

    def _remark(self, plugin: Plugin, remark: str) -> None:
        if remark not in plugin.remarks:
            plugin.remarks += (remark,)
            self._untold.append(f"The {plugin} {remark}")

    def implementations(self, hook: str) -> list[pluggy.HookImpl]:
        """Return the implementations of a hook, in the order of registration."""
        caller: pluggy.HookCaller = getattr(self.manager.hook, hook)
        return caller.get_hookimpls()

    def of(self, implementation: pluggy.HookImpl) -> Plugin:
        """Return the plugin of an implementation."""
        name = implementation.plugin_name
        return self.plugins.setdefault(name, Plugin(name=name))

    def tell(self) -> None:
        """Warn of each fault that was found since the last call."""
        while self._untold:
            warnings.warn(self._untold.pop(0), stacklevel=3)

    def forget(self) -> None:
        """Give no warning of the faults that were found, since the caller shows them."""
        self._untold.clear()


def _name(item: Any) -> str:
    return str(item.id if isinstance(item, Task) else item.name)


def left_out(plugin: Plugin) -> str:
    """Return the warning for a plugin that is left out."""
    return f"The {plugin} is left out: {plugin.error}. {plugin.fix}"


def _remarks(module: object, hooks: Mapping[str, pluggy.HookImpl]) -> Iterator[str]:
    """Find functions that a plugin offers as hooks and that are never called."""
    specified = [name for name in vars(hookspecs) if name.startswith("rlnb_")]
    for name, implementation in hooks.items():
        if name not in specified and not implementation.optionalhook:
            hint = did_you_mean(name, specified)
            yield f"implements {name}, which is not a hook of rlnb, so it is never called.{hint}"
    for name in specified:
        if name not in hooks and inspect.isroutine(getattr(module, name, None)):
            yield f"has a function {name} that is never called. Mark it with @rlnb.plugin.hookimpl."


@functools.cache
def registry() -> Registry:
    """Return the plugins of this process. The first call loads them. The caller holds the lock."""
    return Registry()


def manager() -> pluggy.PluginManager:
    """Return the plugin manager, with every installed plugin that works.

    A plugin that fails to load is left out, with one warning that names it. The second of two plugins with the same
    name is left out too.
    """
    with _lock:
        plugins = registry()
        plugins.tell()
        return plugins.manager


def register(plugin: object, name: str | None = None) -> None:
    """Register a plugin by hand, e.g. from a notebook. It applies to this process only.

    Args:
        plugin: Module or object whose functions are marked with ``rlnb.plugin.hookimpl``.
        name: Name of the plugin; None takes the plugin's own name.

    Raises:
        RlnbError: A hook of the plugin does not exist in this form, fails, or registers a name that is in use.
    """
    with _lock:
        plugins = registry()
        plugins.add(plugin, name)
        plugins.tell()


def registered(hook: str) -> list[tuple[Plugin, tuple[Any, ...]]]:
    """Return the objects that plugins register with a hook of :data:`REGISTRATION`.

    A plugin that fails in any of these hooks is left out, with one warning that names it.
    """
    with _lock:
        plugins = registry()
        items = plugins.items(hook)
        plugins.tell()
        return items


def implementations_of(hook: str) -> list[tuple[Plugin, pluggy.HookImpl]]:
    """Return the plugins that implement a hook, with their functions, the last registered first.

    A plugin that fails in a hook of :data:`REGISTRATION` is not among them.
    """
    with _lock:
        plugins = registry()
        plugins.settle()
        plugins.tell()
        return [(plugins.of(one), one) for one in reversed(plugins.implementations(hook))]


def installed() -> list[Plugin]:
    """Return all plugins by name, also those that are left out, with their errors. Nothing is warned of.

    rlnb itself is among them only if something is wrong with it.
    """
    with _lock:
        plugins = registry()
        plugins.settle()
        plugins.forget()
        works = plugins.manager.has_plugin
        every = (plugin for plugin in plugins.plugins.values() if plugin.error or works(plugin.name))
        shown = (plugin for plugin in every if not plugin.is_own or plugin.error or plugin.remarks)
        return sorted(shown, key=lambda plugin: plugin.name)


def package_versions() -> dict[str, str]:
    """Return the version of each package that installs a plugin, by the package's name."""
    with _lock:
        plugins = registry().plugins.values()
        return {one.distribution: one.version for one in plugins if one.version and not one.is_own}


def hooks_of(plugin: Plugin) -> list[str]:
    """Return the names of the hooks that a plugin implements; none if it is left out."""
    with _lock:
        plugins = registry().manager
        module = plugins.get_plugin(plugin.name)
        return [caller.name for caller in plugins.get_hookcallers(module) or []] if module is not None else []


# -- calls of hooks --------------------------------------------------------------------------------------------------


logger = logging.getLogger(__name__)
_told: set[str] = set()


def call(hook: str, **arguments: Any) -> Iterator[Answer]:
    """Call a hook of each plugin that works, the last registered first, and yield each answer or error in turn.

    Args:
        hook: Name of the hook.
        arguments: Every argument of the hook.
    """
    return answers(hook, implementations_of(hook), **arguments)


def require(hook: str, **arguments: Any) -> Any:
    """Call a hook that changes a run, and return the first value that is not None.

    Raises:
        HookError: A hook failed. The run must not go on without the change.
    """
    for answer in call(hook, **arguments):
        if answer.error is not None:
            raise answer.error
        if answer.value is not None:
            return answer.value
    return None


def observe(hook: str, **arguments: Any) -> Any:
    """Call a hook that only shows or follows a run, and return the first value that is not None.

    A hook that fails ends nothing: it is logged once, with its plugin, and the other plugins are called.
    """
    for answer in call(hook, **arguments):
        if answer.error is not None:
            if str(answer.error) not in _told:
                _told.add(str(answer.error))
                logger.warning("%s", answer.error, exc_info=answer.error.__cause__)
        elif answer.value is not None:
            return answer.value
    return None


def versions_of(hook: str) -> dict[str, str]:
    """Return the version of each plugin that implements a hook, by the plugin's name."""
    return {plugin.name: plugin.version for plugin, _ in implementations_of(hook)}
