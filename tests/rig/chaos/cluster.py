"""Trainings on Slurm, and the faults of Slurm itself."""

from __future__ import annotations

import subprocess

import rlnb
from chaos.world import Subject, World
from rlnb.spec import ENDED

FAULTS_ON_SLURM = (
    *("kill_agent", "kill_worker", "term_agent", "segv_worker", "stop_worker", "kill_kernel", "resume_at_once"),
    *("delete_and_resume", "storm", "cancel", "cancel_at_the_end", "tear_events", "tear_checkpoint", "odd_entries"),
    *("cancel_job", "controller_down", "node_down"),
)
"""Faults of trainings on Slurm. The others change records of processes of this machine."""


def on_slurm(slurm: object) -> Subject:
    """Return the trainings of the echo library on one or two nodes of a Slurm.

    Args:
        slurm: The ``Slurm`` of ``tests/rig/slurm.py``.
    """
    return Subject(
        arguments={"agent": {"iteration_s": 0.05}},
        launchers=tuple(rlnb.slurm(nodes=nodes, walltime="00:10:00") for nodes in (1, 2)),
        slurm=slurm,
        pause=10.0,
        settle_s=120.0,
        begin_s=60.0,
    )


def cancel_job(world: World) -> bool:
    """Cancel a job with Slurm's own command."""
    jobs = world.subject.slurm.jobs() if world.subject.slurm else []
    if jobs:
        subprocess.run(["scancel", world.rng.choice(jobs).split()[0]], check=False)
    return bool(jobs)


def controller_down(world: World) -> bool:
    """Kill Slurm's controller, and start it again when the faults are healed."""
    slurm = world.subject.slurm
    if slurm is None:
        return False
    slurm.stop_controller()
    world.heals.append(slurm.start_controller)
    return True


def node_down(world: World) -> bool:
    """Kill a node with all that runs on it, and start it again when the faults are healed."""
    slurm = world.subject.slurm
    if slurm is None or all(run.state in ENDED for run in rlnb.runs()):
        return False
    number = world.rng.randrange(slurm.nodes)
    slurm.kill_node(number)
    world.heals.append(lambda: slurm.start_node(number))
    return True
