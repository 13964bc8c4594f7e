"""The deep check of a task, which makes its env, steps it, and looks for mistakes in its observations and rewards."""

from __future__ import annotations

from rlnb.display.status import status
from rlnb.errors import Problem, RlnbError
from rlnb.simulation import simulator
from rlnb.spec import Manifest
from rlnb.tasks import requests

NUM_ENVS, STEPS = 16, 200


def examine(manifest: Manifest, *, warm: bool | None) -> list[Problem]:
    """Return the mistakes of a task that show when its env is stepped with random actions.

    Args:
        manifest: Request of a training, whose task, device and interpreter are used.
        warm: Whether the living simulator steps the env; None takes ``rlnb.options.warm``.
    """
    request = requests.Examine(
        task=manifest.task,
        num_envs=min(manifest.task.num_envs or NUM_ENVS, NUM_ENVS),
        steps=STEPS,
        seed=manifest.seed,
        device=manifest.resources.device,
    )
    try:
        with status(f"Stepping {manifest.task.id} {STEPS} times"):
            examination = simulator.request(request, manifest.python, manifest.asset_root, warm=warm)
    except RlnbError as exc:  # an error in the task's own code is what the check is for
        return [Problem(what=str(exc))]
    return [
        Problem(what=finding.what, fix=finding.fix, note=finding.level == "note") for finding in examination.findings
    ]
