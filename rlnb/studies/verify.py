"""Two proofs by short runs: that ranks learn as one, and that a seed gives the same run twice."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlnb.configs.agent import AgentArgument
from rlnb.errors import RlnbError
from rlnb.hooks import plugins
from rlnb.records.ranks import Ranks, by_role, ranks_of
from rlnb.run import train
from rlnb.run.run import Run
from rlnb.spec import Manifest, Task
from rlnb.storage.files import whole
from rlnb.tasks.task import as_task
from rlnb.training.arguments import TrainArguments
from rlnb.training.create import create_run, refuse
from rlnb.training.plan import make_plan
from rlnb.version import renamed

DEFAULT_ENVS = 64
"""Number of envs over all ranks, unless the user names another one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Synchronisation:
    """Digests of each rank's state after a few iterations, with and without synchronisation. Shown as a table."""

    parameters: tuple[str, ...]
    """Digest of the trained parameters of each rank. They must be equal."""
    statistics: tuple[str, ...]
    """Digest of the buffers of each rank, such as observation normalisers. They must be equal."""
    observations: tuple[str, ...]
    """Digest of the first observations of each rank. They must differ, else the ranks collect the same data."""
    control: tuple[str, ...]
    """Digest of the parameters without synchronisation. They must differ, else :attr:`parameters` proves nothing."""
    roles: tuple[str, ...] = ()
    """Role of each rank; empty if all ranks do the same. Only ranks of one role are compared."""

    @property
    def synchronised(self) -> bool:
        """Whether all four tuples are equal or different as required."""
        return all(holds for _, _, _, holds in self.rows())

    def rows(self) -> list[tuple[str, str, str, bool]]:
        """Return a row per check: name, digests, requirement (``"equal"`` or ``"different"``), whether it holds."""
        checks = {
            "parameters": (self.parameters, "equal"),
            "statistics": (self.statistics, "equal"),
            "observations": (self.observations, "different"),
            "parameters without synchronisation": (self.control, "different"),
        }
        return [
            (f"{name} of the role {role}" if role else name, ", ".join(digests), has_to_be, _holds(digests, has_to_be))
            for name, (of_ranks, has_to_be) in checks.items()
            for role, digests in by_role(self.roles, of_ranks).items()
            if any(digests) and (len(digests) > 1 or not self.roles)  # no envs, or a role with one rank
        ]

    def __repr__(self) -> str:
        broken = [name for name, _, _, holds in self.rows() if not holds]
        return f"Synchronisation({f'NOT as required: {broken}' if broken else 'the ranks learn as one'})"

    def _repr_html_(self) -> str:
        from rlnb.display.table import table

        rows = [(name, digests, has_to_be, "yes" if holds else "NO") for name, digests, has_to_be, holds in self.rows()]
        return table(["over ranks", "digests", "required", "holds"], rows, caption=repr(self))


def _holds(digests: Sequence[str], has_to_be: str) -> bool:
    return len(set(digests)) == (1 if has_to_be == "equal" else len(digests))


@renamed(iterations="max_iterations")
def verify_sync(
    task: Task | str,
    library: str = "rsl_rl",
    nproc_per_node: int = 2,
    *,
    max_iterations: int = 3,
    num_envs: int | None = None,
    agent: AgentArgument = None,
    inputs: Mapping[str, Run | str | Path] | None = None,
    trust: bool = False,
    seed: int = 42,
    device: str = "auto",
    python: str | None = None,
    asset_root: str | None = None,
    timeout_s: float | None = None,
) -> Synchronisation:
    """Check by two short runs on this machine that the ranks of a training learn as one.

    The second run is the negative control, the same training without synchronisation. Equal parameters alone would
    prove nothing, because ranks that all collect the same data stay equal without any synchronisation. Ranks of
    different roles are not compared.

    Args:
        task: A task, or its name.
        library: Name of the RL library; RSL-RL by default, also if the task's registration names another one.
        nproc_per_node: Number of ranks, at least 2.
        max_iterations: Learning iterations of each run.
        num_envs: Environments over all ranks; None is 64, or none for a library without a simulator.
        agent: As in :func:`rlnb.train`.
        inputs: Runs or files that the library needs besides the task, as in :func:`rlnb.train`.
        trust: Whether their checkpoints may hold more than weights, as in :func:`rlnb.train`.
        seed: Seed of rank 0; rank r has ``seed + r``.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``, as in :func:`rlnb.train`.
        python: Command of the worker's interpreter.
        asset_root: Folder or URL of robot assets.
        timeout_s: Seconds that each run may take; None sets no limit.

    Raises:
        RlnbError: ``nproc_per_node`` is less than 2, or gives each rank a role of its own, or the library's backend
            does not return what the ranks have learned.
        CheckError: The runs would fail. Nothing was started.
        RunError: One of the runs failed.
        TimeoutError: One of the runs took longer than ``timeout_s``.
    """
    nproc_per_node, max_iterations, seed = map(whole, (nproc_per_node, max_iterations, seed))
    if nproc_per_node < 2:
        raise RlnbError(f"nproc_per_node={nproc_per_node!r} is less than 2. Synchronisation needs two ranks.")
    task = as_task(task)  # both runs train the same version of a cell

    def train_ranks(synchronised: bool, tags: Sequence[str]) -> Ranks:
        request = TrainArguments(
            task=task,
            library=library,
            max_iterations=max_iterations,
            seed=seed,
            num_envs=_num_envs(library, num_envs),
            agent=agent,
            inputs=inputs,
            trust=trust,
            device=device,
            nproc_per_node=nproc_per_node,
            python=python,
            asset_root=asset_root,
            tags=tags,
        )
        plan = make_plan(request)
        refuse(plan)
        _refuse_single_ranks(plan.manifest)
        job_options = {**plan.options, "synchronised": synchronised}
        run = Run.of(create_run(plan.root, plan.manifest, plan.launcher, job_options, inputs=plan.inputs).record)
        return _digests(run.wait(timeout_s, check=True))

    ranks = train_ranks(True, ["verify-sync"])
    control = train_ranks(False, ["verify-sync", "control"])
    return Synchronisation(
        parameters=ranks.parameters,
        statistics=ranks.buffers,
        observations=ranks.observations,
        control=control.parameters,
        roles=ranks.roles,
    )


def _num_envs(library: str | None, num_envs: int | None) -> int | None:
    item = plugins.libraries().get(library or "")
    return DEFAULT_ENVS if num_envs is None and (item is None or item.simulator) else num_envs


def _refuse_single_ranks(manifest: Manifest) -> None:
    """Raise an error if each rank has a role of its own."""
    count = manifest.resources.world_size
    roles = plugins.roles_of(plugins.library(manifest.library), count, manifest.agent)
    if len(set(roles)) == count:
        raise RlnbError(
            f"The {count} ranks of {manifest.library} have {count} different roles, so no two can be compared. Use "
            "a larger nproc_per_node."
        )


def _digests(run: Run) -> Ranks:
    """Return the digests of all ranks of a training.

    Raises:
        RlnbError: The backend returns no modules, or has closed its process group, so that rank 0 is alone.
    """
    ranks = ranks_of(run.result)
    if ranks is None or len(ranks.parameters) != run.manifest.resources.world_size:
        raise RlnbError(
            f"There is nothing to compare for the ranks of {run.library}. Return the trained modules in the "
            "train() of its backend, on every rank and with torch's process group open."
        )
    return ranks


_TIMED = re.compile(r"^(perf|performance|time)\b|fps|per second|\(ms\)|/time$", re.IGNORECASE)
"""Tags that measure the machine, not the learning."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Determinism:
    """Whether two runs with the same seed learned the same. Returned by :func:`rlnb.studies.verify_determinism`."""

    tags: int
    """Number of logged tags that were compared, bit by bit."""
    iterations: int
    """Number of iterations of each run."""
    difference: str | None
    """The first difference, in order of iterations; None if the runs are equal."""

    @property
    def deterministic(self) -> bool:
        """Whether at least one tag was compared and nothing differs."""
        return self.tags > 0 and self.difference is None

    def __repr__(self) -> str:
        outcome = f"differs: {self.difference}" if self.difference else f"{self.tags} tags bit-equal"
        return f"Determinism({self.iterations} iterations, {outcome})"


@renamed(iterations="max_iterations")
def verify_determinism(
    task: Task | str,
    library: str = "rsl_rl",
    max_iterations: int = 5,
    *,
    num_envs: int | None = None,
    timeout_s: float | None = None,
    **arguments: Any,
) -> Determinism:
    """Train twice with the same seed, and compare all logged values and trained parameters bit by bit.

    Args:
        task: A task, or its name.
        library: Name of the RL library; RSL-RL by default, also if the task's registration names another one.
        max_iterations: Learning iterations of each run.
        num_envs: Environments in total; None is 64, or none for a library without a simulator.
        timeout_s: Seconds that each run may take; None sets no limit.
        arguments: Further arguments of :func:`rlnb.train`. On a GPU, runs are equal only with ``deterministic=True``.

    Raises:
        CheckError: The runs would fail. Nothing was started.
        RunError: One of the runs failed.
        TimeoutError: One of the runs took longer than ``timeout_s``.
    """
    task = as_task(task)  # both runs train the same version of a cell
    first, second = (
        train.train(
            task,
            library=library,
            max_iterations=max_iterations,
            num_envs=_num_envs(library, num_envs),
            warm=False,
            tags=["verify-determinism"],
            **arguments,
        ).wait(timeout_s, check=True)
        for _ in range(2)
    )
    tags = [tag for tag in sorted({*first.metrics.tags, *second.metrics.tags}) if not _TIMED.search(tag)]
    differences = []
    for tag in tags:
        ours, theirs = (
            {step: value for step, _, value in run.metrics[tag].points} if tag in run.metrics else {}
            for run in (first, second)
        )
        unequal = [step for step in sorted({*ours, *theirs}) if not _same(ours.get(step), theirs.get(step))]
        if unequal:
            step = unequal[0]
            differences.append((step, f"{tag} at {step}: {ours.get(step)!r} and {theirs.get(step)!r}"))
    if not differences and _learned(first) != _learned(second):
        differences.append((max_iterations, "the trained parameters, although all logged values are equal"))
    return Determinism(
        tags=len(tags), iterations=max_iterations, difference=min(differences)[1] if differences else None
    )


def _learned(run: Run) -> object:
    """Return the digests of a training's parameters and running statistics; None if the library returns no modules."""
    ranks = ranks_of(run.result)
    return (ranks.parameters, ranks.buffers) if ranks else None


def _same(one: float | None, other: float | None) -> bool:
    return one == other or (one != one and other != other)  # NaN is not equal to itself
