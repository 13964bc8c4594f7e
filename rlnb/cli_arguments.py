"""Arguments that several commands share, and the values of ``path=value`` words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from rlnb.errors import CheckError

RunId = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, a unique part of it, or its folder.")]
TaskId = Annotated[str, typer.Argument(metavar="TASK", help="Registered id, module:EnvCfg, or the name of a %%task.")]
Python = Annotated[str | None, typer.Option("--python", help="Command of the worker's interpreter.")]
AssetRoot = Annotated[str | None, typer.Option(help="Folder or URL of robot assets.")]
Checkpoint = Annotated[str | None, typer.Option(help="Checkpoint, by name or path; the last by default.")]
Trust = Annotated[bool, typer.Option("--trust", help="Load a checkpoint that holds more than weights.")]
Wait = Annotated[bool, typer.Option("--wait/--detach", help="Wait for the end, or print the id and return.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def values(*, set_: Sequence[str], agent: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return env and agent values by dotted path, from ``path=value`` words.

    Raises:
        CheckError: Words without a path or an equals sign, all at once.
    """
    from rlnb.spec import Problem

    problems, found = [], []
    for option, words in (("--set", set_), ("--agent", agent)):
        pairs = [word.partition("=") for word in words]
        for (path, equals, _), word in zip(pairs, words, strict=True):
            if not (path.strip() and equals):
                problems.append(Problem(what=f"{option} {word!r} is not path=value.", mend=f"{option} sim.dt=0.005"))
        found.append({path.strip(): value(text) for path, _, text in pairs})
    if problems:
        raise CheckError("command line", problems)
    return found[0], found[1]


def value(text: str) -> Any:
    """Return the JSON value that ``text`` is, else the text itself."""

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is no JSON")  # Python's reader would take NaN and Infinity

    try:
        return json.loads(text, parse_constant=refuse)
    except ValueError:
        return text
