"""A resumed training: its state, saved again at once, beside the checkpoint it came from; where its envs stand."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

RESTORED = "restored"
"""First word of the report of a part that is bit-equal to the checkpoint's."""

NAMED = 8
"""Parts of a part that its report names; of more it gives the number alone."""


def spread_episodes(env: Any, seed: int) -> None:
    """Have the envs of a resumed training stand at different times of their episodes, as when it was broken off.

    Its first reset puts all of them at the beginning. Rollouts are shorter than episodes, so that each would then show
    the learner one part of an episode only, and make it worse at the others. RSL-RL does the same at each of its
    starts (``init_at_random_ep_len``). The random numbers of the training are left alone.

    Args:
        env: As :func:`gymnasium.make` returns it, not reset yet.
        seed: Of the times.
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
    """Return what was restored and what was not, by top-level part of the checkpoint.

    Args:
        checkpoint: File that was vetted and loaded, written by ``torch.save``.
        save: ``function(path)`` that saves the present state as the library does.
    """
    import torch

    with tempfile.TemporaryDirectory(prefix="rlnb-restored-") as folder:
        copy = Path(folder) / f"again{checkpoint.suffix}"
        save(str(copy))
        # Not weights only: a checkpoint that holds more was trusted, and the library has just loaded it so.
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
