"""A viewer for a preview: one camera and data type at a time, with sliders for env and time.

A click on an env in the picture shows this env alone, in all of its pixels. Another click shows all envs again.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from rlnb.cameras.grid import Panel, panel
from rlnb.display.live_pictures import clickable

if TYPE_CHECKING:
    import ipywidgets

    from rlnb.cameras.frames import Frames

ALL = "all"


def viewer(preview: Frames) -> ipywidgets.Widget:
    """Return a widget with controls and a picture, which is redrawn whenever a control changes."""
    import ipywidgets

    camera = ipywidgets.Dropdown(options=list(preview.clip), description="camera")
    data_type = ipywidgets.Dropdown(options=list(preview.clip[camera.value]), description="output")
    env = ipywidgets.SelectionSlider(options=[ALL, *preview.envs], description="env")
    moment = ipywidgets.SelectionSlider(
        options=[(f"{time_s:.2f} s", index) for index, time_s in enumerate(preview.times_s)],
        value=len(preview.times_s) - 1,
        description="time",
    )

    def current() -> Panel:
        one = None if env.value == ALL else preview.envs.index(env.value)
        return panel(preview, camera.value, data_type.value, moment.value, one)

    def draw(_: Any = None) -> None:
        if data_type.value in preview.clip[camera.value]:
            buffer = io.BytesIO()
            current().image.save(buffer, format="PNG")
            image.value = buffer.getvalue()

    def click(x: float, y: float) -> None:
        index = current().env_at(x, y) if env.value == ALL else None
        env.value = ALL if index is None else preview.envs[index]

    image = clickable(click)

    def choose_camera(_: Any) -> None:
        before = data_type.value
        data_type.options = list(preview.clip[camera.value])  # this selects the first option
        if before in preview.clip[camera.value]:
            data_type.value = before
        draw()

    camera.observe(choose_camera, "value")
    for control in (data_type, env, moment):
        control.observe(draw, "value")
    draw()
    return ipywidgets.VBox([ipywidgets.HBox([camera, data_type]), ipywidgets.HBox([env, moment]), image])
