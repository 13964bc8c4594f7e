"""Too small a buffer of the physics solver, through which a training loses contacts: one JSON file for each rank."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.storage import files
from rlnb.storage.serial import from_json, to_json

CONSTRAINTS, CONTACTS = "njmax", "nconmax"
"""Limits in Isaac Lab's config of MuJoCo Warp's solver."""
STEP = 64
"""Suggested sizes are multiples of this number."""
SPARE = 1.25
"""Factor by which a suggested size exceeds the largest need that was seen."""
SETTING = "sim.physics.solver_cfg"
"""Path of the solver's settings in the config of an env."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shortage:
    """A limit of the physics solver that the contacts or constraints of some envs exceed."""

    limit: str
    """Name of the limit in Isaac Lab's config of the solver, e.g. ``"njmax"``."""
    size: int
    """Size of the buffer, per env."""
    needed: int
    """Least size that would have been enough, as far as it was seen."""
    envs: int
    """Largest number of envs that exceeded the limit in one look."""
    num_envs: int
    """Number of envs of the rank."""

    @property
    def what(self) -> str:
        """The shortage with its numbers, in a sentence."""
        if self.limit == CONSTRAINTS:
            return (
                f"The physics solver dropped constraints in {self.envs} of {self.num_envs} envs, because an env needed "
                f"at least {self.needed} and njmax is {self.size}. Bodies can pass through each other."
            )
        return (
            f"The physics solver dropped contacts. All envs share a buffer of {self.limit}={self.size} for each env, "
            f"and the mean need of an env was at least {self.needed}. Bodies can pass through each other."
        )

    @property
    def fix(self) -> str:
        """The size to try, as an override of the task."""
        size = -(-int(max(self.needed, self.size) * SPARE) // STEP) * STEP
        return f'Use overrides={{"{SETTING}.{self.limit}": {size}}}, or set it in the task.'

    def joined(self, other: Shortage) -> Shortage:
        """Return the larger needs of two looks at the same limit."""
        return Shortage(
            limit=self.limit,
            size=self.size,
            needed=max(self.needed, other.needed),
            envs=max(self.envs, other.envs),
            num_envs=self.num_envs,
        )


def write(path: Path, shortages: Iterable[Shortage]) -> None:
    """Write the shortages of a rank, in place of earlier ones."""
    text = json.dumps({shortage.limit: to_json(shortage) for shortage in shortages})
    files.write_bytes(path, text.encode())


def read(paths: Iterable[Path]) -> tuple[Shortage, ...]:
    """Return the shortages in the files of all ranks, one for each limit. A damaged file is skipped."""
    shortages: dict[str, Shortage] = {}
    for path in paths:
        try:
            values = files.read_json(path) or {}
            shortages_of_rank = [
                from_json(Shortage, value, ignore_unknown=True)
                for value in values.values()
                if isinstance(value, Mapping)
            ]
        except RlnbError:
            continue
        for shortage in shortages_of_rank:
            shortages[shortage.limit] = shortage.joined(shortages.get(shortage.limit, shortage))
    return tuple(shortages.values())
