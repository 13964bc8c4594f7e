"""The task card: the worker's description of a task, for the kernel, which cannot import the task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rlnb.spec import Json

Kind = Literal["bool", "int", "float", "str", "list", "any"]
"""Type of a config value; ``any`` if the config's default is None, which does not tell the type."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfigField:
    """One value of an env config or an agent config."""

    type: Kind
    """Type of the value."""
    value: Json = None
    """The config's default; the ``repr`` of a value that JSON cannot hold."""


Fields = Mapping[str, ConfigField]
"""The values of a config, by dotted path."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CameraCard:
    """A camera of a task."""

    data_types: tuple[str, ...] = ()
    """Isaac Lab's names of the camera's outputs."""
    width: int
    """Width of a frame, pixels."""
    height: int
    """Height of a frame, pixels."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentCard:
    """The agent config of one RL library for a task."""

    fields: Fields = field(default_factory=dict)
    """Values of the config, by dotted path."""
    takes_more: tuple[str, ...] = ()
    """Groups that are dicts, so that values can be added to them; ``""`` is the whole config."""
    missing: tuple[str, ...] = ()
    """Requirements of the library that the worker's interpreter does not meet; empty if it meets all."""
    error: str = ""
    """Reason why the config does not load; empty if it loads."""

    @property
    def usable(self) -> bool:
        """Whether the library can train the task in the worker's interpreter."""
        return not self.error and not self.missing


@dataclass(frozen=True, kw_only=True, slots=True)
class Asset:
    """A robot or scene file that a task needs."""

    path: str
    """Path or URL of the file."""
    exists: bool | None
    """Whether the file exists; None for a remote file, which is not checked."""
    fix: str = ""
    """Command that provides a missing file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AssetRoot:
    """The folder or URL that assets come from, and the reason for it."""

    path: str = ""
    """Folder or URL, without a trailing slash."""
    reason: str = ""
    """The rule that chose the root."""

    @property
    def local(self) -> bool:
        """Whether the root is a folder of the worker's machine."""
        return "://" not in self.path


@dataclass(frozen=True, kw_only=True, slots=True)
class Selectors:
    """Names that each selector of a task accepts."""

    physics: tuple[str, ...] = ()
    """Names for ``physics=``."""
    renderer: tuple[str, ...] = ()
    """Names for ``renderer=``."""
    presets: tuple[str, ...] = ()
    """Names for ``presets=``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskCard:
    """A task as the worker resolved it, without the user's overrides."""

    task: str
    """Id of the task."""
    gym_id: str = ""
    """Id of the task in gymnasium's registry."""
    workflow: str = ""
    """``"manager-based"``, ``"direct"`` or ``"multi-agent"``."""
    num_envs: int = 1
    """Default number of envs of the task."""
    fields: Fields = field(default_factory=dict)
    """Values of the env config, by dotted path."""
    success: str = ""
    """Source of success: a function or ``"terminations.success"``; empty if only the rate is left that envs log."""
    presets: Selectors = Selectors()
    """Names that the task's selectors accept."""
    cameras: Mapping[str, CameraCard] = field(default_factory=dict)
    """The task's own cameras, by name."""
    agents: Mapping[str, AgentCard] = field(default_factory=dict)
    """Agent configs by library, for the libraries that have one for the task."""
    assets: Mapping[str, Asset] = field(default_factory=dict)
    """Asset files that the task names, by path below the asset root."""
    asset_root: AssetRoot = AssetRoot()
    """The root of robot and scene files."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of the worker's packages, by name."""
    isaac_sim: tuple[str, ...] = ()
    """Parts of the task that need Isaac Sim, if the worker's interpreter does not have it; empty if it can run them."""
