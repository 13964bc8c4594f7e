"""Tuning of reward terms: the value of each term in each env while the env runs, and the effect of other weights."""

from __future__ import annotations

import dataclasses
import html
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from rlnb.configs.card import TaskCard
from rlnb.configs.checks import check_task
from rlnb.contracts.launchers import Launcher
from rlnb.display.status import status
from rlnb.display.table import table
from rlnb.errors import RlnbError
from rlnb.interactive.simulator import Simulator
from rlnb.protocol import requests
from rlnb.protocol.requests import Open, Request
from rlnb.settings import options
from rlnb.simulation import placement
from rlnb.simulation.pool import pool
from rlnb.spec import Json, Task
from rlnb.tasks.task import as_task, task_card

if TYPE_CHECKING:
    import ipywidgets

A = TypeVar("A")
REFRESH_S = 0.25
LONGEST_S = 300.0
"""Longest time in seconds for which one click on "Run" steps the env."""
_PALE, _STRONG = "#9ecae1", "#3b7dd8"


class Tuner:
    """The reward terms of a living env.

    The values of the terms are those of the newest step, per second and multiplied by the weights.
    """

    def __init__(
        self, task: Task, card: TaskCard, request: Open, python: str | None = None, asset_root: str | None = None
    ) -> None:
        self._task, self._card, self._request = task, card, request
        self._interpreter = python, asset_root, placement.chosen()
        self._lock = threading.Lock()
        self._overrides: dict[str, Json] = {}
        self.how = ""
        """The newest change, ``"new env"``, ``"the same env"``, or the sections swapped in the living env,
        such as ``"rewards swapped"``."""
        self.seconds: Mapping[str, float] = {}
        """Seconds that the newest change took in the simulator, ``resolve`` for the config, ``change`` for the env."""
        self.values: dict[str, list[float]] = {}
        """Values of each term by name, one per env."""
        self.reward: list[float] = []
        """Sum of the terms, one value per env."""
        self._open(task)

    @property
    def took_s(self) -> float:
        """Seconds that the newest change took in total."""
        return sum(self.seconds.values())

    @property
    def overrides(self) -> dict[str, Json]:
        """All changes so far, in the form of ``rlnb.task(..., overrides=...)``."""
        return dict(self._overrides)

    @property
    def task(self) -> Task:
        """The task with all changes so far, ready for training."""
        return self._with(self._overrides)

    @property
    def tunable(self) -> dict[str, float]:
        """Current numbers of the reward terms (weights and parameters) by dotted path."""
        kinds: dict[str, Callable[[Any], float]] = {"float": float, "int": int}
        fields = {
            path: kinds[field.type](field.value)
            for path, field in self._card.fields.items()
            if path.startswith("rewards.") and field.type in kinds
        }
        return {path: self._overrides.get(path, value) for path, value in fields.items()}  # type: ignore[misc]

    def set(self, path: str, value: Json) -> Tuner:
        """Change a value of a term, in the living env if possible.

        Args:
            path: Dotted path, such as ``"rewards.alive.weight"``.
            value: The new value.

        Raises:
            CheckError: The path does not exist or the value has the wrong type.
            WorkerError: A manager of the env refuses the value. Nothing has changed.
        """
        overrides = {**self._overrides, path: value}
        check_task(self._with(overrides), self._card)
        self._open(self._with(overrides))
        self._overrides = overrides
        return self

    def step(self, steps: int = 1) -> Tuner:
        """Step the env and read the values of its terms."""
        rewards = self._ask(requests.Advance(steps=steps))
        self.values = {name: list(values) for name, values in rewards.terms.items()}
        self.reward = list(rewards.reward)
        return self

    def close(self) -> None:
        """Close the env."""
        if Simulator(*self._interpreter).state != "none":
            self._ask(requests.Close())

    def panel(self) -> ipywidgets.Widget:
        """Return a widget with the terms' values, a slider for each of their numbers, and buttons to step the env."""
        return sliders(self)

    def _ask(self, request: Request[A]) -> A:
        # Always use the warm simulator, even if rlnb.options.warm is False: the env must survive this request.
        with self._lock:
            return pool.request(request, *self._interpreter, warm=True)

    def _with(self, overrides: Mapping[str, Json]) -> Task:
        return dataclasses.replace(self._task, overrides={**self._task.overrides, **overrides})

    def _open(self, task: Task) -> None:
        task = dataclasses.replace(task, num_envs=self._request.task.num_envs)
        change = self._ask(dataclasses.replace(self._request, task=task))
        self.how, self.seconds = change.how, change.seconds
        self.step()

    def _rows(self) -> list[tuple[str, str, str, str]]:
        rows = []
        for name, values in [*self.values.items(), ("sum", self.reward)]:
            weight = self.tunable.get(f"rewards.{name}.weight")
            rows.append((name, "" if weight is None else f"{weight:g}", *_spread(values)))
        return rows

    def __repr__(self) -> str:
        lines = [f"{name:24} {weight:>8} {mean:>12} {spread}" for name, weight, mean, spread in self._rows()]
        return "\n".join([f"Tuner({self._task.id!r}, {self.how} in {self.took_s:.3f} s)", *lines])

    def _repr_html_(self) -> str:
        rows = [list(row) for row in self._rows()]
        overrides = html.escape(str(self._overrides))
        note = f"<small>{html.escape(self.how)} in {self.took_s:.3f} s; changed: {overrides}</small>"
        return table(["term", "weight", "mean over envs", "min to max"], rows, caption=self._task.id) + note


@placement.takes_launcher
def tune(
    task: Task | str,
    *,
    num_envs: int = 16,
    actions: Literal["random", "zero"] = "random",
    seed: int = 42,
    device: str = "auto",
    python: str | None = None,
    asset_root: str | None = None,
    launcher: Launcher | None = None,
) -> Tuner:
    """Step a manager-based task in the warm simulator and inspect its reward terms.

    After an edit of the task's cell, the next call swaps changed rewards, terminations, commands and events into the
    living env; any other change makes a new env. :attr:`Tuner.how` reports which of the two happened.

    Args:
        task: A task, or its name.
        num_envs: Number of envs to make.
        actions: ``"random"`` (uniform in -1 to 1) or ``"zero"``.
        seed: Seed of the env.
        device: As in :func:`rlnb.train`.
        python: Command of the worker's interpreter.
        asset_root: Folder or URL of robot assets.
        launcher: Launcher whose job holds the simulator; None is ``rlnb.options.simulator``.

    Raises:
        CheckError: The task has a problem; no env was made.
        RlnbError: The task is not manager-based.
        WorkerError: A term names something that does not exist, or its code failed.
    """
    task, python, asset_root = as_task(task), python or options.python, asset_root or options.asset_root
    card = task_card(task, python=python, asset_root=asset_root)
    small = dataclasses.replace(task, num_envs=num_envs)
    check_task(small, card)
    if card.workflow != "manager-based":
        raise RlnbError(f"{task.id} is not manager-based, so it has no reward terms to tune. Use a manager-based task.")
    request = Open(task=small, actions=actions, seed=seed, device=device)
    with status(f"Tuning {task.id}"):
        return Tuner(task, card, request, python, asset_root)


def _spread(values: list[float]) -> tuple[str, str]:
    return f"{sum(values) / len(values):.4g}", f"{min(values):.4g} to {max(values):.4g}"


def sliders(tuner: Tuner) -> ipywidgets.Widget:
    """Return the widget of a tuner. Its "Run" button steps the env until the next click."""
    import ipywidgets

    strips = ipywidgets.HTML(bars(tuner.values))
    note = ipywidgets.HTML(_how(tuner))
    run = ipywidgets.ToggleButton(description="Run", tooltip="Step the env continuously", icon="play")
    once = ipywidgets.Button(description="Step")

    def refresh(act: Callable[[], object]) -> None:
        try:
            act()
        except RlnbError as exc:
            run.value = False
            note.value = f"<span style='color:#b22222'>{html.escape(str(exc).splitlines()[0])}</span>"
            return
        strips.value, note.value = bars(tuner.values), _how(tuner)

    def follow() -> None:
        deadline = time.monotonic() + LONGEST_S
        while run.value and time.monotonic() < deadline:
            refresh(lambda: tuner.step(2))
            time.sleep(REFRESH_S)
        run.value = False

    def toggle(change: Any) -> None:
        if change["new"]:
            threading.Thread(target=follow, name="rlnb-tune", daemon=True).start()

    def slider(path: str, value: float) -> ipywidgets.Widget:
        widget = _slider(path.removeprefix("rewards."), value)
        widget.observe(lambda change: refresh(lambda: tuner.set(path, change["new"])), "value")
        return widget

    once.on_click(lambda _: refresh(lambda: tuner.step(1)))
    run.observe(toggle, "value")
    rows = [slider(path, value) for path, value in tuner.tunable.items()]
    return ipywidgets.VBox([ipywidgets.HBox([run, once, note]), strips, *rows])


def _slider(label: str, value: float) -> ipywidgets.Widget:
    """Return a slider for a value. Its range is symmetric about zero and reaches three times the value."""
    import ipywidgets

    reach = 3 * abs(value) or 1
    kind = ipywidgets.IntSlider if isinstance(value, int) else ipywidgets.FloatSlider
    widget = kind(
        value=value,
        min=-reach,
        max=reach,
        description=label,
        continuous_update=False,
        style={"description_width": "18em"},
        layout=ipywidgets.Layout(width="40em"),
    )
    if not isinstance(value, int):
        widget.step, widget.readout_format = reach / 300, ".3g"
    return widget


def bars(values: dict[str, list[float]]) -> str:
    """Return an HTML table with a row per term: a strip of bars, one per env, around a common zero, and the mean."""
    most = max((abs(value) for row in values.values() for value in row), default=0.0) or 1.0
    return "<table>" + "".join(_row(name, row, most) for name, row in values.items()) + "</table>"


def _row(name: str, row: list[float], most: float) -> str:
    cells = "".join(
        f"<span title='env {env}: {value:.4g}' style='display:inline-block;position:relative;width:8px;height:32px;"
        f"margin-right:1px;background:#8881'><span style='position:absolute;left:0;width:8px;"
        f"{_place(value, most)}'></span></span>"
        for env, value in enumerate(row)
    )
    mean = sum(row) / len(row)
    return f"<tr><td>{html.escape(name)}</td><td>{cells}</td><td style='text-align:right'>{mean:.4g}</td></tr>"


def _place(value: float, most: float) -> str:
    height = 16 * abs(value) / most
    side = f"bottom:16px;background:{_STRONG}" if value >= 0 else f"top:16px;background:{_PALE}"
    return f"height:{height:.1f}px;{side}"


def _how(tuner: Tuner) -> str:
    overrides = html.escape(str(tuner.overrides))
    return f"<small>{html.escape(tuner.how)} in {1000 * tuner.took_s:.0f} ms; overrides: {overrides}</small>"
