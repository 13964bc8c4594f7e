"""Settings of this process, changed by assignment: ``rlnb.options.root = "/data/rl"``."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass
class Root:
    """The folder that holds runs, task modules and cached task cards."""

    path: Path
    runs: Path = field(init=False)
    tasks: Path = field(init=False)
    """Modules of ``%%task`` cells."""
    cards: Path = field(init=False)
    """Cached task cards."""
    sweeps: Path = field(init=False)
    """Storage of Optuna, one file for each sweep."""

    def __post_init__(self) -> None:
        self.runs, self.tasks = self.path / "runs", self.path / "tasks"
        self.cards, self.sweeps = self.path / "cards", self.path / "sweeps"


def default_root() -> Path:
    """Return RLNB_ROOT, else ``./rlnb-runs``, as an absolute path."""
    return Path(os.environ.get("RLNB_ROOT") or "rlnb-runs").absolute()


@dataclass(slots=True)
class Options:
    """Defaults of this process. An argument of a call takes precedence."""

    root: str | Path = field(default_factory=default_root)
    """Folder of runs, task modules and task cards. The variable RLNB_ROOT sets the default."""
    python: str | None = field(default_factory=lambda: os.environ.get("RLNB_PYTHON") or None)
    """Command of the worker's interpreter, e.g. ``"/opt/isaaclab/isaaclab.sh -p"``; None is this
    process's own. The variable RLNB_PYTHON sets the default."""
    asset_root: str | None = None
    """Folder or URL of robot assets; None searches for one."""
    warm: bool = True
    """Whether a living simulator is kept for task cards, previews, evaluations and the next training."""
    display: Literal["auto", "live", "static"] = "auto"
    """``"live"`` shows widgets to a user, ``"static"`` pictures for papermill and nbconvert; ``"auto"`` decides."""

    @property
    def folders(self) -> Root:
        """The root as its folders."""
        return Root(Path(self.root).absolute())


options = Options()
"""The settings of this process."""
