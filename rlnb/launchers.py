"""For authors of launchers and of front ends: the contract, the base classes, and the runs of a folder.

``launchers.pyi`` lists the names. Each is loaded when it is first used.
"""

from __future__ import annotations

from rlnb import _lazy_names

__getattr__, __dir__, __all__ = _lazy_names(__name__, __file__)
