"""The types that calls return, for annotations and ``isinstance``. They are not made by hand.

``results.pyi`` lists the names. Each is loaded when it is first used.
"""

from __future__ import annotations

from rlnb import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__file__)
