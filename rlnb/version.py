"""The version of rlnb, and the release line of Isaac Lab that its worker supports."""

from __future__ import annotations

__version__ = "0.2.0.dev0"
ISAACLAB = "3.0"
"""Release line of Isaac Lab. Only ``rlnb.worker.isaac`` uses its private APIs, which change between lines."""
ISAACLAB_REQUIREMENT = f"isaaclab=={ISAACLAB}.0"
"""Requirement for pip."""
