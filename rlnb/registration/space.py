"""The space of an observation or of an action, for a process without gymnasium."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SpaceKind = Literal["box", "discrete", "multi_discrete", "dict", "tuple"]
_NAMES: Mapping[SpaceKind, str] = {
    "box": "a Box",
    "discrete": "a Discrete",
    "multi_discrete": "a MultiDiscrete",
    "dict": "a Dict",
    "tuple": "a Tuple",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Space:
    """A gymnasium space."""

    kind: SpaceKind
    """The class of the space."""
    shape: tuple[int, ...] | None = None
    """Shape of a Box, without the envs; None for other spaces, and for a Box whose shape only the env itself knows."""
    parts: Mapping[str, Space] = field(default_factory=dict)
    """Spaces in a Dict or a Tuple, by key or index."""

    @property
    def is_picture(self) -> bool:
        """Whether the space is a Box of pictures, of the shape (channels, height, width) or (height, width, channels).

        Isaac Lab's own tasks have the first one, and its ``mdp.image`` returns the second.
        """
        return self.shape is not None and len(self.shape) == 3

    @property
    def channels_last(self) -> bool:
        """Whether a picture has its channels in the last dimension, which is then smaller than the first."""
        return self.is_picture and self.shape is not None and self.shape[2] < self.shape[0]

    def __str__(self) -> str:
        """Return a description for people, such as "a picture of the shape (64, 64, 3)"."""
        if self.is_picture:
            return f"a picture of the shape {self.shape}"
        return _NAMES[self.kind] if self.shape is None else f"{_NAMES[self.kind]} of the shape {self.shape}"


Spaces = Mapping[str, Space]
"""Spaces of the observation groups of an env, by the group's name."""
