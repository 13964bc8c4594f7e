"""The version of rlnb, the names that end with it, and the releases of Isaac Lab that its worker can use."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
__version__ = "0.2.0.dev0"
ISAACLAB = "3.0"
"""Release line of Isaac Lab that rlnb is tested with. Private APIs change between lines."""
ISAACLAB_MAJOR = "3"
"""Major version of Isaac Lab that the worker can use. Its other release lines get a warning."""
PACKAGES = (
    "rlnb",
    "isaaclab",
    "isaacsim",
    "torch",
    "warp-lang",
    "newton",
    "mujoco-warp",
    "ovphysx",
    "ovstage",
    "gymnasium",
    "numpy",
)
"""Packages of the worker whose versions can affect a result or a task card."""
ISAACLAB_REQUIREMENT = f"isaaclab=={ISAACLAB}.0"
"""Isaac Lab as a pip requirement."""
ISAACLAB_IMPORTERS = (
    *("isaacsim-asset-isolated==6.2.0.0", "isaacsim-robot-schema==6.2.0.0", "usd-optimize==1.1.0"),
    *("mujoco-usd-converter==0.6.1", "urdf-usd-converter==0.3.4", "tinyobjloader==2.0.0rc13"),
)
"""What Isaac Lab needs to import URDF and MJCF files, to be installed with ``--no-deps``. Its extra ``importers`` for
that cannot be installed: in 3.0.0, it needs another version of usd-exchange than Isaac Lab itself."""


def belongs_to(version: str, line: str) -> bool:
    """Return whether a version is part of a release line, as ``3.0.4.post1`` is of ``3.0`` and of ``3``."""
    return f"{version}.".startswith(f"{line}.")


def untested(isaaclab: str) -> str:
    """Return a warning about a version of Isaac Lab that rlnb was not tested with; an empty string if it was.

    Args:
        isaaclab: Installed version; an empty string without Isaac Lab.
    """
    if not isaaclab or belongs_to(isaaclab, ISAACLAB):
        return ""
    return (
        f"isaaclab {isaaclab} is not a release that rlnb {__version__} is tested with. Use isaaclab {ISAACLAB}.0. With "
        "another 3.x, a call fails if a part that it needs has changed, and its error names the part."
    )


# -- old names -------------------------------------------------------------------------------------------------------


def deprecated(old: str, new: str, *, stacklevel: int = 2) -> None:
    """Warn that an old name is used.

    Args:
        old: The name, such as ``"rlnb.Preview"``.
        new: What to use in its place.
        stacklevel: As in :func:`warnings.warn`, seen from the caller.
    """
    text = f"rlnb: use {new} in place of {old}, which works until version 0.3."
    warnings.warn(text, FutureWarning, stacklevel=stacklevel + 1)


def renamed(**names: str) -> Callable[[Callable[Parameters, Returned]], Callable[Parameters, Returned]]:
    """Let a function take arguments by their old names too, with a warning.

    Args:
        names: New name of each argument by its old one.
    """

    def decorate(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
        @functools.wraps(function)
        def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
            for old in sorted(names.keys() & kwargs.keys()):
                if names[old] in kwargs:
                    raise TypeError(f"{old}= and {names[old]}= are the same argument.")
                deprecated(f"{old}=", f"{names[old]}=")
                kwargs[names[old]] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate
