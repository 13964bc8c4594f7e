"""What the debugger shows of a reset or a step of an env."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlnb.display.table import cell, table
from rlnb.tasks.debug import EnvData

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class EnvStep(Mapping[str, "np.ndarray"]):
    """What an env returned from a reset or a step: arrays by name.

    The names are ``"observations/<group>"``, ``"rewards"`` (float, of shape (num_envs,)), ``"terminated"`` and
    ``"truncated"`` (bool, of shape (num_envs,)), and ``"terms/<name>"`` (float, of shape (num_envs,), weighted and per
    second) in a manager-based env. In a task with several agents, the name of the agent follows the first three. A
    reset returns observations only.
    """

    arrays: Mapping[str, np.ndarray]
    """The arrays by name."""
    log: Mapping[str, float]
    """Values that the env has logged (``extras["log"]``)."""

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def _rows(self) -> list[list[str]]:
        rows = []
        for name, array in self.arrays.items():
            numbers = (array.min(), array.mean(), array.max()) if array.size else ()
            rows.append([name, " x ".join(map(str, array.shape)), *(cell(float(number)) for number in numbers)])
        return rows

    def __repr__(self) -> str:
        return "\n".join(["EnvStep", *("  ".join(row) for row in self._rows())])

    def _repr_html_(self) -> str:
        logged = table(("logged", ""), [(name, cell(value)) for name, value in self.log.items()]) if self.log else ""
        return table(("name", "shape", "min", "mean", "max"), self._rows()) + logged


def step_of(data: EnvData) -> EnvStep:
    return EnvStep(arrays=arrays_of(data.file), log=data.log)


def arrays_of(file: str) -> dict[str, np.ndarray]:
    """Read the arrays of an npz file, and delete the file."""
    import numpy as np

    with np.load(file, allow_pickle=False) as archive:
        arrays = dict(archive)
    os.unlink(file)
    return arrays
