"""Arguments that several commands share, and the values of ``path=value`` words."""

from __future__ import annotations

import json
import re
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

_POINTED = re.compile(r"[-+]?(\d+\.\d*|\.\d+)([eE][-+]?\d+)?")
EXAMPLES = {
    "set": "sim.dt=0.005",
    "agent": "algorithm.learning_rate=3e-4",
    "where": "num_envs=512",
    "launcher-set": "partition=gpu",
}


def values(**options: Sequence[str] | None) -> list[dict[str, Any]]:
    """Return the values by dotted path of options that take ``path=value`` words, a dict each.

    Raises:
        CheckError: Words without a path or an equals sign, all at once.
    """
    from rlnb.errors import Problem

    problems, found = [], []
    for name, words in ((option.replace("_", "-"), words) for option, words in options.items()):
        pairs = [(word, *word.partition("=")) for word in words or ()]
        for word, path, equals, _ in pairs:
            if not (path.strip() and equals):
                problems.append(Problem(what=f"--{name} {word!r} is not path=value.", fix=f"--{name} {EXAMPLES[name]}"))
        found.append({path.strip(): value(text) for _, path, _, text in pairs})
    if problems:
        raise CheckError("command line", problems)
    return found


def value(text: str) -> Any:
    """Return the JSON value that ``text`` is, else the number as in Python (``.5``), else the text itself."""

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is no JSON")  # Python's reader would take NaN and Infinity

    try:
        return json.loads(text, parse_constant=refuse)
    except ValueError:
        return float(text) if _POINTED.fullmatch(text) else text
