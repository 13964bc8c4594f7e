"""The role of a rank, for a library whose ranks do different work, such as one learner and several actors."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Role:
    """The work of some ranks of a training, and what they need for it.

    Ranks of one role end with equal parameters, which rlnb compares, and have a process group of their own.
    """

    name: str
    """Name of the role, of letters, digits, ``_`` and ``-``, e.g. ``"actor"``."""
    env: bool = True
    """Whether its ranks step envs. The other ranks load no simulator."""
    cpu: bool = False
    """Whether its ranks stay on the CPU if the training uses GPUs."""
