"""The packages whose versions must match on all nodes of a training."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from importlib import metadata

from packaging.requirements import Requirement

from rlnb import Library

logger = logging.getLogger("rlnb_dask")

SIMULATION = ("rlnb", "torch", "isaaclab", "warp-lang", "newton")


def packages() -> tuple[str, ...]:
    """Return rlnb, the simulation's packages, all installed plugins, and the requirements of their RL libraries."""
    names = dict.fromkeys(SIMULATION)
    for entry in sorted(metadata.entry_points(group="rlnb")):
        if entry.dist is not None:
            names[entry.dist.name] = None
        names |= dict.fromkeys(_requirements(entry))
    return tuple(names)


def _requirements(entry: metadata.EntryPoint) -> list[str]:
    """Return the packages that a plugin's RL libraries name in ``Library.requires``."""
    try:
        libraries: Sequence[Library] = getattr(entry.load(), "rlnb_libraries", tuple)()
        return [Requirement(text).name for library in libraries for text in library.requires]
    except (Exception, SystemExit) as exc:  # a plugin broken in any way must not stop trainings that use other plugins
        logger.info("the plugin %s does not load: %s", entry.name, exc)
        return []
