"""The arguments and config values in which runs differ."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from rlnb.records.asked import asked

if TYPE_CHECKING:
    from rlnb.records.facts import RunFacts
    from rlnb.spec import Json


def differences(runs: Collection[RunFacts]) -> dict[str, dict[str, Json]]:
    """Return the value of each run, by its id, for every argument and resolved config value that differs.

    Two kinds of values are left out, because they say nothing: texts that differ only in the folder or the id of their
    run, and config values that repeat an argument in all runs, such as ``env.seed``. A run that waits in a queue has no
    resolved config yet, so only its arguments are compared.

    Args:
        runs: Runs with different ids.

    Returns:
        Values by id, by name; an empty text for a run that lacks the name.
    """
    configs = {run.id: run.config for run in runs}
    names = dict.fromkeys(name for config in configs.values() for name in config)
    rows = {name: {id: config.get(name, "") for id, config in configs.items()} for name in names}
    arguments = {name for run in runs for name in asked(run.manifest)}
    unresolved = {id for id, config in configs.items() if not config.keys() - arguments}
    plain = {run.id: (str(run.path), run.id) for run in runs}
    return {
        name: row
        for name, row in rows.items()
        if len({_text(value, plain[id]) for id, value in row.items() if name in arguments or id not in unresolved}) > 1
        and not _repeats(name, rows, arguments)
    }


def _text(value: Json, names: tuple[str, str]) -> str:
    """Return a value as text without its run's folder and id."""
    text = repr(value)
    for name in names:
        text = text.replace(name, "")
    return text


def _repeats(name: str, rows: Mapping[str, Mapping[str, Json]], arguments: Collection[str]) -> bool:
    """Return whether a config value equals an argument of the same name in all runs."""
    return name not in arguments and any(
        name.endswith(f".{argument}") and rows[name] == rows[argument] for argument in arguments
    )
