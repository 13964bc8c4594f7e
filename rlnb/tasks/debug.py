"""Requests of the debugger, which keeps an env open and steps it one call at a time.

Their answers may wait for minutes at a breakpoint, so they have no time limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from rlnb.tasks.aim import FREE, Aim
from rlnb.tasks.request import ActingRequest, Request, TaskRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvData:
    """What an env returned from a reset or a step."""

    file: str
    """Path of an npz file with an array for each observation, the rewards, the ends and the reward terms."""
    log: Mapping[str, float] = field(default_factory=dict)
    """Values that the env has logged."""
    missing: tuple[str, ...] = ()
    """Variables of a snapshot that the env of a replay does not have."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """A value of an env."""

    file: str = ""
    """Path of an npz file with the array ``value``; empty for a value that is no array."""
    text: str = ""
    """The ``repr`` of a value that is no array."""
    names: tuple[str, ...] = ()
    """Names of the parts of a value that is no array."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Address of a server of the simulator."""

    port: int
    """Port on the worker's loopback interface."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Debug(ActingRequest[EnvData]):
    """Make an env that stays open until another request makes one, and reset it."""

    limit_s: ClassVar[float] = math.inf

    out: str
    """Folder for npz files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Replay(TaskRequest[EnvData]):
    """Make the env of a training as it was at the first recorded step. :class:`Step` repeats the recorded steps."""

    limit_s: ClassVar[float] = math.inf

    run: str
    """Folder of the run."""
    flight: str
    """Folder of the record."""
    device: str
    """As in :class:`rlnb.spec.Resources`."""
    out: str
    """Folder for npz files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reset(Request[EnvData]):
    """Reset the env of the debugger."""

    limit_s: ClassVar[float] = math.inf

    seed: int | None = None
    """Seed of the env; None goes on with its random numbers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step(Request[EnvData]):
    """Step the env of the debugger."""

    limit_s: ClassVar[float] = math.inf

    steps: int = 1
    """Number of steps."""
    actions: tuple[tuple[float, ...], ...] | None = None
    """Actions of each env, of shape (num_envs, actions); None takes those of the :class:`Debug` request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Read(Request[Reading]):
    """Read a value of the debugger's env."""

    limit_s: ClassVar[float] = math.inf

    path: str
    """Dotted path below the env, such as ``"robot.data.joint_pos"``; an empty text is the env itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture(Request[Reading]):
    """Take a picture of some envs of the debugger: arrays ``<camera>/rgb``, each of shape (envs, height, width, 3)."""

    limit_s: ClassVar[float] = math.inf

    envs: tuple[int, ...]
    """Numbers of the envs."""
    size: tuple[int, int]
    """Width and height of the picture of an env, in pixels, if the task has no camera."""
    aim: Aim = FREE
    """Place of the camera, if the task has none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listen(Request[Address]):
    """Let a debugger attach to the simulator."""

    token: str = ""
    """Secret that the debugger has to send first; empty for the debugger of an editor, which has none."""
