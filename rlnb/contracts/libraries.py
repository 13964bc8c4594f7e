"""The contract of RL libraries: what a backend does, and what it gets from rlnb."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from rlnb.spec import EvaluationResult, Json


class TrainContext(Protocol):
    """The settings of one rank, and the functions by which a :class:`Backend` reports its progress."""

    log_dir: Path
    """Existing folder where the library writes its event files and checkpoints."""
    device: str
    """Device of this rank, e.g. ``"cpu"`` or ``"cuda:0"``."""
    seed: int
    """Seed of this rank, which is the run's seed plus :attr:`rank`."""
    rank: int
    """Number of this rank over all nodes, from 0."""
    local_rank: int
    """Number of this rank on its node, from 0."""
    world_size: int
    """Number of ranks over all nodes."""
    role: str
    """Name of this rank's :class:`rlnb.plugin.Role`; empty for a library without roles."""
    group: Any
    """``torch.distributed`` process group of the ranks of this role. None, which torch takes for all ranks, for a
    library without roles. A library with roles and without a simulator sets it itself, for :meth:`pool`."""
    num_envs: int
    """Environments over all ranks."""
    synchronised: bool
    """Whether the ranks synchronise. False in the negative control of :func:`rlnb.studies.verify_sync`, where
    ``torch.distributed.all_reduce`` already does nothing. A library that communicates by other means must skip its own
    synchronisation when this is False."""
    max_iterations: int | None
    """Iteration to end at; None keeps the number in the agent config. For ``max_frames`` of :func:`rlnb.train`, rlnb
    computes it from the envs of all ranks and the env steps that :attr:`rlnb.plugin.Library.horizon_key` names."""
    inputs: Mapping[str, Path]
    """Files of the inputs that the user gave, by the names in :attr:`rlnb.plugin.Library.inputs`."""
    trust: bool
    """Whether the user trusts the checkpoints and inputs, so that a file which holds more than weights may be
    loaded."""
    agent: Mapping[str, Json]
    """Agent config values that the user passed, by dotted path, for libraries without an Isaac Lab agent config."""

    @property
    def checkpoint(self) -> Path | None:
        """Checkpoint to resume from; None if the training does not resume.

        :meth:`started` raises if a resumed training has not read it, or starts at iteration 0.
        """
        ...

    @property
    def init_from(self) -> Path | None:
        """Checkpoint whose weights to start from, normalisers included; optimiser and counters start anew.

        None starts from fresh weights. :meth:`started` raises if there is a checkpoint and it was not read.
        """
        ...

    def make_env(self, num_envs: int | None = None, *, seed: int | None = None) -> Any:
        """Return an env of the training's task as ``gymnasium.make`` does, with its overrides and the plugins' hooks.

        The first env of a rank is its training env, which rlnb films, shows and records. Isaac Lab has one simulation
        in each process, so close an env before you make the next one. rlnb closes the last one.

        Args:
            num_envs: Number of envs; None is this rank's share of the training's envs.
            seed: Seed of the env; None is :attr:`seed`.

        Raises:
            RlnbError: This process has an env that is not closed, the role of this rank has no env and ``num_envs`` is
                None, or the library trains without a simulator.
        """
        ...

    def env_factory(self, num_envs: int | None = None, *, seed: int | None = None) -> Callable[[], Any]:
        """Return a function without arguments that makes such an env in another process, which the library starts.

        The function can be pickled. It holds the folder of the job and these arguments, and nothing of the process
        that made it. Start the process by ``spawn``: a fork of a process with a simulator does not work.

        Args:
            num_envs: Number of envs; None is this rank's share of the training's envs.
            seed: Seed of the env; None is :attr:`seed`.

        Raises:
            RlnbError: The library trains without a simulator.
        """
        ...

    def policy(self, name: str, env: Any, groups: Mapping[str, str] | None = None) -> Policy:
        """Return the policy of an input of the kind ``"policy"``, which any library may have trained.

        The library of that run loads it, with the agent config of that run. The env is neither stepped nor reset, and
        the random numbers of this process stay as they are. Call this method on every rank that needs the policy, also
        when the training resumes.

        Args:
            name: Name of the input.
            env: Env that the backend got. Its observations and actions must have the shapes of those that the policy
                was trained with.
            groups: Names of observation groups that the policy reads, each with the group of this env that takes its
                place, such as ``{"policy": "teacher"}``. Groups that are not named have the same name.

        Returns:
            The deterministic policy. It takes the observation dict of ``env``.

        Raises:
            RlnbError: There is no such input, it is no policy, or it does not fit the env.
        """
        ...

    def resumed(
        self, save: Callable[[str], object], *, lost: Mapping[str, str] | None = None, all_ranks: bool = False
    ) -> None:
        """Record which parts of the training's state were restored exactly, and which are lost.

        Call it after loading :attr:`checkpoint` and before :meth:`started`. It saves the present state with ``save``
        and compares both files bit by bit.

        Args:
            save: ``function(path)`` that writes a checkpoint of the present state in the library's usual way, with its
                companions beside ``path``.
            lost: What the checkpoint does not hold, by name, with the consequence, such as ``{"replay buffer": "it is
                not saved, so the warm-up begins anew"}``. ``run.wait()`` tells the user.
            all_ranks: Whether the checkpoint holds the random state of every rank, and each has restored its own. If
                not, that of the ranks above 0 counts as lost.
        """
        ...

    def started(
        self,
        *,
        horizon: int,
        frames_per_step: float,
        max_iterations: int,
        first_iteration: int = 0,
        num_envs: int | None = None,
    ) -> None:
        """Report that the first iteration is about to run.

        Args:
            horizon: Env steps per iteration.
            frames_per_step: Frames (env transitions over all ranks) per unit of the x axis of the library's event
                files.
            max_iterations: Iteration at which the training ends.
            first_iteration: Iteration at which the training starts: 0, or the number of iterations that the resumed
                checkpoint has finished.
            num_envs: Environments over all ranks; None takes the number of envs that the worker made. A library without
                a simulator has to pass it: the number of sequences, such as answers, that an iteration collects.
                Together they have ``horizon * num_envs`` frames in each iteration.

        Raises:
            RlnbError: The library has ignored :attr:`checkpoint` or :attr:`init_from`, an iteration would be empty, or
                the number of envs is not known.
        """
        ...

    def iteration_finished(self, save: Callable[[], object]) -> None:
        """Report that an iteration was learned and logged, so that a training that is cancelled loses none.

        A library with ``saves_when_stopped=True`` calls it after every iteration, on every rank. The call is cheap. If
        the training was cancelled, or its time is over, rank 0 calls ``save``, and the call does not return.

        Args:
            save: ``function()`` that writes a checkpoint of this iteration in the library's usual way, and flushes the
                event file.

        Raises:
            Exception: The training ends. Do not catch it, except to close files and raise it again.
        """
        ...

    def pool(self, mean: Any, variance: Any) -> None:
        """Replace a rank's running mean and variance by those over the data of all ranks of its role, in place.

        A library that does not combine them itself calls this on every rank of the role after each update. The ranks
        start from equal statistics and add the same number of samples, so their counts need no correction. With a
        single rank the call has no effect.

        Args:
            mean: Running mean, a ``torch.Tensor``.
            variance: Running variance, a ``torch.Tensor`` of the same shape.
        """
        ...


class Policy(Protocol):
    """A trained policy."""

    def __call__(self, obs: Any) -> Any:
        """Return the actions for a batch of observations.

        Args:
            obs: Isaac Lab's observation dict, with a tensor of shape (num_envs, ...) for each observation group. For a
                library with ``multi_agent=True``, it has a tensor for each agent.

        Returns:
            A tensor of shape (num_envs, action_dim). For a library with ``multi_agent=True``, a dict with such a tensor
            for each agent.
        """
        ...

    def reset(self, dones: Any) -> None:
        """Clear the recurrent state of the envs whose episode has ended.

        Args:
            dones: Bool tensor of shape (num_envs,), true where an episode has ended.
        """
        ...


class Backend(Protocol):
    """The adapter of an RL library, which runs in the worker.

    A policy is exported by the method ``export`` of :class:`Exporting` if the backend has one. Otherwise the module
    that :meth:`load_policy` returns is traced.
    """

    def train(self, env: Any, agent_cfg: Any, ctx: TrainContext) -> Sequence[Any] | None:
        """Train until the last iteration. Rank 0 writes TensorBoard events and checkpoints to ``ctx.log_dir``.

        Args:
            env: Env that ``gymnasium.make`` returned. None for a library with ``simulator=False`` or
                ``makes_env=True``, and for a rank whose role has no env.
            agent_cfg: Agent config of the task for this library, with the user's values set. A rank whose role has no
                env gets it as nested dicts. For a library with ``simulator=False``, its
                :attr:`rlnb.plugin.Library.default_agent` with the user's values, or without one a dict of the user's
                values by dotted path.
            ctx: Settings of this rank, and the functions to report through.

        Returns:
            The trained ``torch.nn.Module`` objects, normalisers included, which are compared between ranks. A library
            that trains in a single process may return None.
        """
        ...

    def load_policy(
        self, env: Any, agent_cfg: Any, checkpoint: Path, *, device: str, trust: bool, deterministic: bool = True
    ) -> Policy:
        """Return the policy of a checkpoint.

        Args:
            env: Env that ``gymnasium.make`` returned.
            agent_cfg: Agent config, as in :meth:`train`.
            checkpoint: File of the checkpoint.
            device: Device of the policy, e.g. ``"cuda:0"``.
            trust: Whether a file that holds more than weights may be loaded.
            deterministic: True for a policy that returns its most likely action, such as the mean of a normal
                distribution or the choice of the largest probability, False for one that samples. The actions are those
                that the library would pass to the env: scaled and clipped as in training.
        """
        ...


class Exporting(Backend, Protocol):
    """A :class:`Backend` that exports its policies itself.

    The policy of any other backend is traced in eval mode. This requires a feed-forward ``torch.nn.Module``.
    """

    def export(
        self,
        env: Any,
        agent_cfg: Any,
        checkpoint: Path,
        folder: Path,
        *,
        formats: Sequence[str],
        device: str,
        trust: bool,
    ) -> Mapping[str, Path]:
        """Write a policy to files for deployment.

        The output ``actions`` of a file has the actions of the policy that :meth:`load_policy` returns for
        ``deterministic=True``, scaled and clipped: choices, for example, and not the logits of a distribution.

        Args:
            env: Env that ``gymnasium.make`` returned.
            agent_cfg: Agent config, as in :meth:`Backend.train`.
            checkpoint: File of the checkpoint.
            folder: Existing folder for the exported files.
            formats: Formats to write, each from :attr:`rlnb.plugin.Library.exports`.
            device: Device to load the policy on.
            trust: Whether a file that holds more than weights may be loaded.

        Returns:
            File by format. With several agents the keys are ``"<agent>/<format>"``.
        """
        ...


class Naming(Exporting, Protocol):
    """An :class:`Exporting` backend whose files have an input that joins other observation groups than ``policy``.

    With this method, the metadata of the files has the order of these observations in a manager-based task.
    """

    def input_groups(self, env: Any, agent_cfg: Any) -> Mapping[str, Sequence[str]]:
        """Return the observation groups that each input of the exported files joins, in their order.

        Args:
            env: Env that ``gymnasium.make`` returned.
            agent_cfg: Agent config, as in :meth:`Backend.train`.

        Returns:
            Groups by name of the input. An input that is missing here is a group of its name.
        """
        ...


class Evaluating(Protocol):
    """The adapter of an RL library with ``simulator=False``, which evaluates its policies itself."""

    def train(self, env: None, agent_cfg: Any, ctx: TrainContext) -> Sequence[Any] | None:
        """Train until the last iteration, as in :meth:`Backend.train`."""
        ...

    def evaluate(
        self,
        agent_cfg: Any,
        checkpoint: Path,
        *,
        episodes: int,
        seed: int,
        device: str,
        trust: bool,
        deterministic: bool,
    ) -> EvaluationResult:
        """Evaluate the policy of a checkpoint.

        Args:
            agent_cfg: Agent config, as in :meth:`train`.
            checkpoint: File of the checkpoint.
            episodes: Number of episodes, or of samples of each value.
            seed: Seed of the episodes.
            device: Device of the policy, e.g. ``"cuda:0"``.
            trust: Whether a file that holds more than weights may be loaded.
            deterministic: True for a policy that takes its most likely actions, False for one that samples.
        """
        ...


# -- library ---------------------------------------------------------------------------------------------------------


STEM = "{stem}"
"""Stands in :attr:`Library.checkpoint_companions` for the name of a checkpoint without its suffix."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """A run, a file or a folder that a library needs besides the task, such as the teacher of a distillation."""

    kind: Literal["policy", "rollouts", "file", "folder"]
    """``"policy"`` for a checkpoint of a run of any library, which :meth:`rlnb.backend.TrainContext.policy` loads;
    ``"rollouts"`` for recorded observations and actions, as in :attr:`rlnb.results.Evaluation.rollout`; ``"file"`` for
    any other file; ``"folder"`` for a folder with files, such as a base model."""
    required: bool = True
    """Whether a training needs the input."""
    agent: Mapping[str, Json] = field(default_factory=dict)
    """Agent config values, by dotted path, with which the library takes the input. With others, it does not."""


def unchanged(number: int, horizon: int) -> float:
    """Return the number in a checkpoint's name, for a library that names checkpoints by their last iteration."""
    return number


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
    :class:`rlnb.plugin.Space` by observation group, which lacks groups that only the env itself knows, and the
    :class:`rlnb.plugin.Space` of the actions. It returns the config. Empty if ``default_agent`` is for any spaces. Not
    called for several agents."""
    multi_agent: bool = False
    """Whether the library trains several agents. For other libraries Isaac Lab joins a task's agents into one."""
    distributed: bool = False
    """Whether the library can train on several ranks."""
    roles: str = ""
    """``"module:function"`` that gives each rank a :class:`rlnb.plugin.Role`, called without torch as
    ``function(world_size, agent)``, with the agent config values of the user by dotted path. It returns a list with a
    role for each rank, or raises :class:`rlnb.RlnbError` if there are too few ranks. Empty if all ranks do the same."""
    positive: Mapping[str, int | None] = field(default_factory=dict)
    """Sizes in the agent config that have to be at least 1, by dotted path, each with the size that a refusal suggests;
    None suggests that of the task's agent config."""
    sizes: str = ""
    """``"module:function"`` that finds sizes in an agent config that do not fit each other, called without torch as
    ``function(values, usual, num_envs)``: the config by dotted path, in which the sizes of ``positive`` are positive,
    the same without the values of the user, and the number of envs of a rank. It returns a list of
    :class:`rlnb.plugin.Problem`. Empty if any sizes fit."""
    spaces: str = ""
    """``"module:function"`` that finds observations and actions that the networks of an agent config cannot take or
    give, called without torch as ``function(values, observations, actions)``: the config by dotted path, and the
    spaces as in ``fitted_agent``. It returns a list of :class:`rlnb.plugin.Problem`. Empty if the library takes any
    spaces. Not called for several agents."""
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
    """Regular expression on a checkpoint's file name. The first group is the number that :attr:`checkpoint_iteration`
    takes."""
    stock_checkpoints: tuple[str, ...] = ()
    """Regular expressions on the file names of the checkpoints that the library writes without rlnb, such as stock
    Isaac Lab's, where :attr:`checkpoint_pattern` does not match them. The first group, if any, is the iteration or the
    timestep. Files of a later expression count as newer."""
    checkpoint_iteration: Callable[[int, int], float] = unchanged
    """Function that returns the last iteration, from 0, that a checkpoint includes. It is called as ``function(number,
    horizon)``: the number in the checkpoint's name, and the env steps of an iteration, at least 1. The result is
    negative for a checkpoint from before the end of the first iteration. By default, it is the number itself."""
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


# -- roles -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Role:
    """The work of some ranks of a training, and what they need for it.

    Ranks of one role end with equal parameters, which rlnb compares, and have a process group of their own.
    """

    name: str
    """Name of the role, of letters, digits, ``_`` and ``-``, e.g. ``"actor"``."""
    env: bool = True
    """Whether its ranks step envs. The other ranks load no simulator."""
    cpu: bool = False
    """Whether its ranks stay on the CPU if the training uses GPUs."""


# -- space -----------------------------------------------------------------------------------------------------------


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
