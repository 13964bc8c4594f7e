"""The environment of a job's process: the agent's own, without the variables of jobs and sessions around it.

Its folder for temporary files is this user's own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from rlnb.launch.command import BY_RLNB, SAFE_PATH, ranks_of, runs_rlnb, runs_worker
from rlnb.machine import threads
from rlnb.storage import temporary

PLACE = frozenset(
    {
        *("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME"),
        *("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
        *("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS"),
        *("TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_ERROR_FILE"),
        *("JAX_RANK", "JAX_LOCAL_RANK", "JAX_WORLD_SIZE", "JAX_COORDINATOR_ADDR", "JAX_COORDINATOR_PORT"),
    }
)
"""Variables that give a process its place among several, as torchrun and the operators of pods set them.

A notebook in a pod has those of the pod. A worker would take them for its own, and wait for ranks that never come. The
ranks of a run get theirs from torchrun.
"""
TORCHRUN_OPTIONS = "PET_"
"""Prefix of the variables that set torchrun's options. Kubeflow's operators set them in their pods."""
SESSION = frozenset({"LIVESTREAM", "XR", "HEADLESS"})
"""Variables of a user's session with Isaac Sim. Two workers that stream would both need port 49100."""


def environment(argv: Sequence[str], variables: Mapping[str, str], *, at_once: int = 1) -> dict[str, str]:
    """Return the environment of a process.

    Args:
        argv: Command of the process. A user's script keeps the variables of ``SESSION``, which it may read itself.
        variables: Variables of the command, which take precedence.
        at_once: Jobs that may run on this machine at the same time.
    """
    foreign = PLACE | SESSION if runs_worker(argv) else PLACE
    own = (name for name in os.environ if name not in foreign and not name.startswith(TORCHRUN_OPTIONS))
    kept = {name: os.environ[name] for name in own}
    if runs_rlnb(argv) and not kept.get(SAFE_PATH):
        kept[SAFE_PATH] = BY_RLNB
    merged = {**kept, **temporary.variables(), **variables}
    waits = {} if runs_worker(argv) else threads.short_waits(merged)  # a worker sees to its own
    return {**merged, **waits, **threads.variables(merged, ranks=ranks_of(argv), at_once=at_once)}
