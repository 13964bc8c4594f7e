"""Report what a resumed training restored, and randomise where each env is in its episode."""

from __future__ import annotations

import filecmp
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rlnb.contracts.libraries import STEM, Library
from rlnb.storage import entries
from rlnb.storage.entries import files_below
from rlnb.worker.jobs.checkpoints import saves_recorded

RESTORED, LOST = "restored", "NOT restored"
"""Begin of the report of a part that is bit-equal to the checkpoint's, and of one that is not."""

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


def restored(checkpoint: Path, save: Callable[[str], object], library: Library | None = None) -> dict[str, str]:
    """Return a report for each part of the checkpoint: restored, or not and why.

    The parts are the top-level entries of a file, the files of a folder, and the companions.

    Args:
        checkpoint: Checkpoint that was vetted and loaded.
        save: ``function(path)`` that saves the current state as the library does, companions included.
        library: The library, which names the companions; None has none.
    """
    with tempfile.TemporaryDirectory(prefix="rlnb-restored-") as folder, saves_recorded(None):
        copy = Path(folder) / f"again{checkpoint.suffix}"
        save(str(copy))
        reports = _folder_reports(checkpoint, copy) if checkpoint.is_dir() else _reports(checkpoint, copy)
        for name in library.checkpoint_companions if library else ():
            then, now = (path.with_name(name.replace(STEM, path.stem)) for path in (checkpoint, copy))
            if then.exists() or now.exists():  # not every algorithm of a library has every companion
                reports[_part_of(name)] = _compare_files(then, now)
        return reports


def _part_of(companion: str) -> str:
    """Return the name of a companion as a part of the checkpoint, e.g. ``"replay_buffer"``."""
    return Path(companion.replace(STEM, "")).stem.strip("._-") or companion


def _reports(checkpoint: Path, copy: Path) -> dict[str, str]:
    then, now = _load(checkpoint), _load(copy)
    return {str(part): _compare(then[part], now, part) for part in then}


def _folder_reports(checkpoint: Path, copy: Path) -> dict[str, str]:
    names = sorted(path.relative_to(checkpoint) for path in files_below(checkpoint))
    return {str(name): _compare_files(checkpoint / name, copy / name) for name in names}


def _load(path: Path) -> Mapping[Any, Any]:
    """Return the content of a file; that of an ``.npz`` file is read entry by entry, when it is used."""
    if path.suffix == ".json":
        content: Mapping[Any, Any] = json.loads(entries.read_text(path))
        return content
    if path.suffix == ".npz":
        import numpy as np

        return np.load(path, allow_pickle=False)
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    import torch

    # weights_only=False is safe: a checkpoint that holds more was trusted, and the library has just loaded it.
    loaded: Mapping[Any, Any] = torch.load(path, map_location="cpu", weights_only=False)
    return loaded


def _compare_files(then: Path, now: Path) -> str:
    """Return whether a companion, or a file of a folder, is the same as before."""
    if not then.exists():
        return f"{LOST}: {then.name} does not exist"
    if not now.exists():
        return LOST
    if filecmp.cmp(then, now, shallow=False):
        return f"{RESTORED}: {then.stat().st_size:,} bytes"
    if then.suffix not in (".npz", ".safetensors", ".json", ".pt", ".pth"):
        return f"{LOST}: its bytes differ"
    before, after = _load(then), _load(now)
    different = [
        name
        for name in {**dict.fromkeys(before), **dict.fromkeys(after)}
        if name not in before or name not in after or _compare(before[name], after, name).startswith(LOST)
    ]
    if different:
        return f"{LOST}: {len(different)} of {len(before)} values differ, first {different[0]}"
    return f"{RESTORED}: {len(before)} values ({', '.join(map(str, before))})"


def _compare(then: Any, state: Mapping[Any, Any], part: Any) -> str:
    if part not in state:
        return LOST
    before, after = dict(_leaves(then)), dict(_leaves(state[part]))
    different = [path for path in {**before, **after} if not _same(before.get(path), after.get(path))]
    if different:
        return f"{LOST}: {len(different)} of {len(before)} values differ, first {different[0] or part}"
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
    import numpy as np

    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")
    torch = sys.modules.get("torch")  # a library without tensors may do without it
    tensors = [] if torch is None else [isinstance(value, torch.Tensor) for value in (one, other)]
    if torch is not None and all(tensors):
        alike = (one.dtype, one.shape) == (other.dtype, other.shape)
        return alike and bool(torch.allclose(one, other, rtol=0.0, atol=0.0, equal_nan=True))
    if any(tensors):
        return False
    return type(one) is type(other) and bool(one == other or (one != one and other != other))
