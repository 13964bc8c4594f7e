"""The contract of RL libraries: what a backend does, and what it gets from rlnb."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

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
    """Name of this rank's :class:`rlnb.Role`; empty for a library without roles."""
    group: Any
    """``torch.distributed`` process group of the ranks of this role. None, which torch takes for all ranks, for a
    library without roles. A library with roles and without a simulator sets it itself, for :meth:`pool`."""
    num_envs: int
    """Environments over all ranks."""
    synchronised: bool
    """Whether the ranks synchronise. False in the negative control of :func:`rlnb.verify_sync`, where
    ``torch.distributed.all_reduce`` already does nothing. A library that communicates by other means must skip its own
    synchronisation when this is False."""
    max_iterations: int | None
    """Iteration to end at; None keeps the number in the agent config. For ``max_frames`` of :func:`rlnb.train`, rlnb
    computes it from the envs of all ranks and the env steps that :attr:`rlnb.Library.horizon_key` names."""
    inputs: Mapping[str, Path]
    """Files of the inputs that the user gave, by the names in :attr:`rlnb.Library.inputs`."""
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
                :attr:`rlnb.Library.default_agent` with the user's values, or without one a dict of the user's values
                by dotted path.
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
            formats: Formats to write, each from :attr:`rlnb.Library.exports`.
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
