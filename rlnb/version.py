"""The version of rlnb, and the releases of Isaac Lab that its worker can use."""

from __future__ import annotations

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
