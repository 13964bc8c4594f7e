"""A plugin: its name, version and distribution, and what is wrong with it."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import threading
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from rlnb.errors import InterruptedRequest, RlnbError

HEAVY = ("torch", "isaaclab", "isaacsim", "jax", "warp", "pxr")
"""Modules that a plugin's light half must not import: each takes seconds, in every process of rlnb."""


class HookError(RlnbError):
    """Raised for a hook that failed, and for a plugin that cannot be registered. The message names the plugin.

    Attributes:
        what: The fault and the plugin, as a clause without a full stop.
        fault: The fault alone.
        fix: What to do about it.
    """

    def __init__(self, what: str, *, fault: str, fix: str) -> None:
        self.what, self.fault, self.fix = what, fault, fix
        super().__init__(f"{what}. {fix}")


@dataclass(kw_only=True, slots=True)
class Plugin:
    """A plugin that is installed, or was registered by hand."""

    name: str
    """Name of the plugin's entry point, or the name that it was registered with."""
    distribution: str = ""
    """Name of the package that installed it; empty if it was registered by hand."""
    version: str = ""
    """Version of that package."""
    error: str = ""
    """Why the plugin is left out; empty if it works."""
    fix: str = ""
    """What to do about the error."""
    remarks: tuple[str, ...] = ()
    """Faults that do not keep the plugin from its work, such as a hook that does not exist."""

    def __str__(self) -> str:
        package = f"{self.distribution} {self.version}".strip() or "registered by hand"
        return f"plugin {self.name!r} ({package})"

    @property
    def usual_fix(self) -> str:
        """What a user can do about a fault in the plugin's code."""
        return f"Update or uninstall {self.distribution}." if self.distribution else "Correct its code."


def plugin_of(entry: metadata.EntryPoint) -> Plugin:
    """Return the plugin of an entry point, which is not loaded yet."""
    if entry.dist is None:
        return Plugin(name=entry.name, distribution=entry.value)
    return Plugin(name=entry.name, distribution=entry.dist.name, version=entry.dist.version)


def load_module(entry: metadata.EntryPoint, plugin: Plugin) -> Any:
    """Return the object that an entry point names; None if it cannot be used, which the plugin then notes."""
    try:
        # stdout carries the output of a command
        with contextlib.redirect_stdout(sys.stderr), heavy_imports() as heavy:
            module = entry.load()
    except InterruptedRequest:
        raise
    except (Exception, SystemExit) as exc:  # a plugin may raise anything
        plugin.error, plugin.fix = f"its import {cause_of(exc)}", plugin.usual_fix
        if (
            isinstance(exc, ModuleNotFoundError)
            and exc.name
            and importlib.util.find_spec(exc.name.split(".")[0]) is None
        ):
            plugin.fix = f"Install the package of {exc.name!r}, or uninstall {plugin.distribution}."
        return None
    if heavy:
        names = " and ".join(heavy)
        plugin.error = f"its import also imports {names}, which slows every command down"
        plugin.fix = f"Import {names} inside the functions that need it, or uninstall {plugin.distribution}."
        return None
    return module


@contextlib.contextmanager
def heavy_imports() -> Iterator[list[str]]:
    """Yield a list that holds, at the end, the heavy modules that this thread imported meanwhile."""
    watch = _Watch()
    modules: list[str] = []
    sys.meta_path.insert(0, watch)
    try:
        yield modules
    finally:
        sys.meta_path.remove(watch)
        modules += [name for name in watch.names if name in sys.modules]


class _Watch:
    """A finder of modules that finds none, but notes each search for a heavy one."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._thread = threading.get_ident()

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in HEAVY and threading.get_ident() == self._thread:
            self.names.append(name)


def cause_of(exc: BaseException) -> str:
    """Return what an exception of a plugin was and where, e.g. ``"raised ValueError: no (/a/b.py, line 3)"``."""
    text = f"raised {type(exc).__name__}: {exc}".rstrip(": ")
    if isinstance(exc, SystemExit):
        text = f"called sys.exit({exc.code!r})"
    frames = traceback.extract_tb(exc.__traceback__)
    places = [frame for frame in frames if not frame.filename.startswith("<") and frame.filename not in _OWN_FILES]
    last = places[-1] if places and not isinstance(exc, SyntaxError) else None  # a SyntaxError names its file itself
    return f"{text} ({last.filename}, line {last.lineno})" if last else text


_OWN_FILES = (__file__, __file__.replace("plugin.py", "answers.py"), metadata.__file__)
"""Files whose frames say nothing about the place of a fault."""
