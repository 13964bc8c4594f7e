"""The task card: what a task is made of, as the worker tells the kernel, which cannot import the task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rlnb.spec import Json

Kind = Literal["bool", "int", "float", "str", "list", "any"]
"""Type of a config value; ``any`` where the config's own value, None, leaves it open."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfigField:
    """One value of an env config or an agent config."""

    type: Kind
    value: Json = None
    """The config's own value; what JSON cannot hold is its ``repr``."""


Fields = Mapping[str, ConfigField]
"""The values of a config, by dotted path."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CameraCard:
    """A camera of a task."""

    data_types: tuple[str, ...] = ()
    """Isaac Lab's names of its outputs."""
    width: int
    """Pixels."""
    height: int
    """Pixels."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentCard:
    """The agent config of one RL library for a task."""

    fields: Fields = field(default_factory=dict)
    takes_more: tuple[str, ...] = ()
    """Groups that are dicts, to which values can be added; "" is the whole config."""
    missing: tuple[str, ...] = ()
    """Requirements of the library that the worker's interpreter does not meet."""
    error: str = ""
    """Reason why the config does not load; empty where it does."""

    @property
    def usable(self) -> bool:
        """Whether the library can train the task in the worker's interpreter."""
        return not self.error and not self.missing


@dataclass(frozen=True, kw_only=True, slots=True)
class Asset:
    """A robot or scene file that a task needs."""

    path: str
    """Path or URL."""
    exists: bool | None
    """Whether it is there; None for a remote file, which is not looked up."""
    fix: str = ""
    """Command that brings a missing file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AssetRoot:
    """Where assets come from, and why."""

    path: str = ""
    """Folder or URL, without a slash at the end."""
    reason: str = ""
    """The rule that chose it."""

    @property
    def local(self) -> bool:
        """Whether it is a folder of the worker's machine."""
        return "://" not in self.path


@dataclass(frozen=True, kw_only=True, slots=True)
class Selectors:
    """Names that each selector of a task accepts."""

    physics: tuple[str, ...] = ()
    renderer: tuple[str, ...] = ()
    presets: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskCard:
    """A task as the worker resolved it, overrides left out."""

    task: str
    """Id of the task."""
    gym_id: str = ""
    """Id in gymnasium's registry."""
    workflow: str = ""
    """``"manager-based"``, ``"direct"`` or ``"multi-agent"``."""
    num_envs: int = 1
    """The task's own number of envs."""
    fields: Fields = field(default_factory=dict)
    """The env config."""
    presets: Selectors = Selectors()
    cameras: Mapping[str, CameraCard] = field(default_factory=dict)
    """The task's own cameras, by name."""
    agents: Mapping[str, AgentCard] = field(default_factory=dict)
    """Agent configs by library; a library without one is left out."""
    assets: Mapping[str, Asset] = field(default_factory=dict)
    """Files that the task names, by their path below the asset root."""
    asset_root: AssetRoot = AssetRoot()
    versions: Mapping[str, str] = field(default_factory=dict)
    """Packages of the worker."""
