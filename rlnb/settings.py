"""Settings of this process, changed by assignment: ``rlnb.options.root = "/data/rl"``."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rlnb.records.layout import Root, default_root


@dataclass(slots=True)
class Options:
    """What holds for every call of this process unless the call says otherwise."""

    root: str | Path = field(default_factory=default_root)
    """Folder of runs, task modules and task cards. RLNB_ROOT sets it from outside."""
    python: str | None = field(default_factory=lambda: os.environ.get("RLNB_PYTHON") or None)
    """Command of the worker's interpreter, e.g. ``"/opt/isaaclab/isaaclab.sh -p"``; None is this one. RLNB_PYTHON
    sets it from outside."""
    asset_root: str | None = None
    """Folder or URL of robot assets; None looks for one."""
    warm: bool = True
    """Whether a warm worker is kept for task cards, previews, evaluations and the next training."""
    display: Literal["auto", "live", "static"] = "auto"
    """Widgets for a person, pictures for papermill and nbconvert; ``auto`` finds out."""

    @property
    def folders(self) -> Root:
        """The root as its folders."""
        return Root(Path(self.root).absolute())


options = Options()
"""The settings of this process."""
