"""The controls in the sidebar of a 3D view: push the robot, and hold a velocity command.

The browser's values come in threads of viser's web server. They wait as requests until the loop that steps the env does
them, and are checked like those of a kernel.
"""

from __future__ import annotations

import contextlib
import math
import queue
from dataclasses import dataclass
from typing import Any

from rlnb.errors import RlnbError
from rlnb.protocol.requests import Hold, Push
from rlnb.worker.isaac.controls import Controls, Ranges

FIRST = -1.0
"""Place of the controls in the sidebar, before those of Isaac Lab, which have positive numbers."""
SPEED_M_PER_S = 3.0
"""Largest speed of a push in the sidebar."""


class Sidebar:
    """Shows the controls of an env, and does what they and the kernel request.

    Args:
        server: viser's web server.
        controls: Controls of the env.
    """

    def __init__(self, server: Any, controls: Controls) -> None:
        self._controls, self._gui = controls, server.gui
        self._requests: queue.SimpleQueue[tuple[Push | Hold, Any]] = queue.SimpleQueue()
        """Requests of browsers, each with the browser, until they are done."""
        self._add_push()
        self._commands = {name: self._add_command(name, ranges) for name, ranges in controls.commands.items()}

    def _add_push(self) -> None:
        with self._gui.add_folder("Push", order=FIRST):
            if self._controls.no_push:
                self._gui.add_markdown(self._controls.no_push)
                return
            speed = self._gui.add_slider("Speed (m/s)", 0.0, SPEED_M_PER_S, 0.1, 1.0)
            angle = self._gui.add_slider("Direction (°)", -180.0, 180.0, 5.0, 0.0, hint="0 is x, and 90 is y.")

            @self._gui.add_button("Push").on_click
            def _(event: Any) -> None:
                direction = math.radians(angle.value)
                velocity = speed.value * math.cos(direction), speed.value * math.sin(direction)
                self._requests.put((Push(velocity=velocity), event.client))

            @self._gui.add_button("Push in a random direction").on_click
            def _(event: Any) -> None:
                self._requests.put((Push(velocity=(speed.value,)), event.client))

    def _add_command(self, name: str, ranges: Ranges) -> CommandInputs:
        with self._gui.add_folder(f"Command {name}", order=FIRST):
            hold = self._gui.add_checkbox("Hold", False, hint="Off: the task samples the command.")
            sliders = tuple(
                self._gui.add_slider(component, low, high, 0.05, min(max(0.0, low), high), hint=_unit(component))
                for component, (low, high) in ranges.items()
            )
        inputs = CommandInputs(hold=hold, sliders=sliders)
        inputs.show(None)

        def changed(event: Any) -> None:
            if event.client is not None:  # otherwise this process has set the value
                inputs.enable()
                self._requests.put((Hold(name=name, value=inputs.value), event.client))

        for handle in (hold, *sliders):
            handle.on_update(changed)
        return inputs

    def do_requests(self) -> None:
        """Do what the browsers have requested. One that requests something impossible is told so."""
        with contextlib.suppress(queue.Empty):
            while True:
                request, browser = self._requests.get_nowait()
                try:
                    self._apply(request)  # the inputs show it already, and maybe a later value
                except RlnbError as exc:
                    browser.add_notification("Not possible", str(exc))

    def do(self, request: Push | Hold) -> None:
        """Do a request of the kernel, and show a command that is held.

        Raises:
            RlnbError: The values are not possible.
        """
        self._apply(request)
        if isinstance(request, Hold):
            self._commands[request.name].show(request.value)

    def _apply(self, request: Push | Hold) -> None:
        if isinstance(request, Push):
            self._controls.push(request.velocity)
        else:
            self._controls.hold(request.name, request.value)


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandInputs:
    """The inputs of a command in the sidebar."""

    hold: Any
    """viser's checkbox."""
    sliders: tuple[Any, ...]
    """viser's slider of each component."""

    @property
    def value(self) -> tuple[float, ...] | None:
        """The value to hold; None if the task samples the command."""
        return tuple(float(slider.value) for slider in self.sliders) if self.hold.value else None

    def enable(self) -> None:
        """Let the sliders be moved only while the command is held."""
        for slider in self.sliders:
            slider.disabled = not self.hold.value

    def show(self, value: tuple[float, ...] | None) -> None:
        """Show a value that is held; None if the task samples the command."""
        if value is not None:
            for slider, component in zip(self.sliders, value, strict=True):
                slider.min, slider.max = min(slider.min, component), max(slider.max, component)
                slider.value = component
        self.hold.value = value is not None
        self.enable()


def _unit(component: str) -> str:
    return "rad/s" if component.startswith("ang") else "m/s"
