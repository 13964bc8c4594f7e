"""The description of an RL library, which a plugin registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rlnb.spec import Json

STEM = "{stem}"
"""Stands in :attr:`Library.checkpoint_companions` for the name of a checkpoint without its suffix."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """A run, a file or a folder that a library needs besides the task, such as the teacher of a distillation."""

    kind: Literal["policy", "rollouts", "file", "folder"]
    """``"policy"`` for a checkpoint of a run of any library, which :meth:`rlnb.backend.TrainContext.policy` loads;
    ``"rollouts"`` for recorded observations and actions, as in :attr:`rlnb.Evaluation.rollout`; ``"file"`` for any
    other file; ``"folder"`` for a folder with files, such as a base model."""
    required: bool = True
    """Whether a training needs the input."""
    agent: Mapping[str, Json] = field(default_factory=dict)
    """Agent config values, by dotted path, with which the library takes the input. With others, it does not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Library:
    """An RL library, described without importing the library."""

    name: str
    """Name of the library, as in ``rlnb.train(library=...)``."""
    backend: str
    """``"module:Class"`` of the library's :class:`rlnb.backend.Backend`."""
    agent_key: str = ""
    """Key of the library's agent config in a task's gymnasium registration, e.g. ``"rsl_rl_cfg_entry_point"``."""
    default_agent: str = ""
    """Agent config for tasks that register none, as ``"module:function"`` or ``"package:file.yaml"``."""
    fitted_agent: str = ""
    """``"module:function"`` that fits ``default_agent`` to the spaces of a task, such as with a CNN for pictures. It is
    called as ``function(config, observations, actions)``: the config of ``default_agent``, a mapping of
    :class:`rlnb.Space` by observation group, which lacks groups that only the env itself knows, and the
    :class:`rlnb.Space` of the actions. It returns the config. Empty if ``default_agent`` is for any spaces. Not called
    for several agents."""
    multi_agent: bool = False
    """Whether the library trains several agents. For other libraries Isaac Lab joins a task's agents into one."""
    distributed: bool = False
    """Whether the library can train on several ranks."""
    roles: str = ""
    """``"module:function"`` that gives each rank a :class:`rlnb.Role`, called without torch as ``function(world_size,
    agent)``, with the agent config values of the user by dotted path. It returns a list with a role for each rank, or
    raises :class:`rlnb.RlnbError` if there are too few ranks. Empty if all ranks do the same."""
    positive: Mapping[str, int | None] = field(default_factory=dict)
    """Sizes in the agent config that have to be at least 1, by dotted path, each with the size that a refusal suggests;
    None suggests that of the task's agent config."""
    sizes: str = ""
    """``"module:function"`` that finds sizes in an agent config that do not fit each other, called without torch as
    ``function(values, usual, num_envs)``: the config by dotted path, in which the sizes of ``positive`` are positive,
    the same without the values of the user, and the number of envs of a rank. It returns a list of
    :class:`rlnb.Problem`. Empty if any sizes fit."""
    spaces: str = ""
    """``"module:function"`` that finds observations and actions that the networks of an agent config cannot take or
    give, called without torch as ``function(values, observations, actions)``: the config by dotted path, and the
    spaces as in ``fitted_agent``. It returns a list of :class:`rlnb.Problem`. Empty if the library takes any spaces.
    Not called for several agents."""
    makes_env: bool = False
    """Whether the backend makes its envs itself, with :meth:`rlnb.backend.TrainContext.make_env`. ``train`` then gets
    None as its env."""
    step_unit: Literal["iteration", "timestep", "frame"] = "iteration"
    """Unit of the x axis of the library's event files."""
    logged_at_end: bool = False
    """Whether the library logs an iteration's scalars at the step where the iteration ended, not where it began."""
    horizon_key: str = "num_steps_per_env"
    """Name of the agent config value that holds the env steps per iteration, with which frames are counted."""
    overruled: Mapping[str, str] = field(default_factory=lambda: {"seed": "seed", "max_iterations": "max_iterations"})
    """Agent config paths that the backend sets itself, each mapped to the argument of :func:`rlnb.train` that decides
    its value (``"seed"``, ``"max_iterations"`` or ``"device"``), or to an empty string if none does, as for the folder
    of the event files. An agent value that contradicts the argument is refused, and so is one that no argument
    decides."""
    adapted: tuple[str, ...] = ()
    """Agent config paths whose default the backend adapts to the number of envs or to the machine. A value of the user
    must be kept, or refused by the plugin's ``rlnb_check``."""
    handed_over: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Values of an agent config that another library of the plugin trains, by dotted path, each with the name of that
    library. A task may register such a config under this library's :attr:`agent_key`, and as its default."""
    former_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Agent config paths of older versions of the library, each mapped to its present paths, which errors name."""
    resumes: bool = True
    """Whether a training can continue from a checkpoint; if not, ``run.resume()`` and restarts are refused."""
    checkpoint_glob: str = "**/*.pt"
    """Glob of checkpoint files below a run's ``logs/``."""
    checkpoint_pattern: str = r"(\d+)\.pt$"
    """Regular expression on a checkpoint's file name. The first group is its iteration, or timestep."""
    stock_checkpoints: tuple[str, ...] = ()
    """Regular expressions on the file names of the checkpoints that the library writes without rlnb, such as stock
    Isaac Lab's, where :attr:`checkpoint_pattern` does not match them. The first group, if any, is the iteration or the
    timestep. Files of a later expression count as newer."""
    checkpoint_unit: Literal["iteration", "timestep"] = "iteration"
    """Unit of the number in a checkpoint's name."""
    checkpoint_counts_finished: bool = False
    """Whether the number in a checkpoint's name counts finished iterations; if not, it is the index of the last one."""
    checkpoint_is_folder: bool = False
    """Whether a checkpoint is a folder of files. Its :attr:`checkpoint_glob` then names folders, and has no ``**``."""
    checkpoint_companions: tuple[str, ...] = ()
    """Names of files beside a checkpoint that belong to it, such as ``"{stem}.replay_buffer.npz"``, where ``{stem}`` is
    the checkpoint's name without its suffix. They are ``.npz`` or ``.safetensors`` files, which run no code, and are
    written before the checkpoint. A companion may be missing."""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """The library's own tag for each name in :data:`rlnb.spec.METRICS`, and for each name of its own."""
    metric_names: Mapping[str, str] = field(default_factory=dict)
    """Meaning of each metric, and of each value of an evaluation, that has a name of the library's own, e.g. ``{"kl":
    "divergence from the reference policy, in nats"}``. An end such as ``", in nats"`` is the unit of its axis."""
    former_metrics: Mapping[str, str] = field(default_factory=dict)
    """Tags of older versions of the library, by the same names, where they differ from :attr:`metrics`. The runs of
    scripts, and those of stock Isaac Lab, may have them."""
    hidden: tuple[str, ...] = ()
    """Regular expressions that match tags which repeat other tags. Such tags are never shown."""
    requires: tuple[str, ...] = ()
    """Packages that the library needs in the worker's interpreter, as pip requirements."""
    exports: tuple[str, ...] = ()
    """Export formats of the library's policies, e.g. ``"torchscript"`` and ``"onnx"``."""
    saves_when_stopped: bool = False
    """Whether the backend calls :meth:`rlnb.backend.TrainContext.iteration_finished` after every iteration."""
    inputs: Mapping[str, Input] = field(default_factory=dict)
    """Inputs that the library takes, by name, as in ``rlnb.train(..., inputs={"teacher": run})``."""
    simulator: bool = True
    """Whether the library trains an Isaac Lab env. False for a library that needs no simulator, such as echo."""
