"""The hooks that need no heavy imports: the asset packs, and success for stock tasks."""

from __future__ import annotations

from importlib import metadata

from rlnb import Task
from rlnb.plugin import AssetPack, hookimpl
from rlnb_tasks import __version__, files

START_STATE_TASKS = (
    "Isaac-Lift-Franka",
    "Isaac-Lift-KukaAllegro",
    "Isaac-Lift-KukaAllegro-Camera",
    "Isaac-Reorient-KukaAllegro",
    "Isaac-Reorient-KukaAllegro-Camera",
)
"""Stock tasks that log the success rate of a bank of start states, not of episodes."""
LAYOUT = 3
"""Number of the way in which the robots' files are written, so that those of an earlier one are built again."""


@hookimpl
def rlnb_asset_packs() -> list[AssetPack]:
    return [
        AssetPack(
            name="primitives", version=_with("newton"), build="rlnb_tasks.build:primitives", files=files.PRIMITIVES
        ),
        AssetPack(name="hands", version=_with("isaaclab"), build="rlnb_tasks.build:hands", files=files.HANDS),
        AssetPack(
            name="robots",
            version=f"{_with('example-robot-data')}-{LAYOUT}",
            build="rlnb_tasks.build:robots",
            files=files.ROBOTS,
            on_request=True,
        ),
    ]


def _with(package: str) -> str:
    """Return this package's version, plus the version of the package that a pack's files come from, if installed."""
    try:
        return f"{__version__}+{package}{metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return __version__


@hookimpl
def rlnb_tasks() -> list[Task]:
    return [Task(id=name, success="rlnb_tasks.success:reached") for name in START_STATE_TASKS]
