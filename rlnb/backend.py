"""What the backend of an RL library needs: the half of a plugin that runs in the worker.

A backend implements :class:`Backend`. The functions save and restore what a checkpoint holds, and write a policy for
deployment. They import torch, so each loads when it is first used; the list is in ``backend.pyi``.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub("rlnb", __file__)
