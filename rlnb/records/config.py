"""The resolved configs of a run, from ``params/*.yaml``, which every library dumps in Isaac Lab's format."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlnb.errors import RlnbError
from rlnb.records.layout import RunDir
from rlnb.spec import Json
from rlnb.storage import files, yaml_file
from rlnb.storage.entries import files_below

_DUMPS = ("env.yaml", "agent.yaml")


def resolved(folder: RunDir) -> dict[str, Json]:
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
    dumps = sorted(path for path in files_below(folder.path, _DUMPS.__contains__) if path.parent.name == "params")
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
