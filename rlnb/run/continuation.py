"""The messages about a training that goes on or repeats another: where it continues, and what it has lost."""

from __future__ import annotations

import logging
from pathlib import Path

from rlnb.errors import RunError
from rlnb.records.facts import RunFacts, checkpoint_of
from rlnb.records.options import TrainOptions, options_of
from rlnb.records.repetition import differences
from rlnb.run.jobs import refuse_without_resuming

logger = logging.getLogger(__name__)


def iterations_of(run: RunFacts) -> dict[Path, float | None]:
    """Return the last iteration of each checkpoint; see :attr:`rlnb.records.checkpoints.Checkpoints.iterations`."""
    checkpoints = run.checkpoints  # listed once, since a training may add one
    return dict(zip(checkpoints, checkpoints.iterations, strict=True))


def what_is_left(
    run: RunFacts, max_iterations: int | None = None, checkpoint: str | Path | None = None, trust: bool = False
) -> TrainOptions:
    """Return the options of the next training job of a run; the arguments are those of :meth:`rlnb.Run.resume`.

    Raises:
        RunError: The library cannot resume, the run has no checkpoint, or no iterations are left.
    """
    refuse_without_resuming(run.record)
    start = checkpoint_of(run.record, checkpoint, to_resume=True)
    done, started, training = run.progress[0], run.record.last_started, run.record.training
    limit = max_iterations or (options_of(TrainOptions, training.folder).max_iterations if training else None)
    total = limit or (started.max_iterations if started else 0)
    # A cancelled or failed job restarts at its last checkpoint, so it may also end before the point it had reached.
    numbers = iterations_of(run)
    reached = numbers.get(run.path / start) or 0
    nothing_left = total <= (done if run.state == "completed" else reached)
    if total < 1 or (checkpoint is None and nothing_left):
        raise RunError(
            f"{run.id} has finished {done} iterations and would end at {total}: nothing is left to do. "
            f"Use run.resume(max_iterations={2 * done or 150}) to extend it."
        )
    # The manifest's max_iterations may be lower, if the run was extended before.
    lost = training is not None and not training.folder.result.exists()
    logged = run.record.folder.logged() if lost else {}
    return TrainOptions(checkpoint=start, trust=trust, max_iterations=total, logged=logged)


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
    """Warn of what a training could not restore or repeat; return whether it has said what it could."""
    started = run.started
    if started is not None and (unequal := differences(run.record)):
        logger.warning("The curve may differ from that of %s. %s", run.manifest.like, " ".join(unequal))
    if started is not None and started.losses:
        losses = "; ".join(f"{part}: {report}" for part, report in started.losses.items())
        logger.warning("%s was resumed without a part of its state. %s", run.id, losses)
    return started is not None
