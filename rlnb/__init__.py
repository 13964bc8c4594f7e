"""rlnb: reinforcement learning of robots with NVIDIA Isaac Lab, from a notebook.

Importing ``rlnb`` does no work. The public names are listed in ``__init__.pyi``; each one is loaded when it is first
used. The launchers of plugins are attributes too: ``rlnb.slurm(...)``.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import lazy_loader

_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name in __all__:
        globals()[name] = value = _public(name)
        return value
    if name.startswith("_") or importlib.util.find_spec(f"rlnb.{name}"):
        raise AttributeError(name)  # for a submodule, the import system then loads it
    return _launcher(name)


def _launcher(name: str) -> Any:
    """Return the factory of a plugin's launcher."""
    plugins = importlib.import_module("rlnb.hooks.plugins")
    known = plugins.launchers()
    if name not in known:
        from rlnb.errors import did_you_mean

        hint = did_you_mean(name, [*__all__, *known])
        raise AttributeError(f"rlnb has no {name!r}, and no launcher of that name is installed.{hint}")
    return plugins.load(known[name].factory)


def load_ipython_extension(ipython: Any) -> None:
    """Register ``%%task`` and ``%rlnb``; called by ``%load_ext rlnb``."""
    from rlnb.notebook.magics import register_magics

    register_magics(ipython)
