"""The messages about a training that goes on: where it continues, and what it has lost."""

from __future__ import annotations

import logging
from pathlib import Path

from rlnb.records.facts import RunFacts
from rlnb.records.options import TrainOptions

logger = logging.getLogger(__name__)


def iterations_of(run: RunFacts) -> dict[Path, float | None]:
    """Return the last iteration of each checkpoint; see :attr:`rlnb.records.checkpoints.Checkpoints.iterations`."""
    checkpoints = run.checkpoints  # listed once, since a training may add one
    return dict(zip(checkpoints, checkpoints.iterations, strict=True))


def say_where(run: RunFacts, rest: TrainOptions, done: int) -> None:
    """Log the iteration that the training continues from; warn if more is lost than a checkpoint interval.

    Args:
        run: The run.
        rest: Options of the job that continues the training.
        done: Number of iterations that were finished before.
    """
    numbers = iterations_of(run)
    last = numbers.get(run.path / str(rest.checkpoint))
    if last is None:
        return
    begin = int(last) + 1
    logger.info("%s continues from %s, at iteration %d of %s.", run.id, rest.checkpoint, begin, rest.max_iterations)
    earlier = [number for number in numbers.values() if number is not None and number < last]
    interval = last - max(earlier, default=-1)
    if done - begin > interval:
        logger.warning("%s had finished %d iterations. %d of them are trained again.", run.id, done, done - begin)


def say_losses(run: RunFacts) -> bool:
    """Warn of what a resumed training could not restore; return whether the training has said what it could."""
    started = run.started
    if started is not None and started.losses:
        losses = "; ".join(f"{part}: {report}" for part, report in started.losses.items())
        logger.warning("%s was resumed without a part of its state. %s", run.id, losses)
    return started is not None
