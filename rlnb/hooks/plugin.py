"""A plugin: its name, version and distribution, and what is wrong with it."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from rlnb.errors import InterruptedRequest, RlnbError

HEAVY = ("torch", "isaaclab", "isaacsim", "jax", "warp", "pxr")
"""Modules that a plugin's light half should not import: each takes seconds, in every process of rlnb."""
INTERRUPTS = (InterruptedRequest, KeyboardInterrupt)
"""What stands for the user's interrupt, which may arrive while a plugin is at work. All else is the plugin's own."""
SLOW_S = 10.0
"""Seconds after which a plugin that is still being imported is named."""
logger = logging.getLogger(__name__)


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

    @property
    def is_own(self) -> bool:
        """Whether this is rlnb itself, which registers its launchers by an entry point too."""
        return self.name == self.distribution == "rlnb"

    def __str__(self) -> str:
        return f"plugin {self.name!r} ({self.package or 'registered by hand'})"

    @property
    def package(self) -> str:
        """Name and version of the package; empty if it was registered by hand."""
        return f"{self.distribution} {self.version}".strip()

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
    begun = time.perf_counter()
    try:
        # stdout carries the output of a command
        with contextlib.redirect_stdout(sys.stderr), _named_if_slow(plugin), heavy_imports() as heavy:
            module = entry.load()
    except INTERRUPTS:
        raise
    except BaseException as exc:  # a plugin may raise anything
        plugin.error, plugin.fix = f"its import {cause_of(exc)}", plugin.usual_fix
        if isinstance(exc, ModuleNotFoundError) and exc.name and not _exists(exc.name.split(".")[0]):
            plugin.fix = f"Install the package of {exc.name!r}, or uninstall {plugin.distribution}."
        return None
    if heavy:
        names, seconds = " and ".join(heavy), time.perf_counter() - begun
        fix = f"Import {names} inside the functions that need it."
        plugin.remarks = (f"imports {names} on load, which takes {seconds:.1f} s in each process. {fix}",)
    return module


@contextlib.contextmanager
def _named_if_slow(plugin: Plugin) -> Iterator[None]:
    """Name a plugin whose import takes long, or never ends: nothing else of rlnb works meanwhile."""
    text = "The %s is still being imported after %.0f s, and rlnb waits for it. %s"
    timer = threading.Timer(SLOW_S, logger.warning, [text, plugin, SLOW_S, plugin.usual_fix])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent is a module and not a package
        return False
    except ValueError:  # a module of sys.modules that was made by hand, without a spec
        return True


def absent_module(reference: str) -> str:
    """Return the module of a ``"module:attr"`` string if it does not exist; an empty string if it does.

    Nothing is imported for this, so a module exists as long as its package is not loaded.
    """
    module = reference.partition(":")[0]
    is_known = module.rpartition(".")[0] in sys.modules
    return module if is_known and not _exists(module) else ""


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
        if name in HEAVY and name not in self.names and threading.get_ident() == self._thread:
            self.names.append(name)


def cause_of(exc: BaseException) -> str:
    """Return what an exception of a plugin was and where, e.g. ``"raised ValueError: no (/a/b.py, line 3)"``."""
    text = f"called sys.exit({exc.code!r})" if isinstance(exc, SystemExit) else f"raised {text_of(exc)}"
    frames = traceback.extract_tb(exc.__traceback__)
    places = [frame for frame in frames if not frame.filename.startswith("<") and frame.filename not in _OWN_FILES]
    last = places[-1] if places and not isinstance(exc, SyntaxError) else None  # a SyntaxError names its file itself
    place = f" ({last.filename}, line {last.lineno})" if last else ""
    return f"{text}{place}{reason_of(exc)}"


def reason_of(exc: BaseException) -> str:
    """Return the exception that led to another one, e.g. ``", because of OSError: no (/a/b.py, line 3)"``.

    An empty string if none did. Some packages, such as Isaac Lab's, import their names on first use. If that fails,
    ``from package import name`` says only that the name cannot be imported, so this function gets it once more.
    """
    chain = [exc, *_before(exc, [exc])]
    if dropped := _dropped_by(chain[-1]):
        chain += [dropped, *_before(dropped, [*chain, dropped])]
    first = chain[-1]
    if first is exc:
        return ""
    frames = traceback.extract_tb(first.__traceback__)
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f", because of {text_of(first)}{place}"


def _before(exc: BaseException, known: Sequence[BaseException]) -> list[BaseException]:
    """Return the exceptions that led to this one, the earliest last, up to one that is known already."""
    before = exc.__cause__ or (None if exc.__suppress_context__ else exc.__context__)
    if before is None or any(before is one for one in known):
        return []
    return [before, *_before(before, [*known, before])]


def _dropped_by(exc: BaseException) -> BaseException | None:
    """Return the exception that ``from module import name`` hid; None if the module just has no such name."""
    module = sys.modules.get(exc.name or "") if isinstance(exc, ImportError) else None
    name = getattr(exc, "name_from", None)  # None in Python 3.11
    if module is None or name is None:
        return None
    try:
        getattr(module, name)
    except INTERRUPTS:
        raise
    except BaseException as inner:
        frames = traceback.extract_tb(inner.__traceback__)[1:]
        return inner if any(frame.name != "__getattr__" for frame in frames) else None  # else it has no such name
    return None


def text_of(exc: BaseException) -> str:
    """Return the type and the text of an exception, also of one whose ``__str__`` raises."""
    text = traceback.TracebackException(type(exc), exc, None, lookup_lines=False)
    return f"{type(exc).__name__}: {text}".rstrip(": ")


_OWN_FILES = (__file__, str(Path(__file__).with_name("answers.py")), metadata.__file__)
"""Files whose frames say nothing about the place of a fault."""
