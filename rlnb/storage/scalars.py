"""Python's own numbers and lists, for values that come from NumPy. Standard library only."""

from __future__ import annotations

from typing import Any


def builtin(value: Any) -> Any:
    """Return a NumPy scalar as Python's own number, and an array as a list; any other value unchanged."""
    return value.tolist() if type(value).__module__ == "numpy" and hasattr(value, "tolist") else value
