"""Writes the packs. Needs pxr, newton and isaaclab, so it runs in the worker's interpreter."""

from __future__ import annotations

import hashlib
from importlib import metadata
from pathlib import Path

import newton_usd_schemas  # noqa: F401  - USD reads its list of schemas once per process; converted robots use these

from rlnb_tasks import __version__, cartpole, dex_cube, files, newton_robots, props


def primitives(folder: Path) -> dict[str, str]:
    """Write cart-poles, ant, humanoid and what stands around them below an asset root.

    The same versions of this package, newton and USD give the same bytes.

    Returns:
        What each file was made from, by its path.

    Raises:
        RlnbError: newton is not installed, or its files are not as this package knows them.
    """
    cartpole.write(folder)
    props.write(folder)
    dex_cube.write(folder)
    newton_robots.write(folder)
    made_from = {path: newton_robots.source(path) for path in files.FROM_NEWTON}
    return {
        **dict.fromkeys(files.AUTHORED, f"rlnb-tasks {__version__}"),
        **{
            path: f"newton {metadata.version('newton')}: newton/examples/assets/{file.name} (sha256 {_sha256(file)})"
            for path, file in made_from.items()
        },
    }


def hands(folder: Path) -> dict[str, str]:
    """Write the Shadow Hand below an asset root.

    Returns:
        What it was made from, by its path.

    Raises:
        RlnbError: isaaclab is not installed, or its files are not as this package knows them.
    """
    from rlnb_tasks import shadow_hand

    shadow_hand.write(folder)
    taken = f"{shadow_hand.SOURCE} (sha256 {shadow_hand.SOURCE_SHA256})"
    return {files.SHADOW_HAND: f"isaaclab {metadata.version('isaaclab')}: {taken}"}


def robots(folder: Path) -> dict[str, str]:
    """Write Unitree's Go2 and Franka Emika's Panda below an asset root.

    Returns:
        What each file was made from, by its path.

    Raises:
        RlnbError: The packages that they are made with and from are not installed.
    """
    from rlnb_tasks import urdf_robots

    return urdf_robots.write(folder)


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
