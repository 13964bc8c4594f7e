"""rlnb: reinforcement learning of robots with NVIDIA Isaac Lab, from a notebook.

Importing ``rlnb`` does no work. The public names are listed in ``__init__.pyi``; each one is loaded when it is first
used. The launchers of plugins are attributes too: ``rlnb.slurm(...)``. More names are in ``rlnb.results`` (types that
calls return), ``rlnb.studies`` (several trainings that answer one question) and, for authors of plugins,
``rlnb.plugin``, ``rlnb.launchers`` and ``rlnb.backend``.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable
from typing import Any

import lazy_loader


def _lazy_names(module: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a module of public names, whose stub lists them."""
    public, names_of, names = lazy_loader.attach_stub("rlnb", file)

    def get(name: str) -> Any:
        if name.startswith("_") or name not in names:
            raise AttributeError(f"{module} has no {name!r}.{'' if name.startswith('_') else _hint(name, names)}")
        value = public(name)
        globals().pop(name, None)  # lazy_loader has made it a name of rlnb too
        return value

    return get, names_of, names


_public, _, _names = lazy_loader.attach_stub(__name__, __file__)
_MODULES = ("backend", "launchers", "plugin", "results", "studies")
__all__ = [name for name in _names if name not in _MODULES]

# Old names. Version 0.3 drops them.
_RENAMED = {"Catalog": "RunIndex", "HostedJob": "DetachedJob", "HostedLauncher": "DetachedLauncher"}
_METHODS = {
    "agent": ("tasks.task", "rlnb.task(...).agent(library)"),
    "goodput": ("accounting.goodput", "run.goodput() or rlnb.Runs(runs).goodput()"),
    "render": ("manifests.render", "run.job_script(form)"),
    "replay": ("interactive.replay", "run.replay()"),
    "task_card": ("tasks.task", "rlnb.task(...).card()"),
    "tensorboard": ("curves.tensorboard", "run.tensorboard() or rlnb.Runs(runs).tensorboard()"),
}
"""Module of each function that stood here, and the method that takes its place."""


def _every_name() -> set[str]:
    """Return every name that is an attribute of ``rlnb``, also the old ones, but for the launchers of plugins."""
    modules = {module.name for module in pkgutil.iter_modules(__path__)}
    return {*__all__, *modules, *_METHODS, *_RENAMED, *(name for module in _MODULES for name in _names_of(module))}


def __getattr__(name: str) -> Any:
    if name in __all__:
        globals()[name] = value = _public(name)
        return value
    if name in _MODULES:
        return importlib.import_module(f"rlnb.{name}")
    if name.startswith("_"):
        raise AttributeError(name)
    if importlib.util.find_spec(f"rlnb.{name}"):
        raise AttributeError(name)  # the import system then loads the submodule
    if (moved := _moved(name)) is not None:
        return moved
    return _launcher(name)


def __dir__() -> list[str]:
    from rlnb.hooks import plugins

    return sorted({*__all__, *_MODULES, *plugins.launchers()})


def _moved(name: str) -> Any:
    """Return what an old name stands for, with a warning that says what to use in its place; None for other names."""
    from rlnb.version import deprecated

    if name in _METHODS:
        module, attribute, new = f"rlnb.{_METHODS[name][0]}", name, _METHODS[name][1]
    else:
        attribute = _RENAMED.get(name, name)
        owner = next((one for one in _MODULES if attribute in _names_of(one)), None)
        if owner is None:
            return None
        module, new = f"rlnb.{owner}", f"rlnb.{owner}.{attribute}"
    deprecated(f"rlnb.{name}", new, stacklevel=3)
    return getattr(importlib.import_module(module), attribute)


def _names_of(module: str) -> list[str]:
    names: list[str] = importlib.import_module(f"rlnb.{module}").__all__
    return names


def _launcher(name: str) -> Any:
    """Return the factory of a plugin's launcher."""
    plugins = importlib.import_module("rlnb.hooks.plugins")
    known = plugins.launchers()
    if name not in known:
        hint = _hint(name, [*__all__, *_MODULES, *known])
        raise AttributeError(f"rlnb has no {name!r}, and no launcher of that name is installed.{hint}")
    return plugins.load(known[name].factory)


def _hint(name: str, names: list[str]) -> str:
    from rlnb.errors import did_you_mean

    return did_you_mean(name, names)


def load_ipython_extension(ipython: Any) -> None:
    """Register ``%%task`` and ``%rlnb``; called by ``%load_ext rlnb``."""
    from rlnb.notebook.magics import register_magics

    register_magics(ipython)
