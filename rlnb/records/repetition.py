"""The run that another run repeats: copies of its records, and the differences that may change the curve."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rlnb.errors import RlnbError
from rlnb.records.arguments import changed_arguments, dumps_of, resolved_configs
from rlnb.records.record import RunRecord
from rlnb.storage import entries, files

if TYPE_CHECKING:
    from rlnb.records.layout import RunDir
    from rlnb.spec import Json, Started

MOST = 5
"""Largest number of config values that a sentence names."""
_KIND = re.compile(r"^[a-z]+")


def copy_records(original: RunRecord, run: RunDir) -> None:
    """Copy what a repetition is compared with into its folder: the original's manifest, starts and resolved configs.

    Args:
        original: The run that is repeated.
        run: Folder of the new run.
    """
    folder, paths = run.like, [*dumps_of(original.folder)]
    paths += [job.folder.started for job in original.jobs if job.kind == "train" and files.there(job.folder.started)]
    for path in [original.folder.manifest, *paths]:
        copy = folder.path / path.relative_to(original.path)
        files.make_folder(copy.parent)
        entries.copy(path, copy)


def original_of(record: RunRecord) -> RunRecord | None:
    """Return the copied records of the run that a run repeats; None if it repeats none, or they are missing."""
    if record.manifest.like is None or not files.there(record.folder.like.manifest):
        return None
    return RunRecord(record.folder.like.path)


def differences(record: RunRecord) -> tuple[str, ...]:
    """Return what differs between a run and the run that it repeats, besides the arguments that the user changes.

    Each sentence names something that may change the curve: versions, devices, assets, and config values. Empty if the
    run repeats none, and as long as it has not started.
    """
    with contextlib.suppress(RlnbError):  # a damaged copy
        original, now = original_of(record), record.last_started
        then = original.last_started if original is not None else None
        if original is not None and then is not None and now is not None:
            changes = {*changed_arguments(original.manifest, record.manifest)}
            return (
                *of_versions(versions_of(original), versions_of(record)),
                *_of_machines(original, then, now, changes),
                *_of_configs(original, record, changes),
            )
    return ()


def rows(record: RunRecord) -> list[tuple[str, str]]:
    """Return the rows of a table that name the run which a run repeats, and what differs."""
    like = record.manifest.like
    return [] if like is None else [("repeats", like), *[("differs", text) for text in differences(record)]]


def versions_of(record: RunRecord) -> dict[str, str]:
    """Return the recorded versions of everything that a training used, by name."""
    started = record.last_started
    return {**record.manifest.versions, **(started.versions if started else {}), **_plugins(started)}


def of_versions(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return a sentence on the versions that differ, for the names that both sides have; an empty list if none does."""
    unequal = [name for name in sorted({*then} & {*now}) if then[name] != now[name]]
    texts = [f"{name} {then[name]} then, {now[name]} now" for name in unequal]
    return [f"Other versions: {'; '.join(texts)}."] if texts else []


def _plugins(started: Started | None) -> dict[str, str]:
    return {f"plugin {name}": version for name, version in ((started and started.plugins) or {}).items()}


def _of_machines(original: RunRecord, then: Started, now: Started, changes: set[str]) -> Iterator[str]:
    """Name other devices, ranks and assets, and a training that was not made in one piece."""
    kinds = [{match[0] for device in one.devices if (match := _KIND.match(device))} for one in (then, now)]
    if kinds[0] != kinds[1] and "device" not in changes:
        yield f"Other devices: {', '.join(then.devices)} then, {', '.join(now.devices)} now."
    elif then.gpu != now.gpu:
        yield f"Another GPU: {then.gpu or 'none'} then, {now.gpu or 'none'} now."
    if then.world_size != now.world_size and "ranks" not in changes:
        yield f"Another number of ranks: {then.world_size} then, {now.world_size} now."
    if then.threads and now.threads and then.threads != now.threads:
        yield f"Another number of torch's threads: {then.threads} then, {now.threads} now."
    digests = [
        {path.rsplit("/", 1)[-1]: digest for path, digest in one.assets.items() if digest} for one in (then, now)
    ]
    if assets := [name for name in sorted({*digests[0]} & {*digests[1]}) if digests[0][name] != digests[1][name]]:
        yield f"Other assets: {', '.join(assets[:MOST])}."
    if code := [name for name, digest in then.sources.items() if now.sources.get(name, digest) != digest]:
        yield f"Other versions of the files {', '.join(code[:MOST])}."
    if then.first_iteration:
        yield f"{original.manifest.run_id} was resumed, last at iteration {then.first_iteration}; this run was not."


def _of_configs(original: RunRecord, record: RunRecord, changes: set[str]) -> Iterator[str]:
    """Name the resolved config values that differ although the arguments are the same."""
    then, now = resolved_configs(original.folder), resolved_configs(record.folder)
    library = record.library_spec
    overruled = {f"agent.{path}": name for path, name in library.overruled.items()} if library else {}
    for part in ("env", "agent"):
        names = [name for name in dict.fromkeys((*then, *now)) if name.startswith(f"{part}.")]
        if not {*names} & then.keys() or not {*names} & now.keys():  # one of the runs has dumped none
            continue
        ids = original.manifest.run_id, record.manifest.run_id
        unequal = [
            name
            for name in names
            if _text(then.get(name), ids[0]) != _text(now.get(name), ids[1])
            and overruled.get(name) not in changes
            and not any(f".{name}".endswith(f".{argument}") for argument in changes)
        ]
        texts = [f"{name} {then.get(name)!r} then, {now.get(name)!r} now" for name in unequal[:MOST]]
        texts += [f"{len(unequal) - MOST} more"] if len(unequal) > MOST else []
        if texts:
            yield f"Other config values: {'; '.join(texts)}."


def _text(value: Json, run_id: str) -> str:
    """Return a value as text, without the path up to its run's folder."""
    return re.sub(rf"[^\s'\"]*{re.escape(run_id)}", "", repr(value))
