"""The trials of a sweep: start them, report to Optuna, and record their values."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import math
import os
import re
import stat
import statistics
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from rlnb.errors import NotFiniteError, RlnbError
from rlnb.records.trust import may_be_foreign
from rlnb.run import selection
from rlnb.run.run import Run
from rlnb.settings import options
from rlnb.spec import ENDED, Task
from rlnb.storage import files
from rlnb.storage.access import Folder, another_owner
from rlnb.storage.serial import to_json

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
        self._study, self.search, self._lock = study, search, lock
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

    @property
    def is_stopping(self) -> bool:
        """Whether no further trial starts, because the user has stopped the search."""
        return self._stopped.is_set()

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
        left = self.search.n_trials - sum(
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
            if self.search.start_array is not None:
                self._start(self._left(), self.search.start_array)
                return
            while self._left() > 0 and len(self._going) < self.search.at_once:
                self._start(1, self._start_each)

    def _start_each(self, values: Mapping[int, Mapping[str, Json]]) -> Sequence[Run]:
        return [self.search.start(values[number], number) for number in values]

    def _start(self, count: int, start: Callable[[Mapping[int, Mapping[str, Json]]], Sequence[Run]]) -> None:
        """Choose the values of trials, start their runs, and watch them from now on."""
        from optuna.trial import TrialState

        trials = [self._study.ask(dict(self.search.space)) for _ in range(count)]
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
        if self.search.metric not in run.metrics:
            return
        series = run.metrics[self.search.metric]
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
        if self.search.objective is not None:
            return float(self.search.objective(run))
        values = run.metrics[self.search.metric].values
        if not values:
            raise RlnbError(f"{run.id} never logged {self.search.metric!r}, so its trial has no value.")
        return statistics.fmean(values[-max(1, round(TAIL * len(values))) :])


def runs_of(sweep: str, *, own: bool = True) -> dict[int, Run]:
    """Return the runs of a sweep, archived ones included, by the trial number in their tags.

    Args:
        sweep: Name of the sweep.
        own: Whether the sweep is this user's, so that a run of another user is no trial, whatever its tags.
    """
    everything = (*selection.runs(), *selection.runs(archived=True))
    tagged = [run for run in everything if f"sweep:{sweep}" in run.manifest.tags]
    trials = [run for run in tagged if not own or not may_be_foreign(run.record)]
    matches = ((re.fullmatch(r"trial:(\d+)", tag, re.ASCII), run) for run in trials for tag in run.manifest.tags)
    return {int(match.group(1)): run for match, run in matches if match}


# -- the journal -----------------------------------------------------------------------------------------------------


def storage(path: Path) -> optuna.storages.BaseStorage:
    """Return Optuna's journal in a file. It is append-only, so it survives a kill and works on a shared file system.

    Raises:
        RlnbError: The file is a link of another user, or no regular file.
    """
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    os.close(_opened(path, os.O_RDONLY))
    return JournalStorage(JournalFileBackend(str(path)))


def require_own(path: Path, name: str) -> None:
    """Refuse to drive a sweep of which another user has made a file, and so decides what it holds.

    Args:
        path: File of the journal.
        name: Name of the sweep.

    Raises:
        RlnbError: The journal, or a lock of it, belongs to another user.
    """
    if options.team:
        return
    for file in (path, path.with_suffix(".lock"), path.with_name(f"{path.name}.lock")):  # the last one is Optuna's
        with contextlib.suppress(FileNotFoundError):
            if (owner := another_owner(file, file.parent)) is not None:
                raise RlnbError(
                    f"The sweep {name!r} is the user {owner}'s: {file} belongs to that user. Use another name."
                )


def is_own(path: Path) -> bool:
    """Return whether a journal is this user's, or is gone."""
    try:
        return another_owner(path, path.parent) is None
    except OSError:
        return True


def hold(path: Path, name: str) -> IO[str]:
    """Take and return the lock of a sweep, which only one kernel may drive.

    Raises:
        RlnbError: Another kernel holds the lock.
    """
    import fcntl  # Windows has none, and imports this module too

    lock = open(_opened(path, os.O_WRONLY), "w")  # noqa: SIM115  held by the driver
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        lock.close()
        raise RlnbError(
            f"Another kernel drives {name!r}. Read its trials with rlnb.studies.get_sweep({name!r})."
        ) from exc
    return lock


def _opened(path: Path, access: int) -> int:
    """Open a regular file, which is made if it does not exist, and return its descriptor."""
    access |= getattr(os, "O_NONBLOCK", 0)  # a pipe would block
    with Folder(path.parent) as folder:
        try:
            descriptor = folder.open(path.name, access)
        except FileNotFoundError:
            descriptor = folder.open(path.name, access | os.O_CREAT, files.file_mode(path.parent))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise RlnbError(f"{path} is not a regular file. Move it away.")
    return descriptor


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchDescription:
    """Description of a search, as text. The journal keeps it, so that a sweep continues only with the same search."""

    task: str
    """Id of the task."""
    library: str
    """Name of the RL library."""
    metric: str
    """Name or raw tag of the metric."""
    direction: Literal["maximize", "minimize"]
    """Whether more or less of the metric is better."""
    space: str
    """The search space."""
    arguments: str
    """Task settings and training arguments that all trials share, as JSON."""

    def write(self, study: optuna.Study) -> None:
        """Write the description into a study that has none; refuse a study of another search.

        Raises:
            RlnbError: The study has another description.
        """
        for field in dataclasses.fields(self):
            name, text = field.name, getattr(self, field.name)
            record = study.direction.name.lower() if name == "direction" else study.user_attrs.get(name, text)
            if record != text:
                raise RlnbError(
                    f"The sweep {study.study_name!r} has {name}={record!r}, not {text!r}. Use another name."
                )
            if name not in study.user_attrs:
                study.set_user_attr(name, text)


def common(task: Task, **arguments: Any) -> str:
    """Return the task settings and training arguments that all trials of a sweep share, as JSON."""
    of_task = {field.name: getattr(task, field.name) for field in dataclasses.fields(task)}
    common = {**of_task, **arguments}
    for name in (
        "id",
        "source",
        "launcher",
        "tags",
    ):  # id is a field of its own; the others do not affect the results
        common.pop(name, None)
    values = {name: value for name, value in common.items() if value not in (None, (), {}, "")}
    origin = values.get("init_from")
    values |= {"init_from": _text(origin)} if origin is not None else {}
    inputs = values.get("inputs")
    values |= {"inputs": {name: _text(one) for name, one in inputs.items()}} if isinstance(inputs, Mapping) else {}
    return json.dumps(to_json(values), sort_keys=True)


def _text(origin: object) -> str:
    """Return the id of a run, or the path of a file."""
    return str(getattr(origin, "id", origin))


# -- sampling --------------------------------------------------------------------------------------------------------


SEED = 0
"""Seed of every kernel, so that a sweep that is continued takes the next points of the same sequence."""


def at_once_sampler(space: Mapping[str, optuna.distributions.BaseDistribution]) -> optuna.samplers.BaseSampler:
    """Return a sampler that needs no result of a trial.

    A grid covers a space of choices: no combination comes twice before each came once. Any other space is covered by a
    scrambled Sobol sequence, more evenly than by random values (Bergstra and Bengio, JMLR 2012, section 5).

    Args:
        space: Distribution of each parameter, by name.
    """
    import optuna

    choices = {
        name: list(one.choices)
        for name, one in space.items()
        if isinstance(one, optuna.distributions.CategoricalDistribution)
    }
    if len(choices) == len(space):
        return optuna.samplers.GridSampler(choices, seed=SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.QMCSampler(scramble=True, seed=SEED, warn_independent_sampling=False)
