"""Loads the weights of a checkpoint: PPO has an actor and a critic, distillation has a student.

An algorithm of RSL-RL silently ignores the parts of a checkpoint that it does not use.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from rsl_rl.runners import OnPolicyRunner

from rlnb import RlnbError
from rlnb_rsl_rl.former import converted


def start_from(runner: OnPolicyRunner, checkpoint: Path, device: str) -> None:
    """Load the weights of another run of the same algorithm.

    Args:
        runner: Runner whose weights to set.
        checkpoint: File that ``vet_checkpoint`` has accepted.
        device: ``"cpu"`` or ``"cuda:N"``.

    Raises:
        RlnbError: The checkpoint is from another algorithm.
    """
    _load(runner, checkpoint, device, {"actor": True, "critic": True, "student": True})


def load_policy(runner: OnPolicyRunner, checkpoint: Path, device: str, *, trust: bool) -> None:
    """Load the weights of the policy, an actor or a student.

    Args:
        runner: Runner whose weights to set.
        checkpoint: File that ``vet_checkpoint`` has accepted.
        device: ``"cpu"`` or ``"cuda:N"``.
        trust: Whether the checkpoint may contain more than weights.

    Raises:
        RlnbError: The checkpoint is from another algorithm, or its weights did not reach the policy.
    """
    policy, algorithm = runner.alg.get_policy(), type(runner.alg).__name__
    fresh = {name: value.clone() for name, value in policy.state_dict().items()}
    _load(runner, checkpoint, device, {"actor": True, "student": True})
    if not _same(policy.state_dict(), fresh):
        return
    state = torch.load(checkpoint, map_location=device, weights_only=not trust)
    parts = converted(state) or state
    if not any(_same(part, fresh) for part in parts.values()):
        raise RlnbError(
            f"The policy does not have the weights of {checkpoint.name}: {algorithm}.load() left the random weights in "
            "place. Use an algorithm whose load() accepts 'actor' or 'student'."
        )


def _load(runner: OnPolicyRunner, checkpoint: Path, device: str, parts: dict[str, bool]) -> None:
    try:
        # vet_checkpoint has accepted the file, and RSL-RL itself reads it in the same way.
        if former := converted(torch.load(checkpoint, map_location=device, weights_only=False)):
            runner.alg.load(former, parts, strict=True)
        else:
            runner.load(str(checkpoint), map_location=device, load_cfg=parts)
    except KeyError as exc:
        algorithm = type(runner.alg).__name__
        raise RlnbError(
            f"{checkpoint.name} is not a checkpoint of {algorithm}: it has no {exc}. Use a run with {algorithm}."
        ) from exc


def _same(part: Any, state: Mapping[str, torch.Tensor]) -> bool:
    """Return whether a part of a checkpoint equals a module's state."""
    return (
        isinstance(part, Mapping)
        and part.keys() == state.keys()
        and all(torch.equal(part[name], value) for name, value in state.items())
    )
