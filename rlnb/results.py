"""The types that calls return, for annotations and ``isinstance``. They are not made by hand.

``results.pyi`` lists the names. Each is loaded when it is first used.
"""

from __future__ import annotations

from rlnb import _lazy_names

__getattr__, __dir__, __all__ = _lazy_names(__name__, __file__)
