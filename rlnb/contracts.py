"""The protocols that plugins implement. A hook names an object; its protocol says what the object does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rlnb.errors import Problem
from rlnb.spec import Command, Json, Manifest

RUN_VARIABLES = ("RLNB_ALERT_WEBHOOK", "OMP_NUM_THREADS")
"""Environment variables that say something about a run, and not about a machine.

On this machine, and with a shared folder, an agent has the whole environment of the process that submits its job.
Another machine has its own, because its queue (``RLNB_QUEUE``), GPUs (``CUDA_VISIBLE_DEVICES``), network (``NCCL_*``,
``GLOO_*``, proxies) and assets (``ISAACSIM_ASSET_ROOT``) are not those of the kernel. A launcher for another machine
passes on these variables, and those that its user sets.
"""


class Launcher(Protocol):
    """Starts jobs and reports whether they still run.

    Another process finds a job again through the launcher's name, which the run records. The launcher's factory,
    called without arguments, must therefore return a launcher that understands the handles of all others of its name.
    """

    name: str
    """Name of the launcher, the same as in its :class:`rlnb.LauncherType`."""

    @property
    def nodes(self) -> int:
        """Number of nodes that each training gets."""
        ...

    @property
    def nproc_per_node(self) -> int | None:
        """Ranks on each node if a training sets no ``nproc_per_node``; None is one rank."""
        ...

    @property
    def settings(self) -> Mapping[str, Json]:
        """Arguments that make an equal launcher, as JSON values. A run records them for its later jobs."""
        ...

    @property
    def max_running(self) -> int | None:
        """Trainings that run at once on one machine; others wait. None if the launcher has a queue of its own."""
        ...

    @property
    def walltime_s(self) -> float | None:
        """Seconds after which a job is stopped with outcome ``timeout``; None sets no limit."""
        ...

    def check(self, manifest: Manifest) -> Sequence[Problem]:
        """Return every reason why this launcher cannot start the run; an empty sequence if it can.

        The user waits for the answer. A launcher that asks another machine answers within a minute, also if that
        machine is away.

        Args:
            manifest: The run that would be started.
        """
        ...

    def submit(self, command: Command, job_dir: Path) -> Mapping[str, Json]:
        """Start a job and return the handle by which it is found again.

        The launcher starts the job's agent, ``python -m rlnb.node JOB_DIR``, in such a way that the agent outlives this
        process. The agent reads the command from ``job_dir``, runs it, and takes care of log, cancellation, walltime
        and result. The command begins with ``manifest.python``, or with the interpreter of this process; on another
        machine it has to be an interpreter of that machine. ``command.env`` adds to the environment of the agent, which
        :data:`RUN_VARIABLES` describes. If ``command.nodes`` is more than one, the launcher starts one agent on each
        node: ``python -m rlnb.node JOB_DIR --node K --master HOST:PORT``, with a free port of the first node.

        Args:
            command: Command that the agent will run.
            job_dir: Folder of the job. Append the agent's own output to ``node0.log`` in this folder.

        Returns:
            A JSON mapping, for example with a process id or the id of a job in a queue.
        """
        ...

    def alive(self, handle: Mapping[str, Json], job_dir: Path) -> bool | None:
        """Return whether the job still exists; None if this machine cannot tell.

        Every look at a run calls this, several times a second: answer within a tenth of a second. A launcher that asks
        another machine or a queue keeps its answer for some seconds, and answers None or its last answer while the
        other side is silent.

        Args:
            handle: Handle that :meth:`submit` returned.
            job_dir: Folder of the job.
        """
        ...

    def cancel(self, handle: Mapping[str, Json], job_dir: Path) -> None:
        """Remove a waiting job from the launcher's queue, and return at once.

        A running job needs no action: its agent finds the request to cancel in ``job_dir``. The job may be lost: the
        process that owned it is gone, and its entry in the queue is left.

        Args:
            handle: Handle that :meth:`submit` returned.
            job_dir: Folder of the job.
        """
        ...


class ArrayLauncher(Launcher, Protocol):
    """A :class:`Launcher` that also starts many jobs as one array of its queue."""

    def check_array(self, count: int) -> Sequence[Problem]:
        """Return every reason why the queue would refuse an array of ``count`` jobs."""
        ...

    def submit_array(self, job_dirs: Sequence[Path], *, at_once: int | None) -> Sequence[Mapping[str, Json]]:
        """Start jobs as one array and return the handle of each, in order. An exception means that none was started.

        Args:
            job_dirs: Folders of the jobs. Each holds the command of its job.
            at_once: Largest number of jobs that run at once; None leaves it to the queue.
        """
        ...


@runtime_checkable
class FarLauncher(Launcher, Protocol):
    """A :class:`Launcher` of another machine, whose runs are only mirrored in their folders here."""

    def fetch(self, run_dir: Path, names: Sequence[str]) -> None:
        """Copy files of a run here, which are too large to be mirrored.

        Args:
            run_dir: Folder of the run here.
            names: Paths of the files below that folder.
        """
        ...


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
    synchronised: bool
    """Whether the ranks synchronise. False in the negative control of :func:`rlnb.verify_sync`, where
    ``torch.distributed.all_reduce`` already does nothing. A library that communicates by other means must skip its own
    synchronisation when this is False."""
    max_iterations: int | None
    """Learning iterations to run; None keeps the number in the agent config."""
    trust: bool
    """Whether the user trusts the checkpoint, so that a file which holds more than weights may be loaded."""
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

        None starts from fresh weights. :meth:`started` raises if it is a file and was not read.
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
            first_iteration: Iteration at which the training starts: 0, or the iteration of the resumed checkpoint.
            num_envs: Environments over all ranks; None takes the number of envs that the worker made.

        Raises:
            RlnbError: The library has ignored :attr:`checkpoint` or :attr:`init_from`, or an iteration would be empty.
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
        """Replace a rank's running mean and variance by those over the data of all ranks, in place.

        For a library that does not combine them itself. Call it on every rank after each update. The ranks start from
        equal statistics and add the same number of samples, so their counts need no correction. With a single rank the
        call has no effect.

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
            env: Env that ``gymnasium.make`` returned; None for a library with ``simulator=False``.
            agent_cfg: Agent config of the task for this library, with the user's values set. For a library with
                ``simulator=False``, a dict of the user's values by dotted path.
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
            deterministic: True for a policy that returns its most likely action, False for one that samples.
        """
        ...


class Exporting(Backend, Protocol):
    """A :class:`Backend` that exports its policies itself.

    The policy of any other backend is traced in eval mode. This requires a feed-forward ``torch.nn.Module`` that reads
    the observation group ``policy`` only.
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
