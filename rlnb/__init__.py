"""rlnb: reinforcement learning of robots with NVIDIA Isaac Lab, from a notebook.

Importing ``rlnb`` does no work. The public names are listed in ``__init__.pyi``; each one is loaded when it is first
used. The launchers of plugins are attributes too: ``rlnb.slurm(...)``. More names are in ``rlnb.results``, the types
that calls return, ``rlnb.studies``, several trainings that answer one question, and, for authors of plugins,
``rlnb.plugin``, ``rlnb.launchers`` and ``rlnb.backend``.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import warnings
from collections.abc import Callable
from typing import Any

import lazy_loader


def lazy_names(file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a module of public names, whose stub lists them."""
    module = f"rlnb.{os.path.splitext(os.path.basename(file))[0]}"
    public, names_of, names = lazy_loader.attach_stub("rlnb", file)

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"{module} has no {name!r}.{_hint(name, names)}")
        value = public(name)
        globals().pop(name, None)  # lazy_loader has made it a name of rlnb too
        return value

    return get, names_of, names


_public, _, _names = lazy_loader.attach_stub(__name__, __file__)
_FOLDERS = ("backend", "launchers", "plugin", "results", "studies")
__all__ = [name for name in _names if name not in _FOLDERS]

# Names that stood here before version 0.2 was released. Version 0.3 drops them here.
_RENAMED = {"HostedJob": "DetachedJob", "HostedLauncher": "DetachedLauncher"}
METHODS = {
    "agent": ("tasks.task", "rlnb.task(...).agent(library)"),
    "goodput": ("accounting.goodput", "run.goodput(), or rlnb.Runs(runs).goodput()"),
    "render": ("manifests.render", "run.job_script(form)"),
    "replay": ("interactive.replay", "run.replay()"),
    "task_card": ("tasks.task", "rlnb.task(...).card()"),
    "tensorboard": ("curves.tensorboard", "run.tensorboard(), or rlnb.Runs(runs).tensorboard()"),
}
"""Module of each function that stood here, and the method that takes its place."""


def __getattr__(name: str) -> Any:
    if name in __all__:
        globals()[name] = value = _public(name)
        return value
    if name in _FOLDERS:
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

    return sorted({*__all__, *_FOLDERS, *plugins.launchers()})


def _moved(name: str) -> Any:
    """Return what a name stood for that was here, with a warning that says where it is now; None for other names."""
    if name in METHODS:
        module, attribute, new = f"rlnb.{METHODS[name][0]}", name, METHODS[name][1]
    else:
        attribute = _RENAMED.get(name, name)
        module = next((one for one in map("rlnb.{}".format, _FOLDERS) if attribute in _names_of(one)), "")
        new = f"{module}.{attribute}"
    if not module:
        return None
    warnings.warn(f"rlnb.{name} is now {new}. rlnb 0.3 drops the shorter name.", FutureWarning, stacklevel=3)
    return getattr(importlib.import_module(module), attribute)


def _names_of(module: str) -> list[str]:
    names: list[str] = importlib.import_module(module).__all__
    return names


def _launcher(name: str) -> Any:
    """Return the factory of a plugin's launcher."""
    plugins = importlib.import_module("rlnb.hooks.plugins")
    known = plugins.launchers()
    if name not in known:
        hint = _hint(name, [*__all__, *_FOLDERS, *known])
        raise AttributeError(f"rlnb has no {name!r}, and no launcher of that name is installed.{hint}")
    return plugins.load(known[name].factory)


def _hint(name: str, names: list[str]) -> str:
    from rlnb.errors import did_you_mean

    return did_you_mean(name, names)


def load_ipython_extension(ipython: Any) -> None:
    """Register ``%%task`` and ``%rlnb``; called by ``%load_ext rlnb``."""
    from rlnb.notebook.magics import register_magics

    register_magics(ipython)
