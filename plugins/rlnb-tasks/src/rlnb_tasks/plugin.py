"""The light half: what the pack holds, and what success means for stock tasks."""

from __future__ import annotations

from importlib import metadata

from rlnb import AssetPack, Task, hookimpl
from rlnb_tasks import __version__, files

PACK = "primitives"

CARTPOLE_TASKS = (
    "Isaac-Cartpole",
    "Isaac-Cartpole-Camera",
    "Isaac-Cartpole-Camera-Direct",
    "Isaac-Cartpole-Direct",
)


def pack_version() -> str:
    """Return this package's version, with newton's where it is installed: two of the files come from that wheel."""
    try:
        return f"{__version__}+newton{metadata.version('newton')}"
    except metadata.PackageNotFoundError:
        return __version__


@hookimpl
def rlnb_asset_packs() -> list[AssetPack]:
    return [AssetPack(name=PACK, version=pack_version(), build="rlnb_tasks.build:build", files=files.LICENCES)]


@hookimpl
def rlnb_tasks() -> list[Task]:
    cartpoles = [Task(id=name, success="rlnb_tasks.success:survived") for name in CARTPOLE_TASKS]
    return [*cartpoles, Task(id="Isaac-Pendulum-MARL-Direct", success="rlnb_tasks.success:balanced")]
