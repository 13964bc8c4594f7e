"""The arrays of a preview, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlnb.cameras.inspector import Finding

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, kw_only=True, slots=True)
class Frames:
    """Camera frames of some moments of a task."""

    task: str
    """Task id."""
    clip: Mapping[str, Mapping[str, np.ndarray]]
    """By camera, then by data type. Shape (times, envs, height, width, channels): uint8 for ``rgb``, ``rgba``
    and ``albedo``; float32 metres for ``depth`` and its kin, inf where nothing was hit; float32 for
    ``normals``, in -1 to 1; int32 ids for segmentation."""
    times_s: tuple[float, ...]
    """Simulated time of each moment since the reset: first 0, last after all steps."""
    envs: tuple[int, ...]
    """Number of each env in the arrays."""
    state: np.ndarray
    """Visible state: poses, relative to the env's origin, and joint positions. Shape (times, envs,
    values), float32, metres and radians."""
    labels: Mapping[str, Mapping[int, str]]
    """``"<camera>/<data type>"`` of a segmentation, to the label of each id."""
    ranges_m: Mapping[str, tuple[float, float]]
    """Near and far clip of each camera."""
    steps: int
    """Env steps between the first and the last moment."""
    added: bool
    """Whether the task has no camera and one was added to its scene."""
    findings: tuple[Finding, ...]
    """Faults of the pictures; empty where the inspector finds none."""
    seconds: Mapping[str, float]
    """How long the worker took: ``make`` the env, to the ``first`` frame, in ``total``."""

    @property
    def frames(self) -> dict[str, dict[str, np.ndarray]]:
        """The last moment, by camera and data type. Shape (envs, height, width, channels); dtypes as in ``clip``."""
        return {camera: {kind: clip[-1] for kind, clip in types.items()} for camera, types in self.clip.items()}

    @property
    def num_envs(self) -> int:
        """Envs in the picture."""
        return len(self.envs)
