"""The arguments and config values in which runs differ."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from rlnb.records.asked import asked

if TYPE_CHECKING:
    from rlnb.records.facts import RunFacts
    from rlnb.spec import Json


_OF_A_CELL = re.compile(r"\b(rlnb_task_\w+)_[0-9a-f]{12}\b")
"""Name of a cell's module, as :func:`rlnb.worker.isaac.module.import_file` makes it."""


def differences(runs: Collection[RunFacts]) -> dict[str, dict[str, Json]]:
    """Return the value of each run, by its id, for every argument and resolved config value that differs.

    Two kinds of values are left out, because they say nothing: texts that differ only in the folder or the id of their
    run, and config values that repeat an argument in all runs, such as ``env.seed``. The name of a cell's module has a
    hash of its source, which is left out too, since ``source`` has it: functions of the same name count as equal. A run
    that waits in a queue has no resolved config yet, so only its arguments are compared. A module of a package is
    compared between the runs that have imported it, because a living simulator has also those of its earlier runs.

    Args:
        runs: Runs with different ids.

    Returns:
        Values by id, by name; an empty text for a run that lacks the name.
    """
    configs = {run.id: run.config for run in runs}
    names = dict.fromkeys(name for config in configs.values() for name in config)
    rows = {name: {id: _unhashed(config.get(name, "")) for id, config in configs.items()} for name in names}
    arguments = {name for run in runs for name in asked(run.manifest)}
    plain = {run.id: (str(run.path), run.id) for run in runs}
    return {
        name: row
        for name, row in rows.items()
        if len({_text(value, plain[id]) for id, value in row.items() if _compares(name, configs[id], arguments)}) > 1
        and not _repeats(name, rows, arguments)
    }


def _compares(name: str, config: Mapping[str, Json], arguments: Collection[str]) -> bool:
    """Return whether a run's value of a name, or the lack of one, says anything."""
    if name in arguments:
        return True
    return name in config if name.startswith("source.") else bool(config.keys() - arguments)


def _unhashed(value: Json) -> Json:
    """Return a value without the hashes in the names of cells' modules."""
    if isinstance(value, str):
        return _OF_A_CELL.sub(r"\1", value)
    return [_unhashed(item) for item in value] if isinstance(value, list) else value


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
