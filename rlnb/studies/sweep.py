"""Search of parameters with Optuna: every trial is an ordinary run, and nothing is lost with the kernel."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import re
import socket
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from rlnb.display.server import Beside
from rlnb.errors import RlnbError, unknown
from rlnb.launch.local import LocalLauncher
from rlnb.run import find
from rlnb.run.listing import Runs
from rlnb.run.run import Run
from rlnb.settings import options
from rlnb.spec import METRICS, Task
from rlnb.storage.serial import to_json
from rlnb.studies.space import Space, check, split
from rlnb.studies.trials import Driver, runs_of
from rlnb.tasks.agent_config import agent_values
from rlnb.tasks.task import as_task
from rlnb.training import train

if TYPE_CHECKING:
    import optuna
    import pandas as pd
    import plotly.graph_objects as go

    from rlnb.contracts import Launcher

TELLING = 4
"""Complete trials from which on importances are computed."""

_driven: dict[Path, Sweep] = {}
"""The sweeps that this kernel drives, or drove."""


class Sweep:
    """A search on disk, ``<root>/sweeps/<name>.journal``; this kernel drives it, or only looks at it."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._path = path
        self._driver: Driver | None = None

    @property
    def study(self) -> optuna.Study:
        """Optuna's own view of it, read anew."""
        import optuna

        return optuna.load_study(study_name=self.name, storage=storage(self._path))

    @property
    def runs(self) -> Runs:
        """Its runs, one a trial, newest first."""
        found = runs_of(self.name)
        return Runs([found[number] for number in sorted(found, reverse=True)])

    @property
    def best(self) -> Run:
        """The run of the best trial.

        Raises:
            RlnbError: No trial is complete yet.
        """
        try:
            return find.get_run(self.study.best_trial.user_attrs["run"])
        except ValueError as exc:
            raise RlnbError(f"No trial of {self.name} is complete yet.") from exc

    @property
    def driven_here(self) -> bool:
        """Whether this kernel starts its trials, and has not done with it."""
        return self._driver is not None and self._driver.thread.is_alive()

    def wait(self, timeout_s: float | None = None) -> Sweep:
        """Wait until all trials are done; an interrupt ends the waiting only.

        Raises:
            TimeoutError: It goes on after ``timeout_s`` seconds.
            RlnbError: A trial could not be started; or this kernel only looks at the sweep.
        """
        if self._driver is None:
            raise RlnbError(
                f"This kernel does not drive {self.name}: rlnb.sweep(..., name={self.name!r}) goes on with it."
            )
        self._driver.thread.join(timeout_s)
        if self._driver.thread.is_alive():
            raise TimeoutError(f"{self.name} goes on after {timeout_s} s: {self!r}")
        if self._driver.error is not None:
            raise self._driver.error
        return self

    def stop(self) -> Sweep:
        """Start no further trials; those that run go on to their ends."""
        if self._driver is not None:
            self._driver.stop()
        return self

    def table(self) -> pd.DataFrame:
        """Return one row a trial: number, state, value, run, and the parameters."""
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
        """Return the trials as parallel coordinates: one line a trial, coloured by its value."""
        from optuna.visualization import plot_parallel_coordinate

        from rlnb.curves.figure import with_picture

        return with_picture(plot_parallel_coordinate(self.study))

    def importances(self) -> dict[str, float]:
        """Return how much each parameter decides between good trials and others, by PED-ANOVA; they sum to 1.

        Watanabe, Bansal and Hutter, "PED-ANOVA", IJCAI 2023.

        Raises:
            RlnbError: There are too few complete trials.
        """
        import optuna

        complete = self.study.get_trials(states=[optuna.trial.TrialState.COMPLETE])
        if len(complete) < TELLING:
            few = f"{len(complete)} of {TELLING} trials are complete"
            raise RlnbError(f"The trials of {self.name} do not tell yet which parameter matters: {few}.")
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        return optuna.importance.get_param_importances(self.study, evaluator=evaluator)

    def plot_importances(self) -> go.Figure:
        """Return :meth:`importances` as bars."""
        import optuna
        from optuna.visualization import plot_param_importances

        from rlnb.curves.figure import with_picture

        self.importances()
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        return with_picture(plot_param_importances(self.study, evaluator=evaluator))

    def dashboard(self) -> Beside:
        """Start Optuna's dashboard on this sweep; return its address on this machine's loopback.

        Its pages stand at the root of a server, so it cannot be shown below a Jupyter server's base URL.
        """
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        words = ["--host", "127.0.0.1", "--port", port, "--server", "wsgiref", str(self._path)]
        return Beside("Optuna's dashboard", [sys.executable, "-m", "optuna_dashboard._cli", *words])

    def __repr__(self) -> str:
        states = [trial.state.name.lower() for trial in self.study.trials]
        counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states)) or "no trials yet"
        return f"Sweep({self.name!r}, {counts})"

    def _repr_html_(self) -> str:
        from rlnb.display.table import table

        shown = self.table().tail(100)
        rows = [
            ["" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value) for value in row]
            for row in shown.itertuples(index=False)
        ]
        return table(list(shown.columns), rows, caption=repr(self))


def storage(path: Path) -> optuna.storages.BaseStorage:
    """Return Optuna's journal in that file: appended to, so that a shared file system and a kill do it no harm."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    return JournalStorage(JournalFileBackend(str(path)))


def get_sweep(name: str) -> Sweep:
    """Return a sweep to look at, whoever drives it.

    Raises:
        NotFoundError: There is none of that name.
    """
    folder = options.folders.sweeps
    path = folder / f"{name}.journal"
    if not path.exists():
        raise unknown("sweep", name, sorted(p.stem for p in folder.glob("*.journal")), has=f"In {folder}")
    return Sweep(name, path)


def sweep(
    task: Task | str,
    library: str = "rsl_rl",
    *,
    space: Space,
    n_trials: int,
    metric: str = "reward",
    direction: Literal["maximize", "minimize"] = "maximize",
    objective: Callable[[Run], float] | None = None,
    sampler: optuna.samplers.BaseSampler | None = None,
    pruner: optuna.pruners.BasePruner | None = None,
    name: str | None = None,
    parallel: int | None = None,
    launcher: Launcher | None = None,
    **arguments: Any,
) -> Sweep:
    """Search for good parameters, and return at once: trials are started as long as this kernel lives.

    A trial is a run with the tag ``sweep:<name>``. After a restart of the kernel the same call, with the same name,
    goes on: trials that ran meanwhile are taken up again. Needs ``pip install 'rlnb[sweep]'``.

    Args:
        task: A task, or its name.
        library: Name of the RL library.
        space: By name, where to search: ``(low, high)`` of whole or real numbers, ``(low, high, "log")``, a list to
            choose from, or one of Optuna's distributions. Names are ``"agent.<path>"`` for the agent config,
            ``"<path>"`` for overrides of the task, and ``"num_envs"``, ``"max_iterations"``, ``"seed"``.
        n_trials: Trials in all, those of earlier calls included.
        metric: What pruner and, without an objective, sampler look at.
        direction: Whether more of it is better.
        objective: Value of a finished run; None is the mean of the metric's last tenth.
        sampler: One of Optuna's; None is its TPE, with seed 0.
        pruner: One of Optuna's; None is its median pruner. ``optuna.pruners.NopPruner()`` lets every trial finish.
        name: Of the sweep; None makes one of task, library and time.
        parallel: Trials at a time; None is what the launcher runs at a time, on a cluster all of them.
        launcher: Where trials run; None is this machine.
        arguments: What else :func:`rlnb.train` takes, e.g. ``max_iterations=100``.

    Raises:
        CheckError: A name or a bound in the space is wrong, or a run would fail; nothing was started.
        RlnbError: Optuna is missing, or another kernel drives this sweep.
    """
    try:
        import optuna
    except ImportError as exc:
        raise RlnbError("A sweep needs Optuna: pip install 'rlnb[sweep]'") from exc
    task = as_task(task)
    if metric not in METRICS and "/" not in metric:
        raise unknown("metric", metric, METRICS, has="A raw tag has a '/' in it; rlnb's own names are")
    if direction not in ("maximize", "minimize"):
        raise unknown("direction", direction, ("maximize", "minimize"), has="There are")
    if parallel is not None and parallel < 1:
        raise RlnbError(f"parallel={parallel!r} is not a positive whole number.")
    launcher = launcher or LocalLauncher(max_running=parallel)
    distributions = check(task, library, space, n_trials, launcher, arguments)
    name = name or f"{task.id}-{library}-{datetime.now():%Y%m%d-%H%M%S}"
    if not re.fullmatch(r"[\w.-]+", name):
        raise RlnbError(f"name={name!r}: letters, digits, '.', '_' and '-' make a file's name.")
    path = options.folders.sweeps / f"{name}.journal"
    asked = {"task": task.id, "library": library, "metric": metric, "direction": direction}
    asked |= {"space": written(distributions), "arguments": fixed(task, arguments)}
    if path in _driven and _driven[path].driven_here:
        same(_driven[path].study, asked)
        return _driven[path]
    path.parent.mkdir(parents=True, exist_ok=True)
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def start(values: Mapping[str, Any], number: int) -> Run:
        chosen = split(values)
        words = {**arguments, **chosen.arguments, "library": library, "launcher": launcher}
        words["agent"] = {**agent_values(arguments.get("agent")), **chosen.agent}
        words["tags"] = [*(arguments.get("tags") or ()), f"sweep:{name}", f"trial:{number}"]
        asked = dataclasses.replace(task, overrides={**task.overrides, **chosen.overrides})
        return train.train(asked, **{"warm": False, **words})

    lock = hold(path.with_suffix(".lock"), name)
    try:
        study = optuna.create_study(
            study_name=name,
            storage=storage(path),
            direction=direction,
            pruner=pruner or optuna.pruners.MedianPruner(),
            load_if_exists=True,
        )
        same(study, asked)
        # A sampler begins its random numbers anew in each kernel; the same ones would propose the same trials again.
        study.sampler = sampler or optuna.samplers.TPESampler(seed=len(study.trials), constant_liar=True)
        at_once = parallel or launcher.max_running or n_trials
        driver = Driver(study, distributions, n_trials, at_once, metric, objective, start, lock)
    except BaseException:
        lock.close()
        raise
    found = _driven[path] = Sweep(name, path)
    found._driver = driver
    driver.thread.start()
    return found


def fixed(task: Task, arguments: Mapping[str, Any]) -> str:
    """Return what all trials of a sweep have in common, as text."""
    of_task = {field.name: getattr(task, field.name) for field in dataclasses.fields(task)}
    common = {**of_task, **arguments}
    for name in ("id", "source", "launcher", "tags"):  # the first has its own name, the others change no value
        common.pop(name, None)
    given = {name: value for name, value in common.items() if value not in (None, (), {}, "")}
    return json.dumps(to_json(given), sort_keys=True, default=str)


def written(distributions: Mapping[str, optuna.distributions.BaseDistribution]) -> str:
    """Return a space as text."""
    return ", ".join(f"{name}: {distribution}" for name, distribution in sorted(distributions.items()))


def same(study: optuna.Study, asked: Mapping[str, str]) -> None:
    """Note what a sweep is of; refuse to go on with one of something else.

    Raises:
        RlnbError: It is of something else.
    """
    for name, value in asked.items():
        known = study.direction.name.lower() if name == "direction" else study.user_attrs.get(name, value)
        if known != value:
            raise RlnbError(
                f"The sweep {study.study_name!r} has {name}={known!r}, not {value!r}. Give this one another name."
            )
        if name not in study.user_attrs:
            study.set_user_attr(name, value)


def hold(path: Path, name: str) -> IO[str]:
    """Return the lock of a sweep: one kernel drives it.

    Raises:
        RlnbError: Another does.
    """
    lock = open(path, "w")  # noqa: SIM115  held by the driver
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        lock.close()
        raise RlnbError(f"Another kernel drives {name!r}. Look at it with rlnb.get_sweep({name!r}).") from exc
    return lock
