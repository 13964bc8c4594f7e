"""The trials of a sweep: start them, report to Optuna, and record their values."""

from __future__ import annotations

import logging
import math
import re
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from rlnb.errors import NotFiniteError, RlnbError
from rlnb.records.owner import is_anothers
from rlnb.run import find
from rlnb.run.run import Run
from rlnb.spec import ENDED

if TYPE_CHECKING:
    import optuna

    from rlnb.spec import Json

logger = logging.getLogger(__name__)

POLL_S = 0.25
"""Shortest time in seconds between two looks at the running trials."""
LOOKS_PER_S = 20
"""Most looks at trials per second, which each take some milliseconds of the kernel."""
REPORTS = 50
"""Largest number of reports of a trial to the pruner. They are at the same iterations in every trial."""
NEVER_STARTED = "never_started"
"""Attribute of a trial whose kernel died before it made the run."""
TAIL = 0.1
"""Share of the last points whose mean is the value of a trial. A single point is too noisy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """How to choose, start and value the trials of a sweep."""

    space: Mapping[str, optuna.distributions.BaseDistribution]
    """Distribution of each parameter, by name."""
    n_trials: int
    """Total number of trials, including those of earlier kernels."""
    at_once: int
    """Number of trials that run at once."""
    metric: str
    """Metric that the pruner watches; without an objective also the value of a trial."""
    objective: Callable[[Run], float] | None
    """Function that returns the value of a finished run; None takes the mean of the metric's last tenth."""
    start: Callable[[Mapping[str, Json], int], Run]
    """Function that starts the run of a trial, given the values and the number of the trial."""
    start_array: Callable[[Mapping[int, Mapping[str, Json]]], Sequence[Run]] | None = None
    """Function that starts the runs of all trials as one array, given the values by number of the trial; None starts
    them one by one."""


class Driver:
    """Starts trials, reports their metric to Optuna, and cancels those that Optuna prunes."""

    def __init__(self, study: optuna.Study, search: Search, lock: IO[str]) -> None:
        self._study, self._search, self._lock = study, search, lock
        self._going: dict[int, tuple[optuna.Trial, Run]] = {}
        self._reported: dict[int, int] = {}
        self.error: Exception | None = None
        """The first error, after which no further trial is started; None while there is none."""
        self._stopped = threading.Event()
        self._beginning = threading.Lock()
        """Held while trials are started."""
        self._used_up = threading.Event()
        """Set once the sampler has no further values, such as that of a grid."""
        # Samplers stop the study once they have no further values. Optuna's own stop serves Study.optimize alone, and
        # raises an error in a study that is used by ask and tell.
        study.stop = self._used_up.set  # type: ignore[method-assign]

    def stop(self) -> None:
        """Start no further trials."""
        self._stopped.set()

    def stop_and_settle(self) -> None:
        """Start no further trials, and wait until those that are being started have their runs."""
        self.stop()
        with self._beginning:
            pass

    def drive(self) -> None:
        """Start trials and watch them until the last one has ended."""
        with self._lock:
            try:
                self._take_up()
            except Exception as exc:
                self._give_up(exc)
            while self._going or self._left() > 0:
                for trial, run in list(self._going.values()):
                    try:
                        self._look(trial, run)
                    except Exception as exc:  # the user's objective, or a full disk
                        self._going.pop(trial.number, None)
                        self._give_up(exc)
                try:
                    self._begin()
                except Exception as exc:
                    self._give_up(exc)
                if self._going:
                    time.sleep(max(POLL_S, len(self._going) / LOOKS_PER_S))

    def _give_up(self, exc: Exception) -> None:
        """Start no further trials; running trials are still watched."""
        self.error = self.error or exc
        self._stopped.set()
        logger.error("The sweep %s starts no further trials: %s", self._study.study_name, exc)

    def _left(self) -> int:
        """Return the number of trials that are still to be started."""
        if self._stopped.is_set():
            return 0
        from optuna.trial import TrialState

        trials = self._study.get_trials(deepcopy=False)
        waiting = sum(trial.state == TrialState.WAITING for trial in trials)
        left = self._search.n_trials - sum(
            trial.state != TrialState.WAITING and NEVER_STARTED not in trial.user_attrs for trial in trials
        )
        return min(left, waiting) if self._used_up.is_set() else left  # trials that wait have their values

    def _take_up(self) -> None:
        """Watch the running trials of an earlier kernel. A trial that has no run yet is tried again, as a new one."""
        from optuna import Trial
        from optuna.trial import TrialState, create_trial

        for record in self._study.get_trials(states=[TrialState.RUNNING]):
            trial = Trial(self._study, record._trial_id)
            run = runs_of(self._study.study_name).get(record.number)
            if run is None:
                trial.set_user_attr(NEVER_STARTED, True)
                again = create_trial(
                    state=TrialState.WAITING,
                    params=record.params,
                    distributions=record.distributions,
                    system_attrs=record.system_attrs,  # with the place in a grid, without which its sampler fails
                )
                self._study.add_trial(again)
                self._study.tell(trial, state=TrialState.FAIL)
                continue
            trial.set_user_attr("run", run.id)
            self._going[record.number] = trial, run
            self._reported[record.number] = max(record.intermediate_values, default=-1)

    def _begin(self) -> None:
        """Start as many trials as may run at once, or all of them as one array."""
        with self._beginning:
            if self._search.start_array is not None:
                self._start(self._left(), self._search.start_array)
                return
            while self._left() > 0 and len(self._going) < self._search.at_once:
                self._start(1, self._start_each)

    def _start_each(self, values: Mapping[int, Mapping[str, Json]]) -> Sequence[Run]:
        return [self._search.start(values[number], number) for number in values]

    def _start(self, count: int, start: Callable[[Mapping[int, Mapping[str, Json]]], Sequence[Run]]) -> None:
        """Choose the values of trials, start their runs, and watch them from now on."""
        from optuna.trial import TrialState

        trials = [self._study.ask(dict(self._search.space)) for _ in range(count)]
        try:
            runs = start({trial.number: trial.params for trial in trials}) if trials else ()
        except Exception:
            for trial in trials:
                self._study.tell(trial, state=TrialState.FAIL)
            raise
        for trial, run in zip(trials, runs, strict=True):
            trial.set_user_attr("run", run.id)
            self._going[trial.number] = trial, run

    def _look(self, trial: optuna.Trial, run: Run) -> None:
        """Report a trial's new values to Optuna. Cancel the run if Optuna prunes it; record its end if it has ended."""
        from optuna.trial import TrialState

        state = run.state  # read before the metrics, so that they hold all values of an ended run
        self._report(trial, run)
        if state not in ENDED:
            if trial.should_prune():
                run.cancel(save_s=0)
                trial.set_user_attr("pruned", True)
            return
        del self._going[trial.number]
        if state != "completed":
            pruned = trial.user_attrs.get("pruned", False)
            self._study.tell(trial, state=TrialState.PRUNED if pruned else TrialState.FAIL)
            return
        try:
            value = self._value(run)
        except NotFiniteError as exc:  # the objective has evaluated a policy that is not finite
            logger.warning("The trial %d of %s has failed: %s", trial.number, self._study.study_name, exc)
            value = math.nan
        except Exception:
            self._study.tell(trial, state=TrialState.FAIL)
            raise
        if math.isfinite(value):
            self._study.tell(trial, value)
        else:  # Optuna itself takes an infinite value for the best one
            self._study.tell(trial, state=TrialState.FAIL)

    def _report(self, trial: optuna.Trial, run: Run) -> None:
        if self._search.metric not in run.metrics:
            return
        series = run.metrics[self._search.metric]
        every = max(1, run.progress[1] // REPORTS)
        last = self._reported.get(trial.number, -1)
        for iteration, value in zip(map(round, series.iterations), series.values, strict=True):
            if iteration > last and (iteration + 1) % every == 0:
                trial.report(value, iteration)
                last = iteration
        self._reported[trial.number] = last

    def _value(self, run: Run) -> float:
        """Return the value of a finished run.

        Raises:
            RlnbError: The run never logged the metric.
        """
        if self._search.objective is not None:
            return float(self._search.objective(run))
        values = run.metrics[self._search.metric].values
        if not values:
            raise RlnbError(f"{run.id} never logged {self._search.metric!r}, so its trial has no value.")
        return statistics.fmean(values[-max(1, round(TAIL * len(values))) :])


def runs_of(sweep: str, *, own: bool = True) -> dict[int, Run]:
    """Return the runs of a sweep, archived ones included, by the trial number in their tags.

    Args:
        sweep: Name of the sweep.
        own: Whether the sweep is this user's, so that a run of another user is no trial, whatever its tags.
    """
    everything = (*find.runs(), *find.runs(archived=True))
    tagged = [run for run in everything if f"sweep:{sweep}" in run.manifest.tags]
    trials = [run for run in tagged if not own or not is_anothers(run.record)]
    matches = ((re.fullmatch(r"trial:(\d+)", tag, re.ASCII), run) for run in trials for tag in run.manifest.tags)
    return {int(match.group(1)): run for match, run in matches if match}
