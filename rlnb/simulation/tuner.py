"""Tuning reward terms: what each gives in each env while actions run, and what comes of other weights at once."""

from __future__ import annotations

import dataclasses
import html
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from rlnb.display.status import status
from rlnb.display.table import table
from rlnb.errors import RlnbError
from rlnb.simulation import simulator
from rlnb.simulation.card import task_card
from rlnb.spec import Task
from rlnb.storage.serial import to_json
from rlnb.tasks.overrides import Card, check_task
from rlnb.tasks.task import as_task

if TYPE_CHECKING:
    import ipywidgets

REFRESH_S = 0.25
LONGEST_S = 300.0
"""How long the env is stepped without a click."""
_PALE, _STRONG = "#9ecae1", "#3b7dd8"


class Tuner:
    """The reward terms of a living env.

    Values of terms are those of the newest step, weight included, per second.
    """

    def __init__(
        self,
        task: Task,
        card: Card,
        num_envs: int,
        request: Mapping[str, Any],
        interpreter: tuple[str | None, str | None],
    ) -> None:
        self._task, self._card, self._num_envs, self._request = task, card, num_envs, dict(request)
        self._interpreter = interpreter
        self._lock = threading.Lock()
        self._changed: dict[str, Any] = {}
        self.how = ""
        """How the newest change was made: ``"rewards swapped"`` into the living env, or ``"new env"``."""
        self.seconds: dict[str, float] = {}
        """How long that took in the simulator: to ``resolve`` the config, and for the ``change`` of the env."""
        self.values: dict[str, list[float]] = {}
        """By term, a value per env."""
        self.reward: list[float] = []
        """Their sum per env."""
        self._open(task)

    @property
    def took_s(self) -> float:
        """How long the newest change took in all."""
        return sum(self.seconds.values())

    @property
    def overrides(self) -> dict[str, Any]:
        """What was changed, as ``rlnb.task(..., overrides=...)`` takes it."""
        return dict(self._changed)

    @property
    def task(self) -> Task:
        """The task with these changes, ready to be trained."""
        return self._with(self._changed)

    @property
    def tunable(self) -> dict[str, float]:
        """Numbers of reward terms by dotted path, as they are now: weights and parameters."""
        kinds = {"float": float, "int": int}
        fields = {
            path: kinds[field["type"]](field["value"])
            for path, field in self._card["fields"].items()
            if path.startswith("rewards.") and field["type"] in kinds
        }
        return {**fields, **{path: value for path, value in self._changed.items() if path in fields}}

    def set(self, path: str, value: Any) -> Tuner:
        """Change a value of a term, in the living env where that is possible.

        Args:
            path: Dotted path, such as ``"rewards.alive.weight"``.
            value: The new value.

        Raises:
            CheckError: No such value, or the wrong type.
            WorkerError: A manager refuses it; everything is as before.
        """
        changed = {**self._changed, path: value}
        check_task(self._with(changed), self._card)
        self._open(self._with(changed))
        self._changed = changed
        return self

    def step(self, steps: int = 1) -> Tuner:
        """Step the env, and take the values of its terms."""
        reply = self._ask("advance", steps=steps)
        self.values, self.reward = reply["terms"], reply["reward"]
        return self

    def close(self) -> None:
        """Close the env."""
        self._ask("close")

    def panel(self) -> ipywidgets.Widget:
        """Return sliders for every number of a term beside what the terms give, while the env runs."""
        return sliders(self)

    def _ask(self, verb: str, **payload: Any) -> Any:
        # Always of the living simulator, whatever rlnb.options.warm says: its env has to be there the next time.
        with self._lock:
            return simulator.request(verb, *self._interpreter, warm=True, **payload)

    def _with(self, changed: Mapping[str, Any]) -> Task:
        return dataclasses.replace(self._task, overrides={**self._task.overrides, **changed})

    def _open(self, task: Task) -> None:
        here = dataclasses.replace(task, num_envs=self._num_envs)
        reply = self._ask("open", task=to_json(here), **self._request)
        self.how, self.seconds = reply["how"], reply["seconds"]
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
        changed = html.escape(str(self._changed))
        note = f"<small>{html.escape(self.how)} in {self.took_s:.3f} s; changed: {changed}</small>"
        return table(["term", "weight", "mean of envs", "least to most"], rows, caption=self._task.id) + note


def tune(
    task: Task | str,
    *,
    num_envs: int = 16,
    actions: Literal["random", "zero"] = "random",
    seed: int = 42,
    device: str = "auto",
    python: str | None = None,
    asset_root: str | None = None,
) -> Tuner:
    """Step a manager-based task in the living simulator and look into its reward terms.

    Called again after an edit of the task's cell, only what changed of its rewards, terminations, commands and events
    is swapped into the living env; any other edit makes a new one. :attr:`Tuner.how` says which it was.

    Args:
        task: A task, or its name.
        num_envs: Envs to make.
        actions: ``"random"`` (uniform in -1 to 1) or ``"zero"``.
        seed: Seed of the env.
        device: As in :func:`rlnb.train`.
        python: Command of the worker's interpreter.
        asset_root: Folder or URL of robot assets.

    Raises:
        CheckError: A problem with the task; nothing was made.
        RlnbError: The task is not manager-based.
        WorkerError: A term names something that does not exist, or its code failed.
    """
    task = as_task(task)
    card = task_card(task, python=python, asset_root=asset_root)
    check_task(dataclasses.replace(task, num_envs=num_envs), card)
    if card["workflow"] != "manager-based":
        raise RlnbError(f"{task.id} is not manager-based: its rewards are code, not terms that could be tuned.")
    request = {"actions": actions, "seed": seed, "device": device}
    with status(f"Tuning {task.id}"):
        return Tuner(task, card, num_envs, request, (python, asset_root))


def _spread(values: list[float]) -> tuple[str, str]:
    return f"{sum(values) / len(values):.4g}", f"{min(values):.4g} to {max(values):.4g}"


def sliders(tuner: Tuner) -> ipywidgets.Widget:
    """Return the widget; its "run" button steps the env until it is clicked again."""
    import ipywidgets

    shown = ipywidgets.HTML(bars(tuner.values))
    said = ipywidgets.HTML(_how(tuner))
    run = ipywidgets.ToggleButton(description="Run", tooltip="Step the env all the time", icon="play")
    once = ipywidgets.Button(description="Step")

    def refresh(act: Any) -> None:
        try:
            act()
        except RlnbError as exc:
            run.value = False
            said.value = f"<span style='color:#b22222'>{html.escape(str(exc).splitlines()[0])}</span>"
            return
        shown.value, said.value = bars(tuner.values), _how(tuner)

    def slider(path: str, value: float) -> ipywidgets.Widget:
        reach = 3 * abs(value) or 1
        words: dict[str, Any] = {"description": path.removeprefix("rewards."), "style": {"description_width": "18em"}}
        words |= {"value": value, "min": -reach, "max": reach, "continuous_update": False}
        words["layout"] = ipywidgets.Layout(width="40em")
        whole = isinstance(value, int)
        made = (
            ipywidgets.IntSlider(**words)
            if whole
            else ipywidgets.FloatSlider(**words, step=reach / 300, readout_format=".3g")
        )
        made.observe(lambda change: refresh(lambda: tuner.set(path, change["new"])), "value")
        return made

    def follow() -> None:
        until = time.monotonic() + LONGEST_S
        while run.value and time.monotonic() < until:
            refresh(lambda: tuner.step(2))
            time.sleep(REFRESH_S)
        run.value = False

    def toggled(change: Any) -> None:
        if change["new"]:
            threading.Thread(target=follow, name="rlnb-tune", daemon=True).start()

    once.on_click(lambda _: refresh(lambda: tuner.step(1)))
    run.observe(toggled, "value")
    rows = [slider(path, value) for path, value in tuner.tunable.items()]
    return ipywidgets.VBox([ipywidgets.HBox([run, once, said]), shown, *rows])


def bars(values: dict[str, list[float]]) -> str:
    """Return a row per term: its envs as a strip of bars about a common zero, and their mean."""
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
