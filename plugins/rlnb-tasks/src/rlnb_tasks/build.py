"""Builds the asset packs. Needs pxr, newton and isaaclab, and so runs in the worker's interpreter."""

from __future__ import annotations

import hashlib
from importlib import metadata
from pathlib import Path

import newton_usd_schemas  # noqa: F401  - import before USD reads its list of schemas, once per process; converted robots use these

from rlnb_tasks import __version__, cartpole, dex_cube, files, newton_robots, props


def primitives(folder: Path) -> dict[str, str]:
    """Write the cart-poles, ant, humanoid, cube, ground, sky and markers below an asset root.

    The same versions of this package, newton and USD give the same bytes.

    Returns:
        The source of each file, by the file's path.

    Raises:
        RlnbError: newton is not installed, or its files differ from those that this package supports.
    """
    cartpole.write(folder)
    props.write(folder)
    dex_cube.write(folder)
    newton_robots.write(folder)
    sources = {path: newton_robots.source(path) for path in files.FROM_NEWTON}
    return {
        **dict.fromkeys(files.AUTHORED, f"rlnb-tasks {__version__}"),
        **{
            path: f"newton {metadata.version('newton')}: newton/examples/assets/{file.name} (sha256 {_sha256(file)})"
            for path, file in sources.items()
        },
    }


def hands(folder: Path) -> dict[str, str]:
    """Write the Shadow Hand below an asset root.

    Returns:
        The hand's source, by its path.

    Raises:
        RlnbError: isaaclab is not installed, or its stage differs from the one that this package supports.
    """
    from rlnb_tasks import shadow_hand

    shadow_hand.write(folder)
    source = f"{shadow_hand.SOURCE} (sha256 {shadow_hand.SOURCE_SHA256})"
    return {files.SHADOW_HAND: f"isaaclab {metadata.version('isaaclab')}: {source}"}


def robots(folder: Path) -> dict[str, str]:
    """Write Unitree's Go2 and Franka Emika's Panda below an asset root.

    Returns:
        The source of each file, by the file's path.

    Raises:
        RlnbError: The packages with the robots or their converter are not installed.
    """
    from rlnb_tasks import urdf_robots

    return urdf_robots.write(folder)


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
