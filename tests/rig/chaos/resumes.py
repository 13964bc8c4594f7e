"""Several processes of two hosts resume one run at the same moment. Exactly one may be accepted."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import rlnb
from chaos.kernels import Call, Kernel, at_once, second_host

WAIT_S = 60.0
ITERATIONS = 6
"""Iterations that each try adds."""


@dataclass(kw_only=True, slots=True)
class Tries:
    """What several tries came to."""

    count: int = 0
    processes: int = 0
    violations: list[str] = field(default_factory=list)


def tries(root: Path, count: int, seed: int) -> Tries:
    """Resume one run again and again, each time by two to five processes; return what was wrong.

    Args:
        root: Empty folder of runs, which ``RLNB_ROOT`` names.
        count: Number of tries.
        seed: Seed of the number of processes and of their delays.
    """
    rng, done = random.Random(seed), Tries()
    kernels = [Kernel(elsewhere=number >= 3 and second_host()) for number in range(5)]
    try:
        run = rlnb.train("Echo", library="echo", max_iterations=ITERATIONS).wait(WAIT_S)
        for _ in range(count):
            done.count += 1
            _try(run, rng.sample(kernels, rng.randint(2, 5)), rng, done)
        if run.metrics["reward"].iterations != [*range((count + 1) * ITERATIONS)]:
            done.violations.append(f"the curve has gaps or repeats: {run.metrics['reward'].iterations}")
    finally:
        for kernel in kernels:
            kernel.kill()
    return done


def _try(run: rlnb.Run, kernels: list[Kernel], rng: random.Random, done: Tries) -> None:
    before, total = len(run.jobs), run.progress[1] + ITERATIONS
    arguments: dict[str, object] = {"max_iterations": total}
    calls = [
        Call(verb="resume", run=run.path, arguments=arguments, at_s=rng.choice((0.0, 0.0, 0.003, 0.01, 0.1)))
        for _ in kernels
    ]
    answers = at_once(kernels, calls)
    done.processes += len(kernels)
    run.wait(WAIT_S)
    accepted = answers.count("accepted")
    refused = [answer for answer in answers if answer.startswith("refused")]
    if accepted != 1 or accepted + len(refused) != len(answers):
        done.violations.append(f"try {done.count}: {answers}")
    if len(run.jobs) != before + 1 or len(run.record.folder.jobs()) != before + 1 or run.progress != (total, total):
        names = [job.path.name for job in run.record.folder.jobs()]
        done.violations.append(f"try {done.count}: jobs {names[-4:]}, progress {run.progress} of {total}")
