"""The packages whose versions must match on all nodes of a training."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import InvalidRequirement, Requirement

import rlnb

logger = logging.getLogger("rlnb_dask")

SIMULATION = ("rlnb", "torch", "isaaclab", "warp-lang", "newton")


def packages() -> tuple[str, ...]:
    """Return rlnb, the simulation's packages, all installed plugins, and the requirements of their RL libraries."""
    entries = sorted(metadata.entry_points(group="rlnb"))
    plugins = [entry.dist.name for entry in entries if entry.dist is not None]
    return tuple(dict.fromkeys([*SIMULATION, *plugins, *_requirements()]))


def modules() -> tuple[str, ...]:
    """Return the names, as they are imported, of rlnb and of its own plugins that are installed.

    A plugin of the user's may be part of a large project, whose sources would take long to read.
    """
    roots = (entry.value.partition(":")[0].partition(".")[0] for entry in metadata.entry_points(group="rlnb"))
    return ("rlnb", *sorted({root for root in roots if root.startswith("rlnb_")}))


def _requirements() -> Iterator[str]:
    """Yield the packages that RL libraries name in ``Library.requires``."""
    for library in rlnb.libraries().values():
        for text in library.requires:
            try:
                yield Requirement(text).name
            except InvalidRequirement as exc:  # of one library; it must not stop trainings with another
                logger.info("the requirement %r of the library %s cannot be read: %s", text, library.name, exc)
