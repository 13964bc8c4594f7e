"""Proofs that a person can ask for: do the ranks learn as one, and does a seed give the same run twice?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlnb.errors import RlnbError
from rlnb.records.ranks import Ranks, ranks_of
from rlnb.spec import Task
from rlnb.training import train
from rlnb.training.create import create_run, refuse
from rlnb.training.plan import make_plan
from rlnb.training.request import TrainRequest

if TYPE_CHECKING:
    from rlnb.run.run import Run
    from rlnb.spec import Json


@dataclass(frozen=True, kw_only=True, slots=True)
class Synchronisation:
    """Digests of the state of each rank after a few iterations, with and without the sums over ranks."""

    parameters: tuple[str, ...]
    """Trained parameters of each rank: have to be equal."""
    statistics: tuple[str, ...]
    """Buffers of each rank, such as observation normalisers: have to be equal."""
    observations: tuple[str, ...]
    """First observations of each rank: have to differ, else the ranks collect the same data."""
    control: tuple[str, ...]
    """Parameters without synchronisation: have to differ, else the first row proves nothing."""

    @property
    def synchronised(self) -> bool:
        """Whether all four are as they have to be."""
        return all(holds for _, _, _, holds in self.rows())

    def rows(self) -> list[tuple[str, str, str, bool]]:
        """Return name, digests, ``"equal"`` or ``"different"`` as they have to be, and whether they are."""
        checks = {
            "parameters": (self.parameters, "equal"),
            "statistics": (self.statistics, "equal"),
            "observations": (self.observations, "different"),
            "parameters without synchronisation": (self.control, "different"),
        }
        return [
            (name, ", ".join(digests), has_to_be, len(set(digests)) == (1 if has_to_be == "equal" else len(digests)))
            for name, (digests, has_to_be) in checks.items()
        ]

    def __repr__(self) -> str:
        broken = [name for name, _, _, holds in self.rows() if not holds]
        return f"Synchronisation({f'NOT as they have to be: {broken}' if broken else 'the ranks learn as one'})"

    def _repr_html_(self) -> str:
        from rlnb.display.table import table

        rows = [(name, digests, has_to_be, "yes" if holds else "NO") for name, digests, has_to_be, holds in self.rows()]
        return table(["over ranks", "digests", "have to be", "are"], rows, caption=repr(self))


def verify_sync(
    task: Task | str,
    library: str = "rsl_rl",
    nproc_per_node: int = 2,
    *,
    iterations: int = 3,
    num_envs: int = 64,
    agent: Mapping[str, Json] | None = None,
    seed: int = 42,
    device: str = "auto",
    python: str | None = None,
    asset_root: str | None = None,
    timeout_s: float | None = None,
) -> Synchronisation:
    """Prove that the ranks of a task and a library learn as one, by two short runs on this machine.

    The second run is the negative control: the same without the sums over ranks. Equal parameters alone would prove
    nothing, since ranks that all collect the same data stay equal without any synchronisation.

    Args:
        task: A task, or its name.
        library: Name of the RL library.
        nproc_per_node: Ranks, at least 2.
        iterations: Learning iterations of each run.
        num_envs: Environments over all ranks.
        agent: Agent config values by dotted path.
        seed: Seed of rank 0; rank r has ``seed + r``.
        device: As in :func:`rlnb.train`.
        python: Command of the worker's interpreter.
        asset_root: Folder or URL of robot assets.
        timeout_s: Seconds that each run may take.

    Raises:
        CheckError: The runs would fail; nothing was started.
        RunError: One of them failed.
    """
    if nproc_per_node < 2:
        raise RlnbError(f"nproc_per_node={nproc_per_node!r}: synchronisation takes two ranks at least.")

    def train_ranks(synchronised: bool, tags: Sequence[str]) -> Ranks:
        request = TrainRequest(
            task=task,
            library=library,
            max_iterations=iterations,
            seed=seed,
            num_envs=num_envs,
            agent=agent,
            device=device,
            nproc_per_node=nproc_per_node,
            python=python,
            asset_root=asset_root,
            tags=tags,
        )
        plan = make_plan(request)
        refuse(plan)
        job_options = {**plan.options, "synchronised": synchronised}
        run = create_run(plan.root, plan.manifest, plan.launcher, job_options).wait(timeout_s)
        ranks = ranks_of(run.jobs[0].result)
        assert ranks is not None, "a completed run in the simulator has written the digests of its ranks"
        return ranks

    ranks = train_ranks(True, ["verify-sync"])
    control = train_ranks(False, ["verify-sync", "control"])
    return Synchronisation(
        parameters=ranks.parameters,
        statistics=ranks.buffers,
        observations=ranks.observations,
        control=control.parameters,
    )


_TIMED = re.compile(r"^(perf|performance|time)\b|fps|per second|\(ms\)|/time$", re.IGNORECASE)
"""Tags that measure the machine and not the learning."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Determinism:
    """Whether the same seed gave the same learning twice."""

    tags: int
    """Logged tags that were compared, value by value, bit by bit."""
    iterations: int
    """Iterations of each run."""
    difference: str | None
    """The first difference in order of iterations; None where there is none."""

    @property
    def deterministic(self) -> bool:
        """Whether something was compared and nothing differs."""
        return self.tags > 0 and self.difference is None

    def __repr__(self) -> str:
        outcome = f"differs: {self.difference}" if self.difference else f"{self.tags} tags bit-equal"
        return f"Determinism({self.iterations} iterations, {outcome})"


def verify_determinism(
    task: Task | str,
    library: str = "rsl_rl",
    iterations: int = 5,
    *,
    num_envs: int = 64,
    timeout_s: float | None = None,
    **arguments: Any,
) -> Determinism:
    """Train twice with the same seed and compare all logged values and all learned parameters bit by bit.

    Args:
        task: A task, or its name.
        library: Name of the RL library.
        iterations: Learning iterations of each run.
        num_envs: Environments.
        timeout_s: Seconds that each run may take.
        arguments: Further arguments of :func:`rlnb.train`.

    Raises:
        CheckError: The runs would fail; nothing was started.
        RunError: One of them failed.
    """
    first, second = (
        train.train(
            task,
            library=library,
            max_iterations=iterations,
            num_envs=num_envs,
            warm=False,
            tags=["verify-determinism"],
            **arguments,
        ).wait(timeout_s)
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
        differences.append((iterations, "what was learned, though everything that was logged is equal"))
    return Determinism(tags=len(tags), iterations=iterations, difference=min(differences)[1] if differences else None)


def _learned(run: Run) -> object:
    """Return the digests of a training's parameters and running statistics; None where its library gives none."""
    ranks = ranks_of(run.result)
    return (ranks.parameters, ranks.buffers) if ranks else None


def _same(one: float | None, other: float | None) -> bool:
    return one == other or (one != one and other != other)  # NaN is not equal to itself
