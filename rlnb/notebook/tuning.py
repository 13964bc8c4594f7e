"""The panel of a tuner: a slider for every number of a reward term, beside what the terms give in each env."""

from __future__ import annotations

import html
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from rlnb.errors import RlnbError

if TYPE_CHECKING:
    import ipywidgets

    from rlnb.tuning import Tuner

logger = logging.getLogger(__name__)

REFRESH_S = 0.25
LONGEST_S = 300.0
"""How long the env is stepped without a click."""
_PALE, _STRONG = "#9ecae1", "#3b7dd8"


def panel(tuner: Tuner) -> ipywidgets.Widget:
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
    sliders = [slider(path, value) for path, value in tuner.tunable.items()]
    return ipywidgets.VBox([ipywidgets.HBox([run, once, said]), shown, *sliders])


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
