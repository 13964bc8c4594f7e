"""Sizes in RL-Games' agent config that do not fit each other, or leave nothing to learn from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rlnb.plugin import Problem

CONFIG = "params.config."
SIZES = ("minibatch_size", "central_value_config.minibatch_size")
"""Values of ``params.config`` that have to divide the frames of a rank's iteration."""
HORIZON, SEQUENCE = f"{CONFIG}horizon_length", f"{CONFIG}seq_length"
NORMALIZES = f"{CONFIG}normalize_advantage"
SIZES_IN_CONFIG = frozenset(f"{CONFIG}{name}" for name in SIZES)
USUAL_SEQUENCE = 4
"""RL-Games' own length of a sequence of a recurrent network."""


def problems(values: Mapping[str, object], usual: Mapping[str, object], num_envs: int) -> Iterator[Problem]:
    """Find the sizes that do not fit each other.

    Args:
        values: The agent config by dotted path.
        usual: The same without the values that the user has set.
        num_envs: Number of envs of a rank.
    """
    horizon = values.get(HORIZON)
    if not isinstance(horizon, int):
        return
    sequence = _sequence(values)
    fit = horizon if horizon % sequence == 0 else max(1, round(horizon / sequence)) * sequence
    if fit * num_envs < 2 and values.get(NORMALIZES, True):  # the standard deviation of one advantage is nan
        fit = 2
        yield Problem(what="An iteration has 1 frame for each rank, but RL-Games needs 2.", fix=f"Use {HORIZON}={fit}.")
    elif fit != horizon:
        what = f"{HORIZON}={horizon} is not a multiple of {SEQUENCE}={sequence}, the steps of a recurrent network."
        yield Problem(what=what, fix=f"Use {HORIZON}={fit}.")
    # A size equal to the default is not a request: it appears in every dumped config file.
    requests = {path: size for path, size in values.items() if path in SIZES_IN_CONFIG and size != usual.get(path)}
    yield from _sizes_per_env(values)
    yield from _odd_sizes(requests, fit * num_envs, sequence)


def _sizes_per_env(values: Mapping[str, object]) -> Iterator[Problem]:
    """Find sizes for each env that are not positive. RL-Games reads them where there is no size for all envs."""
    for path in sorted(SIZES_IN_CONFIG - values.keys()):
        size = values.get(f"{path}_per_env")
        if isinstance(size, int) and size < 1:
            yield Problem(what=f"{path}_per_env={size} is not a positive number.", fix=f"Use {path}_per_env=1.")


def fitting(batch: int, most: int, sequence: int = 1) -> int:
    """Return the largest size of a minibatch, or else the smallest one that fits.

    It divides a batch, is made of whole sequences, and has two frames, since the gradient of a single one is noise.

    Args:
        batch: Frames of an iteration.
        most: Largest size that is wanted.
        sequence: Steps of a sequence of a recurrent network; 1 for other networks.
    """
    sizes = [size for size in range(sequence, batch + 1, sequence) if batch % size == 0 and size > 1] or [batch]
    return max((size for size in sizes if size <= most), default=sizes[0])


def fits(batch: int, size: int, sequence: int = 1) -> bool:
    """Return whether RL-Games trains with a size of a minibatch; see :func:`fitting` for the arguments."""
    return batch % size == 0 and size % sequence == 0


def _odd_sizes(sizes: Mapping[str, object], batch: int, sequence: int) -> Iterator[Problem]:
    for path, size in sorted(sizes.items()):
        if not isinstance(size, int) or fits(batch, size, sequence):
            continue
        if batch % size:
            what = f"{path}={size} does not divide the {batch} frames of an iteration."
        else:
            what = f"{path}={size} is not a multiple of {SEQUENCE}={sequence}, the steps of a recurrent network."
        yield Problem(what=what, fix=f"Use {path}={fitting(batch, size, sequence)}.")


def _sequence(values: Mapping[str, object]) -> int:
    """Return the steps of a sequence; 1 if the network is not recurrent."""
    if not any(path.startswith("params.network.rnn") and value is not None for path, value in values.items()):
        return 1
    length = values.get(SEQUENCE, USUAL_SEQUENCE)
    return length if isinstance(length, int) else USUAL_SEQUENCE
