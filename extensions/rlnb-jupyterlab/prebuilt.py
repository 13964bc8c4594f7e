"""Puts the built pages into the wheel, so that nobody needs node to install it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT = "src/rlnb_jupyterlab/labextension"


class Prebuilt(BuildHookInterface):
    """Adds them, and refuses to make a wheel without; an editable install may do with the server's part."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Be called before a wheel is made."""
        built = Path(self.root, BUILT)
        if (built / "package.json").exists():
            build_data["shared_data"][str(built)] = "share/jupyter/labextensions/rlnb-jupyterlab"
        elif version != "editable":
            raise RuntimeError(f"{BUILT} is not there. Build it first: make extension (it needs node).")
