"""The arrays of a preview and their meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlnb.cameras.inspector import Finding
from rlnb.tasks.aim import Aim
from rlnb.tasks.requests import TaskFinding

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, kw_only=True, slots=True)
class Frames:
    """Camera frames of a task at some moments."""

    task: str
    """Task id."""
    clip: Mapping[str, Mapping[str, np.ndarray]]
    """Frames by camera, then by data type. Shape (times, envs, height, width, channels). uint8 for ``rgb``, ``rgba``
    and ``albedo``; float32 metres for the depth types, inf where nothing was hit; float32 in -1 to 1 for
    ``normals``; int32 ids for segmentation."""
    times_s: tuple[float, ...]
    """Simulated time of each moment since the reset, in seconds. The first is 0."""
    envs: tuple[int, ...]
    """Index in the task of each env in the arrays."""
    state: np.ndarray
    """Poses relative to the env's origin, and joint positions. Shape (times, envs,
    values), float32, metres and radians."""
    labels: Mapping[str, Mapping[int, str]]
    """Label of each segmentation id, by ``"<camera>/<data type>"``."""
    ranges_m: Mapping[str, tuple[float, float]]
    """Near and far clipping distance of each camera, in metres."""
    noisy: tuple[str, ...] = ()
    """Names of the cameras with an RTX renderer. The noise in their colours can hide faults from the inspector."""
    steps: int
    """Number of env steps between the first and the last moment."""
    added: bool
    """Whether a camera was added to the scene because the task has none."""
    place: Aim | None = None
    """Eye and target of an added camera in the frame of the first env, in metres, at the last moment. They are values
    for ``eye=`` and ``target=``."""
    findings: tuple[Finding, ...]
    """Faults that the inspector found in the pictures."""
    task_findings: tuple[TaskFinding, ...] = ()
    """Mistakes in what the env returned: shapes, values that are not finite, rewards, episodes that end at once."""
    seconds: Mapping[str, float]
    """Seconds that the worker took to ``make`` the env, until the ``first`` frame, and in ``total``."""

    @property
    def frames(self) -> dict[str, dict[str, np.ndarray]]:
        """Frames of the last moment, by camera and data type.

        Shape (envs, height, width, channels); dtypes as in ``clip``.
        """
        return {camera: {kind: clip[-1] for kind, clip in types.items()} for camera, types in self.clip.items()}

    @property
    def num_envs(self) -> int:
        """Number of envs in the arrays."""
        return len(self.envs)
