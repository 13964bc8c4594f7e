"""Search for parameters with Optuna. Every trial is an ordinary run, and the search survives the kernel."""

from __future__ import annotations

import logging
import math
import re
import secrets
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rlnb.display.live_objects import live_objects
from rlnb.display.server import Sidecar
from rlnb.display.table import cell, table
from rlnb.errors import RlnbError, unknown
from rlnb.hooks import plugins
from rlnb.launch.local import LocalLauncher
from rlnb.machine.packages import install_line
from rlnb.run import selection
from rlnb.run.listing import Runs
from rlnb.run.run import Run
from rlnb.settings import options
from rlnb.spec import Task
from rlnb.storage import entries, files
from rlnb.storage.files import whole
from rlnb.studies.space import Trainings, check, grid_size
from rlnb.studies.trials import (
    Driver,
    Search,
    SearchDescription,
    at_once_sampler,
    common,
    hold,
    is_own,
    require_own,
    runs_of,
    storage,
)
from rlnb.tasks.task import as_task

if TYPE_CHECKING:
    import optuna
    import pandas as pd
    import plotly.graph_objects as go

    from rlnb.contracts.launchers import Launcher
    from rlnb.spec import Json
    from rlnb.studies.space import Space

logger = logging.getLogger(__name__)
TELLING = 4
"""Number of complete trials that importances need."""


class Sweep:
    """A search for parameters, stored in ``<root>/sweeps/<name>.journal``.

    :func:`rlnb.sweep` returns one whose trials this kernel starts; :func:`rlnb.studies.get_sweep` returns one to read.

    Args:
        name: Name of the sweep.
        path: File of the journal.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        """Name of the sweep."""
        self._path = path
        self._driver: Driver | None = None
        self._thread: threading.Thread | None = None

    @property
    def study(self) -> optuna.Study:
        """The Optuna study, read from disk."""
        import optuna

        return optuna.load_study(study_name=self.name, storage=storage(self._path))

    @property
    def runs(self) -> Runs:
        """The runs of the sweep, one for each trial, newest first."""
        runs = runs_of(self.name, own=is_own(self._path))
        return Runs([runs[number] for number in sorted(runs, reverse=True)])

    @property
    def best(self) -> Run:
        """The run of the best complete trial. A value that is nan or infinite is never the best.

        Raises:
            RlnbError: No trial is complete yet.
        """
        import optuna

        study = self.study
        complete = study.get_trials(states=[optuna.trial.TrialState.COMPLETE])
        valued = [(trial.value, trial) for trial in complete if trial.value is not None and math.isfinite(trial.value)]
        if not valued:
            raise RlnbError(f"No trial of {self.name} is complete yet.")
        choose = max if study.direction == optuna.study.StudyDirection.MAXIMIZE else min
        _, best = choose(valued, key=lambda pair: pair[0])
        return selection.get_run(best.user_attrs["run"])

    @property
    def driven_here(self) -> bool:
        """Whether this kernel still starts or watches trials of the sweep."""
        return self._thread is not None and self._thread.is_alive()

    def wait(self, timeout_s: float | None = None) -> Sweep:
        """Wait until all trials have ended, and return the sweep. An interrupt does not stop the trials.

        Args:
            timeout_s: Seconds to wait at most; None sets no limit.

        Raises:
            TimeoutError: The sweep still runs after ``timeout_s`` seconds.
            RlnbError: A trial could not be started, or this kernel does not drive the sweep.
        """
        if self._driver is None or self._thread is None:
            raise RlnbError(
                f"The sweep {self.name!r} is not running in this kernel. "
                f"Use rlnb.sweep(..., name={self.name!r}) to continue it."
            )
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise TimeoutError(f"{self.name} still runs after {timeout_s} s: {self!r}")
        if self._driver.error is not None:
            raise self._driver.error
        return self

    def stop(self) -> Sweep:
        """Start no further trials, and return the sweep. Running trials continue to their end."""
        if self._driver is not None:
            self._driver.stop()
        return self

    def cancel(self) -> Sweep:
        """Start no further trials, cancel those that wait or run, and return the sweep at once.

        Trials that another kernel starts from now on are not cancelled.
        """
        if self._driver is not None:
            self._driver.stop_and_settle()
        for run in self.runs:
            run.cancel()
        return self

    def table(self) -> pd.DataFrame:
        """Return one row per trial: ``trial``, ``state``, ``value``, ``run``, and a column for each parameter."""
        import pandas as pd

        rows = [
            {
                "trial": t.number,
                "state": t.state.name.lower(),
                "value": t.value,
                "run": t.user_attrs.get("run"),
                **t.params,
            }
            for t in self.study.trials
        ]
        return pd.DataFrame(rows, columns=None if rows else ["trial", "state", "value", "run"])

    def plot(self) -> go.Figure:
        """Return a parallel-coordinates figure with one line per complete trial, coloured by the trial's value."""
        import optuna

        from rlnb.display.figures import with_picture
        from rlnb.studies.sweep_figures import parallel_coordinates

        study = self.study
        complete = study.get_trials(states=[optuna.trial.TrialState.COMPLETE])
        maximize = study.direction == optuna.study.StudyDirection.MAXIMIZE
        return with_picture(parallel_coordinates(complete, study.user_attrs.get("metric", "value"), maximize=maximize))

    def importances(self) -> dict[str, float]:
        """Return the importance of each parameter for the value of a trial, by PED-ANOVA. The importances sum to 1.

        The method is that of Watanabe, Bansal and Hutter, "PED-ANOVA", IJCAI 2023.

        Raises:
            RlnbError: Fewer than four trials are complete.
        """
        import optuna

        complete = self.study.get_trials(states=[optuna.trial.TrialState.COMPLETE])
        if len(complete) < TELLING:
            raise RlnbError(f"Importances need {TELLING} complete trials; {self.name} has {len(complete)}.")
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        return optuna.importance.get_param_importances(self.study, evaluator=evaluator)

    def plot_importances(self) -> go.Figure:
        """Return :meth:`importances` as a bar chart.

        Raises:
            RlnbError: Fewer than four trials are complete.
        """
        from rlnb.display.figures import with_picture
        from rlnb.studies.sweep_figures import importance_bars

        return with_picture(importance_bars(self.importances()))

    def dashboard(self) -> Sidecar:
        """Start Optuna's dashboard for this sweep, and return its address on this machine's loopback interface.

        The dashboard serves its pages at the root of a server only, so a Jupyter server cannot proxy them.
        """
        storage(self._path)  # an error for a link of another user
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        argv = [sys.executable, "-P", "-m", "rlnb.display.own_user", "optuna_dashboard._cli", "--host", "127.0.0.1"]
        return Sidecar("Optuna's dashboard", [*argv, "--port", port, "--server", "wsgiref", str(self._path)])

    def __repr__(self) -> str:
        states = [trial.state.name.lower() for trial in self.study.trials]
        counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states)) or "no trials yet"
        return f"Sweep({self.name!r}, {counts})"

    def _repr_html_(self) -> str:
        newest = self.table().tail(100)
        rows = [[cell(value) for value in row] for row in newest.itertuples(index=False)]
        return table(list(newest.columns), rows, caption=repr(self))

    def _begin(self, driver: Driver) -> None:
        """Start a driver in a thread."""
        self._driver = driver
        self._thread = threading.Thread(target=driver.drive, name=f"rlnb-sweep {self.name}", daemon=True)
        live_objects.add(self, close=self.stop, alive=lambda: self.driven_here, follows_cell=False)
        self._thread.start()


def get_sweep(name: str) -> Sweep:
    """Return a sweep to read. Any kernel may drive it meanwhile.

    Args:
        name: Name of the sweep.

    Raises:
        NotFoundError: No sweep has that name.
    """
    folder = options.folders.sweeps
    path = folder / f"{name}.journal"
    if not path.exists():
        raise unknown("sweep", name, sorted(p.stem for p in entries.matching(folder, "*.journal")), has=f"In {folder}")
    return Sweep(name, path)


def sweep(
    task: Task | str,
    library: str = "rsl_rl",
    *,
    space: Space,
    n_trials: int | None = None,
    metric: str = "reward",
    direction: Literal["maximize", "minimize"] = "maximize",
    objective: Callable[[Run], float] | None = None,
    sampler: optuna.samplers.BaseSampler | None = None,
    pruner: optuna.pruners.BasePruner | None = None,
    name: str | None = None,
    parallel: int | None = None,
    launcher: Launcher | None = None,
    array: bool = False,
    **arguments: Any,
) -> Sweep:
    """Search for good parameters. Return at once; a thread of this kernel starts the trials.

    Each trial is a run with the tag ``sweep:<name>``. After a restart of the kernel, the same call with the same name
    continues the search, including the trials that ran meanwhile. Needs the extra ``rlnb[sweep]``.

    Args:
        task: A task, or its name.
        library: Name of the RL library; RSL-RL by default, also if the task's registration names another one.
        space: Search space by name. An entry is a range ``(low, high)`` of whole or real numbers, a logarithmic range
            ``(low, high, "log")``, a list of choices, or an Optuna distribution. Names are ``"agent.<path>"`` for
            values of the agent config, ``"<path>"`` for overrides of the task, and ``"num_envs"``,
            ``"max_iterations"`` and ``"seed"``.
        n_trials: Total number of trials, including those of earlier calls; None is a grid, with one trial for each
            combination of the choices, in a space of lists.
        metric: Name or raw tag of the metric that the pruner watches. Without an objective it is also the value of a
            trial. A space that changes the reward, such as the weights of its terms, needs another value than the
            reward.
        direction: Whether to ``"maximize"`` or to ``"minimize"`` the value.
        objective: Function that returns the value of a finished run; None takes the mean of the metric's last tenth.
        sampler: Optuna sampler; None is ``TPESampler``, seeded with the number of existing trials. With ``array`` it is
            ``QMCSampler``, whose trials cover the space evenly without a result of another trial, or ``GridSampler``
            if every entry of the space is a list of choices.
        pruner: Optuna pruner; None is ``MedianPruner``. ``optuna.pruners.NopPruner()`` lets every trial finish.
        name: Name of the sweep; None makes a new one of task, library and time.
        parallel: Number of trials that run at once; None takes the launcher's limit, or all trials on a cluster.
        launcher: Where to run the trials; None is this machine.
        array: Whether to start all trials at once, as one array job of the queue, of which ``parallel`` run at once.
            One host process then serves all trials. The values of all trials are chosen before the first one ends, so a
            sampler that learns from results, such as ``TPESampler``, gains nothing. Slurm and Grid Engine have arrays.
        arguments: Further arguments of :func:`rlnb.train`, e.g. ``max_iterations=100``.

    Raises:
        CheckError: An entry of the space is invalid, or a run would fail. It lists all problems; nothing was started.
        RlnbError: Optuna is missing, another kernel drives this sweep, or another user has one with this name.
    """
    try:
        import optuna  # noqa: F401
    except ImportError as exc:
        raise RlnbError(f"A sweep needs Optuna. Use {install_line('rlnb[sweep]')}") from exc
    task, n_trials, parallel = as_task(task), whole(n_trials), whole(parallel)
    _check_goal(metric, direction)
    if parallel is not None and parallel < 1:
        raise RlnbError(f"parallel={parallel!r} is not a positive whole number.")
    launcher = launcher or LocalLauncher(max_running=parallel)
    trainings = Trainings(task, library, launcher, **arguments)
    distributions = check(trainings, space, n_trials, value="" if objective else metric, is_array=array)
    is_grid, n_trials = n_trials is None, n_trials or grid_size(distributions)
    # Two users of one root may begin at the same second.
    name = name or f"{task.id}-{library}-{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    if not re.fullmatch(r"[\w.-]+", name):
        raise RlnbError(f"name={name!r} is not a file name. Use letters, digits, '.', '_' and '-'.")
    path = options.folders.sweeps / f"{name}.journal"
    subject = SearchDescription(
        task=task.id,
        library=library,
        metric=metric,
        direction=direction,
        space=", ".join(f"{name}: {distribution}" for name, distribution in sorted(distributions.items())),
        arguments=common(task, **arguments),
    )
    if (other := next((one for one in live_objects.of(Sweep) if one._path == path), None)) is not None:
        subject.write(other.study)
        _warn_of_changes(other, n_trials, parallel)
        return other
    search = Search(
        space=distributions,
        n_trials=n_trials,
        at_once=parallel or launcher.max_running or n_trials,
        metric=metric,
        objective=objective,
        start=lambda values, number: trainings.start(values, tags=_tags(name, number)),
        start_array=_array_of(trainings, name, parallel) if array else None,
    )
    sampler = sampler or (at_once_sampler(distributions) if array or is_grid else None)
    return _begin(name, path, subject, search, sampler=sampler, pruner=pruner)


def _warn_of_changes(sweep: Sweep, n_trials: int, parallel: int | None) -> None:
    """Warn of arguments of a further call that have no effect, since this kernel is running the sweep already."""
    driver = sweep._driver
    if driver is None:
        return
    given = {"n_trials": (n_trials, driver.search.n_trials), "parallel": (parallel, driver.search.at_once)}
    changes = [name for name, (now, first) in given.items() if now not in (None, first)]
    if driver.is_stopping:
        logger.warning("%s was stopped, and its last trials are running. Call .wait() on it first.", sweep.name)
    elif changes:
        what = f"{sweep.name} is already running here. To change {' and '.join(changes)}"
        logger.warning("%s, call .stop() and .wait() on the sweep before this call.", what)


def _array_of(
    trainings: Trainings, name: str, at_once: int | None
) -> Callable[[Mapping[int, Mapping[str, Json]]], Sequence[Run]]:
    """Return the function that starts the runs of all trials as one array."""

    def start(values: Mapping[int, Mapping[str, Json]]) -> Sequence[Run]:
        tags = [_tags(name, number) for number in values]
        return trainings.start_array([*values.values()], tags=tags, at_once=at_once)

    return start


def _tags(name: str, number: int) -> tuple[str, str]:
    """Return the tags by which the run of a trial is found again."""
    return f"sweep:{name}", f"trial:{number}"


def _check_goal(metric: str, direction: str) -> None:
    """Refuse an unknown metric or direction.

    Raises:
        NotFoundError: The name does not exist. The message lists the valid names.
    """
    if metric not in (names := plugins.metrics()) and "/" not in metric:
        raise unknown("metric", metric, names, has="A raw tag contains a '/'; the names are")
    if direction not in ("maximize", "minimize"):
        raise unknown("direction", direction, ("maximize", "minimize"), has="Use one of")


def _begin(
    name: str,
    path: Path,
    subject: SearchDescription,
    search: Search,
    *,
    sampler: optuna.samplers.BaseSampler | None,
    pruner: optuna.pruners.BasePruner | None,
) -> Sweep:
    """Open the journal of a sweep, and start its driver.

    Raises:
        RlnbError: Another kernel drives the sweep, or the journal belongs to another search or another user.
    """
    import optuna

    files.make_folder(path.parent)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    require_own(path, name)
    lock = hold(path.with_suffix(".lock"), name)
    try:
        kept = storage(path)
        require_own(path, name)  # which may have been made since
        study = optuna.create_study(
            study_name=name,
            storage=kept,
            direction=subject.direction,
            pruner=pruner or optuna.pruners.MedianPruner(),
            load_if_exists=True,
        )
        subject.write(study)
        # With the same seed in each kernel, the sampler would propose the same trials again.
        study.sampler = sampler or optuna.samplers.TPESampler(seed=len(study.trials), constant_liar=True)
    except BaseException:
        lock.close()
        raise
    sweep = Sweep(name, path)
    sweep._begin(Driver(study, search, lock))
    return sweep
