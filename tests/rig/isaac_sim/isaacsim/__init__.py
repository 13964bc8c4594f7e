"""A stand-in for Isaac Sim, whose app ends the process when it is closed, as Kit does.

Isaac Lab's own launcher starts it. The first start in a process and its end are lines of JSON in the file that
FAKE_KIT_LOG names. After the start, Isaac Lab does not see the app unless FAKE_KIT_STAYS is set: for an env, Isaac Lab
would call Kit's USD, which is not here. Physics and cameras therefore stay those of Newton.
"""

from __future__ import annotations

import json
import os
import sys
import types
from typing import Any


class _Anything:
    """An object whose every method returns the object, for the parts of Kit that only have to exist."""

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments, **options: self


class _Settings:
    """Kit's settings."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def get(self, path: str) -> Any:
        return self._values.get(path)

    def set(self, path: str, value: Any) -> None:
        self._values[path] = value

    set_bool = set_int = set_float = set_string = set


class SimulationApp:
    """The app that Isaac Lab's launcher makes, again for each env if it does not see the first one."""

    _starts = 0

    def __init__(self, config: dict[str, Any], experience: str = "") -> None:
        SimulationApp._starts += 1
        if SimulationApp._starts == 1:
            _note("start", config=config, experience=experience, argv=sys.argv[1:], usd="pxr" in sys.modules)
        app: Any = _Anything()
        settings = _Settings()

        def started() -> Any:
            nonlocal app
            if "FAKE_KIT_STAYS" not in os.environ:
                app = None
            return _Anything()

        _provide("carb", settings=types.SimpleNamespace(get_settings=lambda: settings))
        _provide("omni.kit.app", get_app=lambda: app)
        event = types.SimpleNamespace(STOP=0, PLAY=1)
        _provide("omni.timeline", get_timeline_interface=started, TimelineEventType=event)

    def update(self) -> None:
        """Do nothing: there are no callbacks."""

    def close(self, exit_code: int = 0) -> None:
        """End the process."""
        _note("close")
        os._exit(exit_code)


def _note(event: str, **values: Any) -> None:
    with open(os.environ["FAKE_KIT_LOG"], "a") as log:
        log.write(json.dumps({"event": event, "pid": os.getpid(), **values}) + "\n")


def _provide(name: str, **attributes: Any) -> None:
    """Make a module importable, below packages that may be installed."""
    module = types.ModuleType(name)
    vars(module).update(attributes)
    parent, _, leaf = name.rpartition(".")
    if parent and parent not in sys.modules:
        try:
            __import__(parent)
        except ModuleNotFoundError:
            _provide(parent, __path__=[])
    sys.modules[name] = module
    if parent:
        setattr(sys.modules[parent], leaf, module)
