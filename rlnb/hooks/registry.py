"""The plugins of this process: those that work, and those that are left out."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

import pluggy

from rlnb import hookspecs
from rlnb.errors import did_you_mean
from rlnb.hooks.answers import answer_of
from rlnb.hooks.plugin import HookError, Plugin, load_module, plugin_of
from rlnb.spec import Task

REGISTRATION = {
    "rlnb_libraries": "a library",
    "rlnb_launchers": "a launcher",
    "rlnb_tasks": "a task",
    "rlnb_asset_packs": "an asset pack",
}
"""The hooks by which a plugin says what it adds, to the kind of object. A plugin that fails in one is left out."""
RESERVED = {"rlnb_libraries": ("script",), "rlnb_launchers": ("local", "injected")}
"""Names that are rlnb's own."""


class Registry:
    """The plugins of this process, and what they have registered."""

    def __init__(self) -> None:
        self.manager = pluggy.PluginManager("rlnb")
        self.manager.add_hookspecs(hookspecs)
        self.plugins: dict[str, Plugin] = {}
        """Every plugin by name, also those that are left out."""
        self._registered: dict[str, tuple[list[pluggy.HookImpl], list[tuple[Plugin, tuple[Any, ...]]]]] = {}
        """What plugins register with each hook, and the implementations that did."""
        self._untold: list[str] = []
        self._load()

    def _load(self) -> None:
        modules: dict[str, str] = {}
        for entry in sorted(metadata.entry_points(group="rlnb")):
            value = modules.setdefault(entry.name, entry.value)
            if value != entry.value:
                both = f"Two packages provide an rlnb plugin named {entry.name!r}: {value} and {entry.value}."
                self._untold.append(f"{both} The second is left out; uninstall one.")
            if entry.name in self.plugins:
                continue
            plugin = self.plugins[entry.name] = plugin_of(entry)
            module = load_module(entry, plugin)
            if module is not None:
                self._add(plugin, module)
            if plugin.error:
                self._untold.append(left_out(plugin))

    def _add(self, plugin: Plugin, module: object) -> None:
        """Register the hooks of a plugin; an error is noted in the plugin."""
        try:
            self.manager.register(module, name=plugin.name)
            wrappers = [hook for hook, implementation in self._hooks(module) if implementation.wrapper]
            plugin.error = f"{wrappers[0]} is a wrapper, which rlnb's hooks do not have" if wrappers else ""
        except Exception as exc:  # an argument that the hook does not have, or a property that raises
            plugin.error = f"{type(exc).__name__}: {' '.join(str(exc).split())}"
        if plugin.error:
            plugin.fix = plugin.usual_fix
            if self.manager.has_plugin(plugin.name):
                self.manager.unregister(name=plugin.name)
            return
        plugin.remarks = tuple(_remarks(module, dict(self._hooks(module))))
        self._untold += [f"The {plugin} {remark}" for remark in plugin.remarks]

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
        if fault := plugin.error or next(self._faults(plugin, module, names), ""):
            if self.manager.has_plugin(plugin.name):
                self.manager.unregister(name=plugin.name)
            raise HookError(f"The {plugin} was not registered: {fault}", fault=fault, fix=plugin.usual_fix)
        self.plugins[plugin.name] = plugin

    def _faults(self, plugin: Plugin, module: object, names: Mapping[str, Sequence[str]]) -> Iterator[str]:
        """Find why a plugin cannot be registered by hand, given the names that others register with each hook."""
        for hook, implementation in self._hooks(module):
            if hook in REGISTRATION:
                answer = answer_of(hook, implementation, plugin)
                if answer.error is not None:
                    yield answer.error.fault
                for one in answer.value or ():
                    if _name(one) in (*names[hook], *RESERVED.get(hook, ())):
                        yield f"{REGISTRATION[hook]} named {_name(one)!r} is there already"

    def items(self, hook: str) -> list[tuple[Plugin, tuple[Any, ...]]]:
        """Return what each plugin registers with a hook.

        A plugin that fails is left out from then on. A name that two plugins register belongs to neither.
        """
        implementations = self.implementations(hook)
        earlier, pairs = self._registered.get(hook, ([], []))
        if earlier == implementations:
            return pairs
        answers = [answer_of(hook, one, self.of(one)) for one in implementations]
        for answer in answers:
            if answer.error is not None:
                self._leave_out(answer.plugin, answer.error.fault, answer.error.fix)
        pairs = [(answer.plugin, answer.value) for answer in answers if answer.error is None]
        clashes = self._clashes(hook, pairs)
        pairs = [(plugin, tuple(one for one in items if _name(one) not in clashes)) for plugin, items in pairs]
        self._registered[hook] = self.implementations(hook), pairs
        return pairs

    def _clashes(self, hook: str, pairs: Sequence[tuple[Plugin, Sequence[Any]]]) -> set[str]:
        """Return the names that a hook registers more than once. The plugins that do so get a remark."""
        owners = {name: ["rlnb itself"] for name in RESERVED.get(hook, ())}
        for plugin, items in pairs:
            for name in dict.fromkeys(map(_name, items)):
                owners.setdefault(name, []).append(f"the {plugin}")
        clashes = {name for name in owners if len(owners[name]) > 1}
        for plugin, items in pairs:
            for name in sorted(clashes & {*map(_name, items)}):
                others = " and ".join(owner for owner in owners[name] if owner != f"the {plugin}")
                remark = f"has {REGISTRATION[hook]} named {name!r}, as has {others}. Uninstall one of them."
                if remark not in plugin.remarks:
                    plugin.remarks += (remark,)
                    self._untold.append(f"The {plugin} {remark} Until then, neither is used.")
        return clashes

    def implementations(self, hook: str) -> list[pluggy.HookImpl]:
        """Return the implementations of a hook, in the order of registration."""
        caller: pluggy.HookCaller = getattr(self.manager.hook, hook)
        return caller.get_hookimpls()

    def of(self, implementation: pluggy.HookImpl) -> Plugin:
        """Return the plugin of an implementation."""
        name = implementation.plugin_name
        return self.plugins.setdefault(name, Plugin(name=name))

    def _leave_out(self, plugin: Plugin, error: str, fix: str) -> None:
        plugin.error, plugin.fix = error, fix
        if self.manager.has_plugin(plugin.name):
            self.manager.unregister(name=plugin.name)
        self._untold.append(left_out(plugin))

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
            yield f"has a function {name} that is never called. Mark it with @rlnb.hookimpl."


@functools.cache
def registry() -> Registry:
    """Return the plugins of this process. The first call loads them."""
    return Registry()


def manager() -> pluggy.PluginManager:
    """Return the plugin manager, with every installed plugin that works.

    A plugin that fails to load is left out, with one warning that names it. The second of two plugins with the same
    name is left out too.
    """
    plugins = registry()
    plugins.tell()
    return plugins.manager


def register(plugin: object, name: str | None = None) -> None:
    """Register a plugin by hand, e.g. from a notebook. It applies to this process only.

    Args:
        plugin: Module or object whose functions are marked with ``rlnb.hookimpl``.
        name: Name of the plugin; None takes the plugin's own name.

    Raises:
        RlnbError: A hook of the plugin does not exist in this form, fails, or registers a name that is in use.
    """
    registry().add(plugin, name)


def registered(hook: str) -> list[tuple[Plugin, tuple[Any, ...]]]:
    """Return the objects that plugins register with a hook of :data:`REGISTRATION`.

    A plugin whose hook raises, returns a wrong type or a name in use is left out, with one warning that names it.
    """
    plugins = registry()
    pairs = plugins.items(hook)
    plugins.tell()
    return pairs


def implementations_of(hook: str) -> list[tuple[Plugin, pluggy.HookImpl]]:
    """Return the plugins that implement a hook, with their functions, the last registered first.

    A plugin that fails in a hook of :data:`REGISTRATION` is not among them.
    """
    plugins = registry()
    for registration in REGISTRATION:
        plugins.items(registration)
    plugins.tell()
    return [(plugins.of(one), one) for one in reversed(plugins.implementations(hook))]


def installed() -> list[Plugin]:
    """Return all plugins by name, also those that are left out, with their errors. Nothing is warned of."""
    plugins = registry()
    for hook in REGISTRATION:
        plugins.items(hook)
    plugins.forget()
    works = plugins.manager.has_plugin
    return sorted((one for one in plugins.plugins.values() if one.error or works(one.name)), key=lambda one: one.name)


def hooks_of(plugin: Plugin) -> list[str]:
    """Return the names of the hooks that a plugin implements; none if it is left out."""
    plugins = registry().manager
    module = plugins.get_plugin(plugin.name)
    return [caller.name for caller in plugins.get_hookcallers(module) or []] if module is not None else []
