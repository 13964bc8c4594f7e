"""Faults of files, folders and disks."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time

from chaos.world import World

RECORDS = ("manifest.json", "job.json", "command.json", "handle.json", "started.json", "result.json", "successor.json")
"""Records that are damaged."""
GARBAGE = (
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff\xfe\x00",
    b"{}",
    b'{"a":' * 5000,
    b'{"outcome": 7}',
    b'{"pid": "x", "host": 3}',
    b'{"pid": -1, "host": "vm", "created_s": null}',
    b'{"job": "../../.."}',
)


def other_host(world: World) -> bool:
    """Give this machine another name in a run's handles, so that no reader can tell if its process lives."""
    run = world.folder()
    handles = [*run.glob("jobs/*/handle.json")] if run else []
    for path in handles:
        with contextlib.suppress(OSError, ValueError, TypeError):
            path.write_text(json.dumps({**json.loads(path.read_text()), "host": "elsewhere"}))
    return bool(handles)


def damage_record(world: World) -> bool:
    """Replace a record by garbage, or by half of it."""
    run, name = world.folder(), world.rng.choice(RECORDS)
    paths = [path for path in (*run.glob(f"jobs/*/{name}"), *run.glob(name)) if path.is_file()] if run else []
    if run is None or not paths:
        return False
    path, content = world.rng.choice(paths), world.rng.choice(GARBAGE)
    world.damage[run.name].add(name)
    with contextlib.suppress(OSError):
        half = path.read_bytes()[: path.stat().st_size // 2]
        path.write_bytes(half if world.rng.random() < 0.2 else content)
    return True


def delete_record(world: World) -> bool:
    """Delete a record."""
    run = world.folder()
    paths = sorted(path for path in run.rglob("*") if path.is_file() and "logs" not in path.parts) if run else []
    if run is None or not paths:
        return False
    path = world.rng.choice(paths)
    world.damage[run.name].add(path.name)
    path.unlink(missing_ok=True)
    return True


def tear_events(world: World) -> bool:
    """Truncate an event file."""
    run = world.folder()
    paths = sorted(run.rglob("*tfevents*")) if run else []
    if run is None or not paths:
        return False
    world.damage[run.name].add("events")
    path = world.rng.choice(paths)
    with contextlib.suppress(OSError):
        os.truncate(path, world.rng.randrange(path.stat().st_size + 1))
    return True


def tear_checkpoint(world: World) -> bool:
    """Empty or truncate the newest checkpoint, as a loss of power does."""
    run = world.resumable()
    if run is None or len(run.checkpoints) < 2:
        return False
    path = run.checkpoints[-1]
    os.truncate(path, world.rng.choice([0, path.stat().st_size // 2]))
    return True


def fill_disk(world: World) -> bool:
    """Fill the disk."""
    if not world.disk:
        return False
    filler = world.root / "filler"
    with contextlib.suppress(OSError), open(filler, "wb") as file:
        while True:
            file.write(b"\0" * 65536)
    for run in world.folders():
        world.damage[run.name].add("disk")
    world.heals.append(lambda: filler.unlink(missing_ok=True))
    return True


def read_only(world: World) -> bool:
    """Make the disk read-only. Linux refuses while a file is open for writing; then nothing is done."""
    mount = ["mount", "-o", "remount,ro", str(world.root)]
    if not world.disk or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        return False
    for run in world.folders():
        world.damage[run.name].add("disk")
    back = ["mount", "-o", "remount,rw", str(world.root)]
    world.heals.append(lambda: subprocess.run(back, capture_output=True, check=False))
    return True


def remove_run(world: World) -> bool:
    """Remove a run's folder by hand."""
    run = world.folder()
    if run is not None:
        world.damage[run.name].add("removed")
        shutil.rmtree(run, ignore_errors=True)
    return run is not None


def rename_and_back(world: World) -> bool:
    """Rename a run's folder, and perhaps back."""
    run = world.folder()
    if run is None:
        return False
    away = run.with_name(run.name + "-away")
    run.rename(away)
    for name in (run.name, away.name):
        world.damage[name].add("renamed")
    world.look()
    time.sleep(world.rng.uniform(0, 0.5))
    if not run.exists() and world.rng.random() < 0.5:
        away.rename(run)
    return True


def move_root(world: World) -> bool:
    """Move the folder of runs and leave a link."""
    runs, away = world.root / "runs", world.root / "elsewhere"
    if world.disk or away.exists() or not runs.exists() or runs.is_symlink():
        return False
    runs.rename(away)
    with contextlib.suppress(OSError):
        runs.symlink_to(away)
    for run in away.iterdir():
        world.damage[run.name].add("moved")
    return True


def odd_entries(world: World) -> bool:
    """Put what is no run among the runs."""
    runs = world.root / "runs"
    entry = runs / f"odd{world.rng.randrange(1000)}"
    kind = world.rng.randrange(7)
    world.damage[entry.name].add("odd")
    with contextlib.suppress(OSError):
        if kind == 0:
            entry.symlink_to(entry.name)
        elif kind == 1:
            entry.symlink_to("nowhere")
        elif kind == 2:
            entry.write_text("a file")
        elif kind == 3:
            entry.symlink_to("/proc/self")
        elif kind == 4:
            (entry / "manifest.json").mkdir(parents=True)
        elif kind == 5:
            entry.mkdir()
            os.mkfifo(entry / "manifest.json")
        else:
            name = b"bad\xff\nname"
            world.damage[os.fsdecode(name)].add("odd")
            os.mkdir(os.fsencode(runs) + b"/" + name)
    return True


def no_permission(world: World) -> bool:
    """Take all permissions of a run's folder, which matters for users other than root."""
    run = world.folder()
    if run is None:
        return False
    os.chmod(run, 0)
    world.heals.append(lambda: os.chmod(run, 0o755))
    return True
