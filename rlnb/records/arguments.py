"""The arguments of a run, under the names by which the user gave them, and its resolved configs."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from rlnb.errors import RlnbError
from rlnb.records.layout import RunDir
from rlnb.spec import COMPARED, Json, Manifest, Resources, Started, Task
from rlnb.storage import files, yaml_file
from rlnb.storage.entries import MOST_ALIKE, files_below

SYNONYMS = {"parent": "init_from"}
"""Other names of arguments. The manifest of a run calls the origin of its first weights its parent."""
ALIKE = ("seed", "tags")
"""Arguments that may differ between runs that are averaged."""


def arguments_of(manifest: Manifest) -> dict[str, Json]:
    """Return the arguments that the run was given, in the order in which a legend should name them.

    ``init_from`` is the id of the run, or the file, that the first weights come from; ``inputs.teacher`` is the origin
    of an input, as in :attr:`rlnb.plugin.Manifest.inputs`. ``source`` is the hash of the
    task's module, and ``source.helpers.py`` that of a further file of the task. Task overrides are keyed by their
    dotted path (``"sim.dt"``), agent values by theirs with the prefix ``agent.``, and arguments of Isaac Lab's launcher
    by their name with the prefix ``launcher_args.``. Arguments left at their default are omitted.
    """
    task = manifest.task
    values = {
        **common_arguments(manifest),
        **{f"inputs.{name}": origin for name, origin in manifest.inputs.items()},
        **{f"source.{name}": digest[:7] for name, digest in task.files.items()},
        **task.overrides,
        **{f"launcher_args.{name}": value for name, value in task.launcher_args.items()},
        **{f"agent.{path.removeprefix('+')}": value for path, value in manifest.agent.items()},
    }
    values["tags"] = values.pop("tags")  # the last one that a legend should name
    return {name: value for name, value in values.items() if value is not None}


def modules(started: Started | None) -> dict[str, Json]:
    """Return the hashes of the modules of a package's task, such as ``source.my_project.rewards``."""
    return {f"source.{name}": digest[:7] for name, digest in started.sources.items()} if started else {}


def shared_arguments(manifest: Manifest) -> dict[str, Json]:
    """Return the arguments that averaged runs share. Each may have its own run to start from, and its own inputs."""
    values = {name: value for name, value in arguments_of(manifest).items() if name not in ALIKE}
    origins = {name: "a run" for name in values if name == "init_from" or name.startswith("inputs.")}
    return {**values, **origins}


def changed_arguments(then: Manifest, now: Manifest) -> dict[str, Json]:
    """Return the arguments in which one run differs from another, with its own values; None for a default."""
    theirs, ours = arguments_of(then), arguments_of(now)
    return {name: ours.get(name) for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)}


def argument(manifest: Manifest, name: str) -> Json:
    """Return an argument by a name of :func:`arguments_of`, or by a synonym; None if it was left at its default."""
    return arguments_of(manifest).get(SYNONYMS.get(name, name))


def common_arguments(manifest: Manifest) -> dict[str, Json]:
    """Return the arguments that every run has, with None for those left at their default."""
    return {
        "task": manifest.task.id,
        "library": manifest.library,
        "agent": manifest.agent_name,
        **_compared(manifest),
        **_compared(manifest.task),
        "init_from": manifest.parent,
        **_compared(manifest.resources),
        "ranks": manifest.resources.world_size,
        "launcher": manifest.launcher,
        "source": (manifest.task.source_sha256 or "")[:7] or None,
        "tags": "+".join(map(str, manifest.tags)) or None,
    }


def _compared(part: Manifest | Task | Resources) -> dict[str, Json]:
    """Return the fields of a manifest, or of a part of one, that runs are compared by."""
    values = {field.name: getattr(part, field.name) for field in fields(part) if field.metadata == COMPARED}
    texts = {name: "+".join(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return {name: None if text is False or text == "" else text for name, text in texts.items()}


ARGUMENTS = frozenset(common_arguments(Manifest(run_id="", created="", task=Task(id=""), library=""))) | SYNONYMS.keys()
"""Names that are arguments of every run, even of one that leaves them at their default."""


# -- resolved configs ------------------------------------------------------------------------------------------------


_DUMPS = ("env.yaml", "agent.yaml")


def resolved_configs(folder: RunDir) -> dict[str, Json]:
    """Return every value of the env's and the agent's config by dotted path: ``"env.sim.dt"``, ``"agent.seed"``.

    Lists are not flattened. Empty if the run has not dumped its configs yet.
    """
    values: dict[str, Json] = {}
    for path in dumps_of(folder):
        with contextlib.suppress(OSError):  # the file was deleted since it was found
            stat = path.stat()
            values.update(_values(path.stem, path, stat.st_mtime_ns, stat.st_size))
    return values


def dumps_of(folder: RunDir) -> Iterator[Path]:
    """Yield the files with the resolved configs of a run, that of the env first, as far as they exist."""
    dumps = sorted(
        path for path in files_below(folder.path, _DUMPS.__contains__, alike=MOST_ALIKE) if path.parent.name == "params"
    )
    paths = [path for path in dumps if not path.is_relative_to(folder.like.path)]  # that has those of another run
    for name in _DUMPS:
        yield from [path for path in paths if path.name == name][:1]


@functools.lru_cache(maxsize=64)
def _values(part: str, path: Path, mtime_ns: int, size: int) -> dict[str, Json]:
    """Return the values of a dump, cached while the file is unchanged: live views read the same run many times."""
    return dict(_flat(part, _load(path)))


def _load(path: Path) -> Any:
    """Parse a dump without constructing objects from its Python tags."""
    try:
        return yaml_file.load(path, "rt")
    except OSError:
        return {}
    except RlnbError as exc:
        files.warn_once(str(exc))
        return {}


def _flat(name: str, value: Any) -> Iterator[tuple[str, Json]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}", inner)
    else:
        yield name, _plain(value)


def _plain(value: Any) -> Json:
    """Return the value without the comments, tags and number formats that ruamel attaches to it."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return None if value is None else str(value)
