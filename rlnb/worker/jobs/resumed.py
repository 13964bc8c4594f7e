"""Resumed trainings: a report of the parts of a checkpoint that were restored, and random times in the episodes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

RESTORED = "restored"
"""First word of the report of a part that is bit-equal to the checkpoint's."""

NAMED = 8
"""Maximum number of entries of a part that its report names. For more entries it gives only their number."""


def spread_episodes(env: Any, seed: int) -> None:
    """Start the envs of a resumed training at different times in their episodes, as they were when it stopped.

    The first reset puts all envs at the beginning of an episode. Rollouts are shorter than episodes, so each rollout
    would show the learner only one part of an episode, and make it worse at the others. RSL-RL does the same at every
    start (``init_at_random_ep_len``). The training's own random number generators are not used.

    Args:
        env: The env as :func:`gymnasium.make` returns it, not reset yet.
        seed: Seed of the times.
    """
    import torch

    raw = env.unwrapped
    reset = raw.reset

    def first(*arguments: Any, **options: Any) -> Any:
        result = reset(*arguments, **options)
        raw.reset = reset
        passed = raw.episode_length_buf
        of_it = torch.Generator(passed.device).manual_seed(seed)
        passed.random_(0, max(1, int(raw.max_episode_length)), generator=of_it)
        return result

    raw.reset = first


def restored(checkpoint: Path, save: Callable[[str], object]) -> dict[str, str]:
    """Return a report for each top-level part of the checkpoint: restored, or not and why.

    Args:
        checkpoint: File that was vetted and loaded, written by ``torch.save``.
        save: ``function(path)`` that saves the current state as the library does.
    """
    import torch

    with tempfile.TemporaryDirectory(prefix="rlnb-restored-") as folder:
        copy = Path(folder) / f"again{checkpoint.suffix}"
        save(str(copy))
        # weights_only=False is safe: a checkpoint that holds more was trusted, and the library has just loaded it.
        then, now = (torch.load(path, map_location="cpu", weights_only=False) for path in (checkpoint, copy))
    return {str(part): _compare(then[part], now, part) for part in then}


def _compare(then: Any, state: Mapping[Any, Any], part: Any) -> str:
    if part not in state:
        return "NOT restored"
    before, after = dict(_leaves(then)), dict(_leaves(state[part]))
    different = [path for path in {**before, **after} if not _same(before.get(path), after.get(path))]
    if different:
        return f"NOT restored: {len(different)} of {len(before)} values differ, first {different[0] or part}"
    numbers = [value for value in before.values() if isinstance(value, (int, float))]
    if len(before) == 1 == len(numbers):
        return f"{RESTORED}: {numbers[0]}"
    inside = f" ({', '.join(map(str, then))})" if isinstance(then, Mapping) and len(then) <= NAMED else ""
    return f"{RESTORED}: {len(before)} values{inside}"


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        items: Any = value.items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    else:
        yield path, value
        return
    for key, item in items:
        yield from _leaves(item, f"{path}.{key}" if path else str(key))


def _same(one: Any, other: Any) -> bool:
    import torch

    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        alike = (one.dtype, one.shape) == (other.dtype, other.shape)
        return alike and torch.allclose(one, other, rtol=0.0, atol=0.0, equal_nan=True)
    if isinstance(one, torch.Tensor) or isinstance(other, torch.Tensor):
        return False
    return type(one) is type(other) and bool(one == other or (one != one and other != other))
