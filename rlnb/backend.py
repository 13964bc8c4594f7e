"""Protocols and functions for the backend of an RL library, the half of a plugin that runs in the worker.

A backend implements :class:`Backend`. The functions save and restore the state in a checkpoint, and export a policy.
They import torch, so each is loaded when it is first used. ``backend.pyi`` lists the names.
"""

from __future__ import annotations

from rlnb import _lazy_names

__getattr__, __dir__, __all__ = _lazy_names(__name__, __file__)
