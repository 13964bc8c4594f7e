"""The version of rlnb, and the release line of Isaac Lab that its worker supports."""

from __future__ import annotations

__version__ = "0.2.0.dev0"
ISAACLAB = "3.0"
"""Release line of Isaac Lab. Private APIs change between lines; only ``rlnb.worker.isaac`` uses them."""
ISAACLAB_REQUIREMENT = f"isaaclab=={ISAACLAB}.0"
"""Isaac Lab as a pip requirement."""
