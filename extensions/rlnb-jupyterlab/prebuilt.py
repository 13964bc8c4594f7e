"""The build hook that puts the built pages into the wheel, so that its installation needs no node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT = "src/rlnb_jupyterlab/labextension"


class Prebuilt(BuildHookInterface):
    """Adds the built pages to a wheel, and refuses to make one without them; an editable install may lack them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the built pages; hatchling calls this before it makes a wheel."""
        built = Path(self.root, BUILT)
        if (built / "package.json").exists():
            parts = [part for part in built.iterdir() if part.name != "install.json"]  # which pyproject.toml adds
            names = {str(part): f"share/jupyter/labextensions/rlnb-jupyterlab/{part.name}" for part in parts}
            build_data["shared_data"] |= names
        elif version != "editable":
            raise RuntimeError(f"{BUILT} does not exist. Build it first with make extension, which needs node.")
