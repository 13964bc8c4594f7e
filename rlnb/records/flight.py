"""The record of the steps before a value that was not finite: a JSON file, and an npz file with the values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rlnb.errors import RlnbError
from rlnb.storage import entries, files
from rlnb.storage.serial import from_json

if TYPE_CHECKING:
    import numpy as np

ALERT: Final = "alert"
"""Kind of a record that was written for an alert."""
FLIGHT, VALUES, REPLAY = "flight.json", "flight.npz", "replay.npz"


@dataclass(frozen=True, kw_only=True, slots=True)
class Flight:
    """The first value of a training that was not finite, and where the steps before it are."""

    what: str
    """The value in words, with its env and step."""
    kind: str
    """``"state"``, ``"action"``, ``"term"`` (of the reward), ``"observation"``, ``"reward"``, or ``"alert"`` for the
    steps before an alert."""
    name: str
    """Name of the quantity, the reward term, or the group of observations; empty for actions and rewards."""
    label: str
    """Name of the joint or of the observation term; empty if the values have no names."""
    index: int
    """Index of the value in the quantity."""
    env: int
    """Number of the env."""
    step: int
    """Env step of this job, from 0."""
    iteration: int | None
    """Learning iteration; None before the first."""
    fatal: bool = True
    """Whether the training has ended because of the value."""
    first_step: int
    """Step of the first row of the arrays."""
    replay_from: int | None = None
    """First step that :meth:`rlnb.Run.replay` can repeat; None if it can repeat none."""
    seed: int | None = None
    """Seed of the env."""
    num_envs: int = 0
    """Number of envs that were stepped."""
    envs: tuple[int, ...] = ()
    """Number of the env of each row of the arrays. A record of very many envs has the first ones and :attr:`env`."""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Name of each value of an array, by the array's name."""
    folder: str = ""
    """Folder of the record, as the reader found it."""

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The values of the recorded steps by name, such as ``"state/robot.joint_pos"``, ``"observation/policy"``,
        ``"term/alive"``, ``"action"`` and ``"reward"``.

        Each has the shape (steps, envs, values), with the envs in :attr:`envs`. States are those before the step,
        everything else is of the step.
        """
        return self._loaded(VALUES)

    @property
    def replay(self) -> dict[str, np.ndarray]:
        """The values from which the steps are repeated, which are a snapshot of the env, actions and random numbers."""
        return self._loaded(REPLAY)

    def _loaded(self, name: str) -> dict[str, np.ndarray]:
        import numpy as np

        with files.open_regular(Path(self.folder) / name) as file, np.load(file, allow_pickle=False) as archive:
            return dict(archive)


def write(folder: Path, flight: Flight, arrays: Mapping[str, np.ndarray], replay: Mapping[str, np.ndarray]) -> Path:
    """Write a record into a folder, in place of an earlier one; return the path of its values.

    Args:
        folder: The folder.
        flight: The record.
        arrays: Values of the recorded steps.
        replay: Values from which the steps are repeated.
    """
    import numpy as np

    files.make_folder(folder)
    for name, values in ((REPLAY, replay), (VALUES, arrays)):
        path = folder / name
        with entries.open_to_change(part := path.with_suffix(".part")) as file:
            file.truncate()
            np.savez_compressed(file, **values)  # type: ignore[arg-type]
        entries.rename(part, path.name)
    entries.remove(folder / FLIGHT)
    files.write_once(folder / FLIGHT, flight)
    return path


def read(folder: Path) -> Flight | None:
    """Return the record in a folder; None if there is none, or it is damaged."""
    try:
        values = files.read_json(folder / FLIGHT)
        return None if values is None else from_json(Flight, {**values, "folder": str(folder)}, ignore_unknown=True)
    except RlnbError:
        return None
