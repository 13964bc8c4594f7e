"""For authors of plugins: the hooks, what a plugin registers, and the records that it receives.

``plugin.pyi`` lists the names. Each is loaded when it is first used, so that a plugin's import stays quick.
"""

from __future__ import annotations

from rlnb import _lazy_names

__getattr__, __dir__, __all__ = _lazy_names(__name__, __file__)
