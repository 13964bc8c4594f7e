"""The trials of a sweep, from their start to what Optuna is told of them."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any

from rlnb.errors import RlnbError
from rlnb.run import find
from rlnb.run.run import Run
from rlnb.spec import ENDED

if TYPE_CHECKING:
    import optuna

logger = logging.getLogger(__name__)

POLL_S = 1.0
REPORTS = 50
"""How often a trial tells the pruner its metric, at most: at the same iterations in every trial."""
TAIL = 0.1
"""Share of the last points whose mean is a trial's value: a single one is noise."""


class Driver:
    """Starts trials, tells Optuna how they do, and ends those that it gives up; in a thread of its own."""

    def __init__(
        self,
        study: optuna.Study,
        space: Mapping[str, optuna.distributions.BaseDistribution],
        n_trials: int,
        at_once: int,
        metric: str,
        objective: Callable[[Run], float] | None,
        start: Callable[[Mapping[str, Any], int], Run],
        lock: IO[str],
    ) -> None:
        self._study, self._space, self._n_trials, self._at_once = study, dict(space), n_trials, at_once
        self._metric, self._objective, self._start, self._lock = metric, objective, start, lock
        self._going: dict[int, tuple[optuna.Trial, Run]] = {}
        self._told: dict[int, int] = {}
        self.error: Exception | None = None
        """What keeps it from starting further trials; the first thing that went wrong."""
        self._stopped = threading.Event()
        self.thread = threading.Thread(target=self._drive, name=f"rlnb-sweep {study.study_name}", daemon=True)

    def stop(self) -> None:
        """Start no further trials."""
        self._stopped.set()

    def _drive(self) -> None:
        with self._lock:
            try:
                self._take_up()
            except Exception as exc:
                self._give_up(exc)
            while self._going or self._left() > 0:
                for trial, run in list(self._going.values()):
                    try:
                        self._look(trial, run)
                    except Exception as exc:  # an objective of a person's own, a disk that is full
                        self._going.pop(trial.number, None)
                        self._give_up(exc)
                try:
                    while self._left() > 0 and len(self._going) < self._at_once:
                        self._begin()
                except Exception as exc:
                    self._give_up(exc)
                time.sleep(POLL_S)

    def _give_up(self, exc: Exception) -> None:
        """Start no further trials; those that go on are still looked after."""
        self.error = self.error or exc
        self._stopped.set()
        logger.error("The sweep %s starts no further trials: %s", self._study.study_name, exc)

    def _left(self) -> int:
        """Return how many trials are still to be started."""
        return 0 if self._stopped.is_set() else self._n_trials - len(self._study.trials)

    def _take_up(self) -> None:
        """Go on with what an earlier kernel started; a trial that it had no time to start is given up."""
        from optuna import Trial
        from optuna.trial import TrialState

        for known in self._study.get_trials(states=[TrialState.RUNNING]):
            trial = Trial(self._study, known._trial_id)
            run = runs_of(self._study.study_name).get(known.number)
            if run is None:
                self._study.tell(trial, state=TrialState.FAIL)
                continue
            trial.set_user_attr("run", run.id)
            self._going[known.number] = trial, run
            self._told[known.number] = max(known.intermediate_values, default=-1)

    def _begin(self) -> None:
        from optuna.trial import TrialState

        trial = self._study.ask(self._space)
        try:
            run = self._start(trial.params, trial.number)
        except Exception:
            self._study.tell(trial, state=TrialState.FAIL)
            raise
        trial.set_user_attr("run", run.id)
        self._going[trial.number] = trial, run

    def _look(self, trial: optuna.Trial, run: Run) -> None:
        """Tell Optuna what is new of a trial; end it where there is no hope, or note its end."""
        from optuna.trial import TrialState

        state = run.state  # before the metrics: what it logged before its end is in them then
        self._report(trial, run)
        if state not in ENDED:
            if trial.should_prune():
                run.cancel()
                trial.set_user_attr("pruned", True)
            return
        del self._going[trial.number]
        if state != "completed":
            pruned = trial.user_attrs.get("pruned", False)
            self._study.tell(trial, state=TrialState.PRUNED if pruned else TrialState.FAIL)
            return
        try:
            value = self._value(run)
        except Exception:
            self._study.tell(trial, state=TrialState.FAIL)
            raise
        self._study.tell(trial, value)

    def _report(self, trial: optuna.Trial, run: Run) -> None:
        if self._metric not in run.metrics:
            return
        series = run.metrics[self._metric]
        every = max(1, run.progress[1] // REPORTS)
        told = self._told.get(trial.number, -1)
        for iteration, value in zip(map(round, series.iterations), series.values, strict=True):
            if iteration > told and (iteration + 1) % every == 0:
                trial.report(value, iteration)
                told = iteration
        self._told[trial.number] = told

    def _value(self, run: Run) -> float:
        """Return what a finished run is worth.

        Raises:
            RlnbError: It never logged the metric.
        """
        if self._objective is not None:
            return float(self._objective(run))
        values = run.metrics[self._metric].values
        if not values:
            raise RlnbError(f"{run.id} never logged {self._metric!r}, so its trial has no value.")
        last = values[-max(1, round(TAIL * len(values))) :]
        return sum(last) / len(last)


def runs_of(sweep: str) -> dict[int, Run]:
    """Return the runs of a sweep by the number of their trial: by what they were started with, archived ones too."""
    everything = (*find.runs(), *find.runs(archived=True))
    mine = [run for run in everything if f"sweep:{sweep}" in run.manifest.tags]
    found = ((re.fullmatch(r"trial:(\d+)", tag), run) for run in mine for tag in run.manifest.tags)
    return {int(number.group(1)): run for number, run in found if number}
