"""Settings of this process. Assignment changes them: ``rlnb.options.root = "/data/rl"``."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass
class Root:
    """The folder that holds runs, task modules and cached task cards."""

    path: Path
    """The folder itself."""
    runs: Path = field(init=False)
    """Folders of runs."""
    tasks: Path = field(init=False)
    """Modules of ``%%task`` cells."""
    cards: Path = field(init=False)
    """Cached task cards."""
    sweeps: Path = field(init=False)
    """Journals of sweeps, one file for each sweep."""

    def __post_init__(self) -> None:
        self.runs, self.tasks = self.path / "runs", self.path / "tasks"
        self.cards, self.sweeps = self.path / "cards", self.path / "sweeps"


def default_root() -> Path:
    """Return the folder in the variable ``RLNB_ROOT``, else ``./rlnb-runs``, as an absolute path."""
    return Path(os.environ.get("RLNB_ROOT") or "rlnb-runs").absolute()


@dataclass(slots=True)
class Options:
    """Defaults of this process. An argument of a call takes precedence over them."""

    root: str | Path = field(default_factory=default_root)
    """Folder of runs, task modules and task cards. The environment variable ``RLNB_ROOT`` sets the default."""
    python: str | None = field(default_factory=lambda: os.environ.get("RLNB_PYTHON") or None)
    """Command of the worker's interpreter, e.g. ``"/opt/isaaclab/isaaclab.sh -p"``; None is the interpreter of this
    process. The environment variable ``RLNB_PYTHON`` sets the default."""
    imports: str | Sequence[str] = field(
        default_factory=lambda: tuple(filter(None, os.environ.get("RLNB_IMPORTS", "").replace(",", " ").split()))
    )
    """Modules that register tasks when they are imported, e.g. ``"my_project.tasks"``, for packages without an
    entry point in the group ``isaaclab.tasks``. The environment variable ``RLNB_IMPORTS`` sets the default; commas
    separate its modules."""
    asset_root: str | None = None
    """Folder or URL of robot assets; None searches for one (see ``rlnb assets``)."""
    warm: bool = True
    """Whether to keep a warm simulator for task cards, previews, evaluations and the next training."""
    warm_idle_s: float | None = 1800.0
    """Seconds without a request after which the warm simulator of a machine with NVIDIA GPUs ends, so that others can
    use its GPU memory; None means never. The next request starts a fresh one."""
    simulator: object | None = None
    """Launcher whose job holds the warm simulator, e.g. ``rlnb.slurm(gpus_per_node=1)``; None is this machine. Task
    cards, previews, tuning, views, evaluations and exports then use that job; see :func:`rlnb.simulator`."""
    team: bool = field(default_factory=lambda: os.environ.get("RLNB_TEAM") == "1")
    """Whether everybody who can write :attr:`root` is trusted: what they put there may be executed. The environment
    variable ``RLNB_TEAM=1`` turns it on."""
    display: Literal["auto", "live", "static"] = "auto"
    """How results are shown. ``"live"`` shows widgets, ``"static"`` shows pictures, e.g. for papermill and nbconvert,
    and ``"auto"`` chooses by the front end."""

    @property
    def folders(self) -> Root:
        """The folders below :attr:`root`."""
        return Root(Path(self.root).absolute())

    @property
    def compare_physics(self) -> bool:
        """Always False. An assignment has no effect: rlnb no longer compares physics engines."""
        return False

    @compare_physics.setter
    def compare_physics(self, _: bool) -> None:
        warnings.warn(
            "rlnb.options.compare_physics has no effect any more. Remove the assignment.", FutureWarning, stacklevel=2
        )


options = Options()
"""The settings of this process, an instance of :class:`Options`."""
