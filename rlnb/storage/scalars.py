"""Python's own numbers and lists, for values that come from NumPy. Standard library only."""

from __future__ import annotations

from typing import Any


def builtin(value: Any) -> Any:
    """Return a NumPy scalar as Python's own number, and an array as a list; any other value unchanged."""
    return value.tolist() if type(value).__module__ == "numpy" and hasattr(value, "tolist") else value


def whole(value: Any) -> Any:
    """Return a number as a Python int if it is whole, also one from NumPy, such as ``np.float64(9.0)``.

    Any other value is returned unchanged, for the check of the argument to refuse.
    """
    number = builtin(value)
    return int(number) if isinstance(number, float) and number.is_integer() else number
