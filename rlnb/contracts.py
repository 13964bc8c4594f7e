"""The protocols that plugins implement. Hooks find the objects, and the protocols do the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from rlnb.errors import Problem
from rlnb.spec import Command, Json, Manifest


class Launcher(Protocol):
    """Starts jobs and knows whether they still live.

    Other processes find a run's jobs again through its launcher's name: its factory, called without arguments, has to
    give one that understands the handles of all.
    """

    name: str

    @property
    def nodes(self) -> int:
        """Machines that each training gets."""
        ...

    @property
    def nproc_per_node(self) -> int | None:
        """Ranks on each of them where a training says nothing of that; None is one."""
        ...

    @property
    def settings(self) -> Mapping[str, Json]:
        """Arguments that make one like this, as JSON has them: a run records them for its further jobs."""
        ...

    @property
    def max_running(self) -> int | None:
        """Trainings at once on one machine, the others wait there; None where the launcher has a queue of its own."""
        ...

    @property
    def walltime_s(self) -> float | None:
        """Seconds after which a job is stopped with outcome ``timeout``; None sets no limit."""
        ...

    def check(self, manifest: Manifest) -> Sequence[Problem]:
        """Return what would make this launcher refuse the run."""
        ...

    def submit(self, command: Command, job_dir: Path) -> Mapping[str, Json]:
        """Start a job; return a JSON handle to find it again.

        The launcher starts the job's agent, ``python -m rlnb.node JOB_DIR``, so that it outlives this process. The
        agent runs the command, which ``job_dir`` holds already, and answers for log, cancel, walltime and result. With
        ``command.nodes`` of more than one each of them has an agent: ``python -m rlnb.node JOB_DIR --node K --master
        HOST:PORT``, with a free port of the first node.

        Args:
            command: Command that the agent will run.
            job_dir: Folder of the job. The agent's own output belongs at the end of its ``node0.log``.
        """
        ...

    def alive(self, handle: Mapping[str, Json], job_dir: Path) -> bool | None:
        """Return whether the job still exists; None when that cannot be told from here."""
        ...

    def cancel(self, handle: Mapping[str, Json], job_dir: Path) -> None:
        """Take a job that still waits out of the launcher's queue. Returns at once.

        A job that runs needs nothing more: its agent sees in ``job_dir`` that it was asked to end.
        """
        ...

    def waits_for(self, handle: Mapping[str, Json], job_dir: Path) -> Sequence[str]:
        """Return the ids of the runs for which a queued job waits; empty where that cannot be told from here."""
        ...


class TrainContext(Protocol):
    """The facts and functions that a :class:`Backend` gets besides the env: log folder, rank, ways to report."""

    log_dir: Path
    """Where the library writes its event files and checkpoints. Exists."""
    device: str
    seed: int
    """Seed of this rank."""
    rank: int
    local_rank: int
    world_size: int
    synchronised: bool
    """False in the negative control of a proof of synchronisation. Sums by ``torch.distributed.all_reduce`` are left
    out then by themselves; a library that sums by other means leaves them out."""
    max_iterations: int | None
    """Iterations asked for; None keeps the agent config's."""
    checkpoint: Path | None
    """Checkpoint to resume from."""
    init_from: Path | None
    """Checkpoint to take the weights of, normalisers included; optimiser and counters begin anew."""
    trust: bool
    """Whether the user vouches for that checkpoint's origin."""
    agent: Mapping[str, Json]
    """Agent overrides as asked, for libraries without an Isaac Lab agent config."""

    def resumed(self, save: Callable[[str], object]) -> None:
        """Find out what of the checkpoint was restored, bit by bit, to say it in the run's record.

        To be called after loading :attr:`checkpoint` and before :meth:`started`.

        Args:
            save: ``function(path)`` that writes a checkpoint of the present state, as the library always does, with
                ``torch.save``.
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
        """Say that the first iteration is about to run. ``frames_per_step`` counts all ranks."""
        ...

    def pool(self, mean: Any, variance: Any) -> None:
        """Make running statistics that this rank keeps those of all ranks' data, in place.

        For a library that does not do so itself; to be called on every rank after each update. The ranks begin equal
        and take in the same number of samples, so that counts need no care. One rank returns at once.
        """
        ...


class Policy(Protocol):
    """A trained policy."""

    def __call__(self, obs: Any) -> Any:
        """Return actions, shape (num_envs, action_dim), for Isaac Lab's observation dict.

        Of a multi-agent library, both are by agent.
        """
        ...

    def reset(self, dones: Any) -> None:
        """Forget recurrent state where ``dones``, shape (num_envs,), is true."""
        ...


class Backend(Protocol):
    """The whole contract of an RL library. Lives in the worker; ``env`` is what ``gym.make`` returned.

    Exports come from :meth:`load_policy`'s module, or from a method ``export``, as in :class:`Exporting`.
    """

    def train(self, env: Any, agent_cfg: Any, ctx: TrainContext) -> Sequence[Any] | None:
        """Train until done, logging TensorBoard events and checkpoints to ``ctx.log_dir`` on rank 0.

        Returns:
            The trained ``torch.nn.Module`` objects, normalisers included, so that ranks can be compared; a library
            that trains in one process only may return None.
        """
        ...

    def load_policy(
        self, env: Any, agent_cfg: Any, checkpoint: Path, *, device: str, trust: bool, deterministic: bool = True
    ) -> Policy:
        """Return the policy of a checkpoint; where it is not to be deterministic, one that samples its actions."""
        ...


class Exporting(Backend, Protocol):
    """A :class:`Backend` that writes what is deployed itself.

    For any other, a policy that is a feed-forward ``torch.nn.Module`` of the observation group ``policy`` is traced, in
    eval mode.
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
        """Write the policy for deployment; return format to file, ``"<agent>/<format>"`` for each of several agents."""
        ...
