"""The arguments of Isaac Lab's launcher that a task passes on, and the reasons why it does not pass the others.

The kernel cannot import Isaac Lab, so the arguments of its release line 3.0 are listed here. A test compares them with
the installed Isaac Lab. Most of them are read only if Isaac Sim starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rlnb.errors import Problem, did_you_mean
from rlnb.spec import Json


@dataclass(frozen=True, kw_only=True, slots=True)
class Argument:
    """An argument of Isaac Lab's launcher."""

    takes: str
    """The valid values, in words."""
    example: Json
    """A valid value."""
    valid: Callable[[Json], bool]
    """Whether a value is valid."""


def _whole(value: Json, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _switch(example: bool = True) -> Argument:
    return Argument(takes="True or False", example=example, valid=lambda value: isinstance(value, bool))


def _number(example: int, least: int = 1) -> Argument:
    kind = "a positive whole number" if least == 1 else f"a whole number of at least {least}"
    return Argument(takes=kind, example=example, valid=lambda value: _whole(value, least))


ARGUMENTS: Mapping[str, Argument] = {
    "kit_args": Argument(
        takes="a string of arguments for Kit",
        example="--ext-folder=/path --enable my.extension",
        valid=lambda value: isinstance(value, str),
    ),
    "experience": Argument(
        takes="the path of an experience file",
        example="isaaclab.python.headless.kit",
        valid=lambda value: isinstance(value, str) and bool(value.strip()),
    ),
    "livestream": Argument(
        takes="0 (off), 1 (public network) or 2 (private network)",
        example=2,
        valid=lambda value: _whole(value, 0) and value in (0, 1, 2),
    ),
    "require_kit": _switch(),
    "limit_cpu_threads": _number(16),
    "width": _number(1280),
    "height": _number(720),
    "max_visible_envs": _number(16, least=0),
    "verbose": _switch(),
    "info": _switch(),
}
"""The arguments that a task passes on, by name."""

_VIEW = 'Use rlnb.view(task), or launcher_args={"livestream": 2} for the window of Isaac Sim.'
_SCRIPT = 'Use Isaac Lab\'s own script: rlnb.train(script="...").'
REFUSED: Mapping[str, str] = {
    "device": "Use rlnb.train(device=...).",
    "physics": "Use rlnb.task(physics=...).",
    "deterministic": "Use rlnb.train(deterministic=True).",
    "distributed": "Use rlnb.train(nproc_per_node=...).",
    "multi_gpu": "Use rlnb.train(nproc_per_node=...); every rank renders on its own GPU.",
    "physics_gpu": "Use rlnb.train(device=...).",
    "headless": f"Isaac Sim has no window here. {_VIEW}",
    "hide_ui": f"Isaac Sim has no window here. {_VIEW}",
    "visualizer": _VIEW,
    "enable_cameras": "Leave it out. Isaac Lab turns cameras on for tasks that have some.",
    "video": "Use run.play() for a film of the policy.",
    "xr": _SCRIPT,
    "anim_recording_enabled": _SCRIPT,
    "anim_recording_start_time": _SCRIPT,
    "anim_recording_stop_time": _SCRIPT,
}
"""The arguments that a task does not pass on, with what to use in their place: rlnb or Isaac Lab itself sets them, or
they need a window."""


def check(values: object) -> list[Problem]:
    """Return a problem for each launcher argument whose name or value is not valid."""
    if not isinstance(values, Mapping):
        example = 'launcher_args={"kit_args": "--enable my.extension"}'
        return [Problem(what=f"launcher_args={values!r} is not a mapping.", fix=example)]
    return [*_problems(values)]


def _problems(values: Mapping[str, Json]) -> Iterator[Problem]:
    for name, value in values.items():
        argument = ARGUMENTS.get(name)
        if argument is not None:
            if not argument.valid(value):
                what = f"launcher argument {name}={value!r} is not {argument.takes}."
                yield Problem(what=what, fix=f'launcher_args={{"{name}": {argument.example!r}}}')
        elif name in REFUSED:
            yield Problem(what=f"launcher argument {name!r} is not an argument of a task.", fix=REFUSED[name])
        else:
            hint = did_you_mean(str(name), [*ARGUMENTS, *REFUSED])
            what = f"Isaac Lab's launcher has no argument {name!r}.{hint}"
            yield Problem(what=what, fix=f"Use one of: {', '.join(ARGUMENTS)}.")
