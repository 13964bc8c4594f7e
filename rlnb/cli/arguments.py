"""Arguments that several commands share, and the values of ``path=value`` options."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, NoReturn

import typer

from rlnb.errors import CheckError, Problem
from rlnb.spec import Json

RunId = Annotated[
    str, typer.Argument(metavar="RUN", help="Id of the run, a unique part of the id, or the folder of the run.")
]
TaskId = Annotated[
    str, typer.Argument(metavar="TASK", help="Registered id, module:EnvCfg, or the name of a %%task cell.")
]
Python = Annotated[str | None, typer.Option("--python", help="Command that starts the worker's Python interpreter.")]
AssetRoot = Annotated[str | None, typer.Option(help="Folder or URL of the robot assets.")]
Imports = Annotated[
    list[str] | None,
    typer.Option("--import", help="Module that registers tasks, such as my_project.tasks. Repeatable."),
]
Checkpoint = Annotated[str | None, typer.Option(help="Name or path of a checkpoint; the last checkpoint by default.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="Act on a run of another user, and load a checkpoint that may contain code.")
]
Mode = Annotated[
    str | None,
    typer.Option(
        metavar="play|train",
        help="Env after Isaac Lab's play_mode(), or the env of the training with its noise and pushes. Default: play.",
    ),
]
Wait = Annotated[bool, typer.Option("--wait/--detach", help="Wait until the run ends, or print its id and exit.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

_POINTED = re.compile(r"[-+]?(\d+\.\d*|\.\d+)([eE][-+]?\d+)?")
EXAMPLES = {
    "set": "sim.dt=0.005",
    "agent": "algorithm.learning_rate=3e-4",
    "where": "num_envs=512",
    "launcher-set": "partition=gpu",
    "launcher-arg": "livestream=2",
    "input": "teacher=RUN",
}


def values(**options: Sequence[str] | None) -> list[Mapping[str, Json]]:
    """Return a mapping for each ``path=value`` option: its values by dotted path.

    Raises:
        CheckError: A text has no path or no equals sign. The error lists all such texts.
    """
    problems: list[Problem] = []
    mappings: list[Mapping[str, Json]] = []
    for name, lines in ((option.replace("_", "-"), lines) for option, lines in options.items()):
        mapping, wrong = _pairs(name, lines, "path=value")
        problems += wrong
        mappings.append({path: value(text) for path, text in mapping.items()})
    if problems:
        raise CheckError("command line", problems)
    return mappings


def texts(option: str, lines: Sequence[str] | None) -> Mapping[str, str]:
    """Return the texts of a ``name=text`` option by name.

    Raises:
        CheckError: A text has no name or no equals sign. The error lists all such texts.
    """
    mapping, problems = _pairs(option, lines, "name=value")
    if problems:
        raise CheckError("command line", problems)
    return mapping


def _pairs(option: str, lines: Sequence[str] | None, form: str) -> tuple[dict[str, str], list[Problem]]:
    pairs = [(text, *text.partition("=")) for text in lines or ()]
    problems = [
        Problem(what=f"--{option} {text!r} is not {form}.", fix=f"--{option} {EXAMPLES[option]}")
        for text, name, equals, _ in pairs
        if not (name.strip() and equals)
    ]
    return {name.strip(): text for _, name, _, text in pairs}, problems


def value(text: str) -> Json:
    """Return the value of a JSON text or of a Python number such as ``.5``; any other text stays a string."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")  # json.loads accepts NaN and Infinity by default

    try:
        document: Json = json.loads(text, parse_constant=refuse)
        return document
    except ValueError:
        return float(text) if _POINTED.fullmatch(text) else text
