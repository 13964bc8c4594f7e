"""Attacks on a folder of runs that two real users share, made by rule from every name in it. Needs root, on Linux.

Ann and Eve each train, define tasks and so on in a root as docs/hosted.md describes it. Every kind of file and folder
that is there afterwards is a target. In an attack, Eve puts something else in its place, as far as the operating system
lets her, and Ann uses one verb. Ann's private files are watched by inotify: only she may read them, and no verb
has a reason to. What would be executed of Eve's leaves a mark.

Eve's hard links are made by root, as Linux does for everybody where ``fs.protected_hardlinks`` is 0. Her swap between a
check and its use is no matter of luck: an audit hook in Ann's process stops it before the use until Eve is done.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import itertools
import json
import os
import random
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
from users import FOLDERS

import rlnb

LIMIT_S = 20.0
"""Seconds within which a verb must end."""
PATIENCE_S = 90.0
"""Seconds of a second try on a busy machine. A verb that waits for Eve does not end within them either."""
FURNISH_S = 600.0
"""Seconds for the runs of both users, of which an idle machine needs 20."""
TOKEN = "canary-5d0f3a"
"""Part of the content of each of Ann's private files."""
CELL = "# first\nTASK = {number}\n"
MANIPULATIONS = (
    "link to a file",
    "link to a folder",
    "fifo",
    "device",
    "other owner",
    "swapped",
    "hard link",
    "dots",
    "dash",
)
VERBS = ("train", "resume", "evaluate", "prune", "archive", "cancel", "list", "define", "report", "panel")
PROGRAMS = ("scancel", "squeue", "sbatch", "scontrol", "sacct", "sinfo", "qdel", "ssh")
_EXECUTED = {"python", "script", "argv", "command", "prologue", "module", "imports", "source", "success"}
_READ, _CHANGED = 0x1, 0x2 | 0x4 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800  # IN_ACCESS; IN_MODIFY, IN_ATTRIB, ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """A kind of file or folder of a root."""

    kind: str
    """Path below the root, without ids and numbers."""
    path: str
    """Path of one of the kind, below the root. It is Eve's, or a name in a folder where everybody can make one."""
    folder: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attack:
    """What Eve does, and the verb that Ann uses."""

    target: Target
    manipulation: str
    verb: str
    number: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of an attack."""

    attack: Attack
    violations: tuple[str, ...]
    skipped: str = ""
    """Why the operating system lets no user do it."""
    bare: str = ""
    """An error of Ann's verb that is not rlnb's own."""
    said: str = ""


class World:
    """Two users, the root that they share, Ann's private files, and what records their misuse.

    Args:
        base: An empty folder.
    """

    def __init__(self, base: Path) -> None:
        self.base, self.root, self.template = base, base / "root", base / "template"
        self.private, self.marks, self.bin = base / "ann" / "private", base / "marks", base / "bin"
        number = 61_000 + os.getpid() % 2000 * 2  # no other test has these users, so all their processes may be ended
        self.ann, self.eve = number, number + 1
        base.chmod(0o755)
        for folder in (self.marks, base / "tmp", self.root, *(self.root / name for name in FOLDERS)):
            folder.mkdir()
            folder.chmod(0o1777)
        (self.root / "tasks" / "history").mkdir()
        (self.root / "tasks" / "history").chmod(0o1777)
        for name, uid in (("ann", self.ann), ("eve", self.eve)):
            (base / name).mkdir(0o755)
            os.chown(base / name, uid, uid)
        self.bin.mkdir(0o755)
        for name in PROGRAMS:
            self._program(self.bin / name, f'echo "{name} $*" >> {self.marks}/queue-$(id -u)')
        self.evil = base / "eve" / "evil.sh"
        self._program(self.evil, f"touch {self.marks}/executed-$(id -u)")

    @staticmethod
    def _program(path: Path, line: str) -> None:
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)

    def furnish(self) -> None:
        """Let both users fill the root, and keep a copy of it."""
        for uid in (self.ann, self.eve):
            said, ended = self.act(uid, lambda uid=uid: _furnish("Ann" if uid == self.ann else "Eve"), FURNISH_S)
            if not ended or "Traceback" in said:
                raise RuntimeError(f"the root could not be furnished: {said}")
        self.end_processes()
        subprocess.run(["cp", "-a", self.root, self.template], check=True)

    def reset(self) -> None:
        """Make the root as it was, and Ann's private folder empty."""
        for folder in (self.root, self.private, *self.marks.iterdir()):
            if folder.is_dir() and not folder.is_symlink():
                shutil.rmtree(folder)
            elif os.path.lexists(folder):
                folder.unlink()
        subprocess.run(["cp", "-a", self.template, self.root], check=True)
        self.private.mkdir()
        os.chown(self.private, self.ann, self.ann)

    def act(self, uid: int, what: Callable[[], object], limit_s: float = LIMIT_S) -> tuple[str, bool]:
        """Do something as a user in a process of its own; return what it prints, and whether it ended in time."""
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            pid = os.fork()
            if pid == 0:
                self._become(uid, output.fileno(), what)
            until = time.monotonic() + limit_s
            while not (ended := os.waitpid(pid, os.WNOHANG)[0] == pid) and time.monotonic() < until:
                time.sleep(0.005)
            if not ended:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            output.seek(0)
            return output.read(), ended

    def _become(self, uid: int, output: int, what: Callable[[], object]) -> None:
        home = self.base / ("ann" if uid == self.ann else "eve")
        try:
            os.setsid()
            for descriptor in (1, 2):
                os.dup2(output, descriptor)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            os.umask(0o022)
            os.chdir(home)
            tempfile.tempdir = str(self.base / "tmp")
            os.environ.update(
                HOME=str(home),
                TMPDIR=str(self.base / "tmp"),
                RLNB_ROOT=str(self.root),
                RLNB_CACHE=str(home / ".cache"),
                PATH=f"{self.bin}:{os.environ['PATH']}",
            )
            rlnb.options.root = self.root
            what()
            sys.stdout.flush()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(0)

    def end_processes(self) -> None:
        """End all processes of the two users."""
        for process in psutil.process_iter(["uids"]):
            with contextlib.suppress(psutil.Error):
                if process.info["uids"].real in (self.ann, self.eve):
                    process.kill()


def _furnish(who: str) -> None:
    """Do what a user of rlnb does, so that a file of each kind lies in the root."""
    for number in (1, 2):
        rlnb.define(f"Push-{who}", CELL.format(number=number))
    quick: dict[str, Any] = {"library": "echo", "agent": {"iteration_s": 0.0}}
    run = rlnb.train("Echo", max_iterations=20, tags=[who], alerts=["iteration > 3"], **quick)
    script = _script()
    done = rlnb.train(script=script)
    failed = rlnb.train("Echo", library="echo", agent={"crash_at": 1, "iteration_s": 0.0}, max_iterations=4)
    sweep = rlnb.sweep("Echo", space={"seed": [1, 2]}, n_trials=2, max_iterations=2, name=f"g-{who}", **quick)
    run.wait(60)
    run.evaluate(episodes=4)
    run.notes.add("a note")
    run.resume(max_iterations=25).wait(60)
    rlnb.Runs([done.wait(60)]).archive().apply()
    with contextlib.suppress(rlnb.RlnbError):
        failed.wait(60)
    sweep.wait(60)
    rlnb.train(like=run, init_from=run, max_iterations=2).wait(60)
    for name in ("media/training-000001.mp4", "exports/policy.onnx", "view/wanted.json", "logs/system/usage.csv"):
        (run.path / name).parent.mkdir(exist_ok=True)
        (run.path / name).write_text("{}")
    (run.path / "report.html").write_text("<p>report</p>")
    (run.path / "report.ipynb").write_text('{"cells": [], "metadata": {"rlnb_report": true}, "nbformat": 4}')
    cancelled = rlnb.train("Echo", library="echo", agent={"iteration_s": 1.0}, max_iterations=500)
    cancelled.cancel()
    _make_queued(failed.path, "7" if who == "Ann" else "8")
    for name in ("cards", "reports", "arrays", "simulators/kernels"):
        (rlnb.options.folders.path / name / f"{who.lower()}.json").write_text('{"kind": "made by hand"}')


def _script() -> Path:
    script = Path.home() / "script.py"
    script.write_text("print('trained')\n")
    return script


def _make_queued(run: Path, number: str) -> None:
    """Make of a run one of Slurm whose host was killed."""
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps({**manifest, "launcher": "slurm", "launcher_settings": {"nodes": 1}}))
    job = next((run / "jobs").iterdir())
    for path in job.iterdir():
        if path.name not in ("job.json", "command.json", "handle.json"):
            path.unlink()
    (job / "submitted.json").write_text(json.dumps({"queue": "slurm", "jobs": [number]}))


# -- the attacks


def targets(world: World) -> list[Target]:
    """Return one target of each kind of name in the root."""
    found: dict[str, Target] = {}
    for path in sorted(world.template.rglob("*")):
        below = path.relative_to(world.template)
        if path.parent.lstat().st_uid == world.ann:
            continue  # the operating system keeps Eve out of Ann's folders; each kind is in one of hers too
        kind = kind_of(str(below))
        found.setdefault(kind, Target(kind=kind, path=str(below), folder=path.is_dir()))
    return list(found.values())


def kind_of(path: str) -> str:
    """Return a path without what differs from run to run."""
    kind = re.sub(r"(?<=/)\.?\d{8}-\d{6}-[\w.-]+?-[0-9a-f]{4}(?=/|$)", "RUN", path)
    kind = re.sub(r"(?i)\b(ann|eve)\b", "USER", kind)
    kind = re.sub(r"tfevents[^/]*", "tfevents", kind)
    return re.sub(r"[0-9a-f]{8,}|\d+", "N", kind)


def attacks(world: World, number: int, seed: int = 50, manipulations: Sequence[str] = MANIPULATIONS) -> list[Attack]:
    """Return attacks that have each manipulation and verb equally often, and each target as often as possible."""
    draw = random.Random(seed)
    pairs = list(itertools.product(manipulations, VERBS))
    draw.shuffle(pairs)
    kinds = targets(world)
    used: Counter[tuple[str, ...]] = Counter()
    chosen = []
    for count, (manipulation, verb) in zip(range(number), itertools.cycle(pairs), strict=False):
        fit = [one for one in kinds if not (manipulation == "hard link" and one.folder)]
        least = min(fit, key=lambda one: (used[one.kind, manipulation, verb], used[one.kind,], draw.random()))
        used[least.kind,] += 1
        used[least.kind, manipulation, verb] += 1
        chosen.append(Attack(target=least, manipulation=manipulation, verb=verb, number=count))
    return chosen


def try_out(world: World, attack: Attack) -> Outcome:
    """Carry out an attack; one that takes too long is tried again with more patience, as the machine may be busy."""
    outcome = _try_once(world, attack, LIMIT_S)
    if any(text.startswith("hangs") for text in outcome.violations):
        outcome = _try_once(world, attack, PATIENCE_S)
    return outcome


def _try_once(world: World, attack: Attack, limit_s: float) -> Outcome:
    world.reset()
    plot = Plot(world, attack)
    if skipped := plot.prepare():
        return Outcome(attack=attack, violations=(), skipped=skipped)
    try:
        before = _state(world.private)
        with Watch(world.private) as watch:
            said, ended = world.act(world.ann, plot.hooked(lambda: _use(attack.verb)), limit_s)
            world.end_processes()
            seen = watch.seen()
        violations = [] if ended else [f"hangs: {attack.verb} did not end within {limit_s:.0f} s"]
        violations += seen
        violations += ["Ann's private files have changed"] if _state(world.private) != before else []
        violations += _marks(world)
        violations += ["what is private was printed"] if TOKEN in said else []
        violations += [f"what is private is in {path}" for path in _published(world)]
    finally:
        world.end_processes()
        plot.end()
    bare = re.findall(r"^BARE (.*)", said, re.MULTILINE)
    return Outcome(attack=attack, violations=tuple(violations), bare="; ".join(bare), said=said)


def import_everything() -> None:
    """Import what the verbs need, before the process is copied for each of them."""
    import numpy  # noqa: F401
    import rlnb_jupyterlab.watcher  # noqa: F401

    with tempfile.TemporaryDirectory() as name:
        rlnb.options.root = Path(name)
        rlnb.runs().table()
        rlnb.runs()._repr_html_()


def _marks(world: World) -> Iterator[str]:
    """Yield what of Eve's was executed as Ann, and what Ann's commands of queues were told about the jobs of others."""
    for path in world.marks.iterdir():
        lines = path.read_text().splitlines()
        if path.name.startswith("executed") and not path.name.endswith(f"-{world.eve}"):
            yield f"executed: {path.name}"
        yield from (line for line in lines if line.startswith(("scancel", "qdel", "sbatch")) and line != "scancel -- 7")


def _published(world: World) -> Iterator[Path]:
    """Yield the files in the root, or outside of it, into which Ann's processes have copied what is private."""
    for folder in (world.root, world.base / "tmp"):
        for path in folder.rglob("*"):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and TOKEN.encode() in path.read_bytes():
                yield path


def _path_of(descriptor: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:  # that of the list itself
        return ""


def _state(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return the content and the mode of each file below a folder."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.lstat().st_nlink if path.is_file() else 0,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(folder.rglob("*"))
    }


class Plot:
    """What Eve puts in place of a target.

    Args:
        world: The world.
        attack: The attack.
    """

    def __init__(self, world: World, attack: Attack) -> None:
        self.world, self.attack = world, attack
        self.path = world.root / attack.target.path
        self._original = world.template / attack.target.path
        self._swap: tuple[int, tuple[int, ...]] | None = None
        """Process that swaps, and the pipes to it."""

    def prepare(self) -> str:
        """Do everything of Eve's that is done before Ann's verb; return why it cannot be done, if so."""
        mine = self._private()
        if not self.is_in_run:  # what Ann has not made yet
            if self.path.is_dir() and not self.path.is_symlink():
                shutil.rmtree(self.path)
            else:
                self.path.unlink()
        if self.attack.manipulation == "hard link":
            self._away()
            os.link(mine, self.path)
            return ""
        if self.attack.manipulation == "swapped" and not self.is_in_run and self.attack.number % 2:
            return ""  # the name is free until Ann is about to use it
        said, _ = self.world.act(self.world.eve, lambda: self._plant(mine))
        return said.strip().rpartition("\n")[2]

    @property
    def is_in_run(self) -> bool:
        parts = Path(self.attack.target.path).parts
        return parts[0] == "runs" and len(parts) > 2

    def hooked(self, verb: Callable[[], object]) -> Callable[[], object]:
        """Return a verb during which Eve swaps the target before it is used for the first or second time."""
        if self.attack.manipulation != "swapped":
            return verb
        asked, answered = os.pipe(), os.pipe()
        swap = os.fork()
        if swap == 0:
            if os.read(asked[0], 1):
                self.world.act(self.world.eve, lambda: self._link(self._place_of_copy()))
                os.write(answered[1], b"x")
            os._exit(0)
        uses = itertools.count()
        wanted = self.attack.number // 2 % 2

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event.split(".")[0] not in ("open", "os", "shutil", "glob", "pathlib") or not self._concerns(arguments):
                return
            if next(uses) == wanted:
                os.write(asked[1], b"x")
                os.read(answered[0], 1)
                print(f"SWAPPED before {event}{arguments[:2]}")

        def hooked() -> None:
            sys.addaudithook(hook)
            verb()

        self._swap = swap, (*asked, *answered)
        return hooked

    def end(self) -> None:
        """End the process that swaps."""
        if self._swap is not None:
            pid, descriptors = self._swap
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            for descriptor in descriptors:
                os.close(descriptor)

    def _concerns(self, arguments: tuple[Any, ...]) -> bool:
        """Return whether an event is about the target, by its path or by its name in its open folder."""
        texts = [os.fsdecode(value) for value in arguments[:2] if isinstance(value, (str, bytes, os.PathLike))]
        if any(text.startswith(str(self.path)) for text in texts):
            return True
        return self.path.name in texts and str(self.path.parent) in map(_path_of, os.listdir("/proc/self/fd"))

    def _place_of_copy(self) -> Path:
        return self.world.private / self.path.name

    def _private(self) -> Path:
        """Make a file, or a folder, of Ann's with what a reader of the target expects, and return its path."""
        mine = self._place_of_copy()
        wants_folder = self.attack.manipulation == "link to a folder" or (
            self.attack.target.folder and self.attack.manipulation != "link to a file"
        )
        if wants_folder:
            shutil.copytree(self._original if self.attack.target.folder else self._original.parent, mine, symlinks=True)
        else:
            mine.write_bytes(b"{}\n" if self.attack.target.folder else self._original.read_bytes())
        for path in (mine, *(mine.rglob("*") if mine.is_dir() else ())):
            if path.is_file():
                path.write_bytes(_marked(path.read_bytes()))
            os.chown(path, self.world.ann, self.world.ann, follow_symlinks=False)
            path.chmod(0o700 if path.is_dir() else 0o600)
        return mine

    # -- as Eve

    def _plant(self, mine: Path) -> None:
        kind = self.attack.manipulation
        if kind in ("link to a file", "link to a folder"):
            self._link(mine)
        elif kind == "fifo":
            self._away()
            os.mkfifo(self.path, 0o666)
        elif kind == "device":
            self._link(Path("/dev/zero"))
        elif kind == "dash":
            self._away()
            self._put(self.path.with_name(f"--user=ann{self.path.suffix}"), {"all": "--user=ann"})
            self._put(self.path, {"all": "--user=ann"})
        elif kind == "dots":
            self._away()
            self._put(self.path.with_name(f"..{self.path.name}"), {})
            self._put(self.path, {"all": os.path.relpath(mine, self.path.parent)})
        else:
            self._away()
            executed = dict.fromkeys(_EXECUTED, str(self.world.evil)) if kind == "other owner" else {}
            self._put(self.path, executed)
        with contextlib.suppress(OSError):
            self._open_up()

    def _open_up(self) -> None:
        """Let Ann write into what is Eve's, so that nothing is refused for want of a right."""
        top = self.world.root.joinpath(*Path(self.attack.target.path).parts[:2])
        for path in (top, *top.rglob("*")):
            if not path.is_symlink() and path.stat().st_uid == os.getuid():
                path.chmod(path.stat().st_mode | (0o777 if path.is_dir() else 0o666))

    def _link(self, target: Path) -> None:
        self._away()
        self.path.symlink_to(target)

    def _away(self) -> None:
        if os.path.lexists(self.path):
            self.path.rename(self.path.with_name(f"{self.path.name}.eve"))

    def _put(self, path: Path, values: dict[str, str]) -> None:
        """Write a copy of the target with Eve's values."""
        if self.attack.target.folder:
            shutil.copytree(self._original, path)
        else:
            path.write_bytes(self._original.read_bytes())
        for file in (path, *(path.rglob("*") if path.is_dir() else ())):
            if not file.is_file():
                continue
            if file.suffix == ".json":
                with contextlib.suppress(ValueError):
                    file.write_text(json.dumps(_hostile(json.loads(file.read_text()), values)))
            elif file.suffix == ".py":
                file.write_text(f"{file.read_text()}\nimport os; os.system({str(self.world.evil)!r})\n")


def _hostile(value: Any, values: dict[str, str], name: str = "") -> Any:
    """Return a record with Eve's values of some names, or of all texts that are no words of rlnb's."""
    if isinstance(value, dict):
        return {key: _hostile(one, values, key) for key, one in value.items()}
    if isinstance(value, list):
        return [_hostile(one, values, name) for one in value]
    if isinstance(value, str) or (value is None and name in values):
        kept = ("kind", "library", "launcher", "state", "queue", "created", "time", "schema")
        return values.get(name) or (values.get("all", value) if name not in kept else value)
    return value


def _marked(content: bytes) -> bytes:
    """Return a content with the token, in the same format as far as it is text."""
    with contextlib.suppress(ValueError):
        data = json.loads(content)
        if isinstance(data, dict):
            texts = {key: TOKEN for key in ("text", "error", "what", "detail") if isinstance(data.get(key), str)}
            return json.dumps({**data, **texts, "private": TOKEN}).encode()
    return content + f"\n# {TOKEN}\n".encode()


class Watch:
    """Notices each read and each change of the files below a folder, by any of their names (inotify(7))."""

    def __init__(self, folder: Path) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._paths: dict[int, Path] = {}
        for path in (folder, *folder.rglob("*")):
            if not path.is_symlink():
                number = self._libc.inotify_add_watch(self._descriptor, os.fsencode(path), _READ | _CHANGED)
                if number < 0:
                    raise OSError(ctypes.get_errno(), "inotify_add_watch", str(path))
                self._paths[number] = path.relative_to(folder.parent)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def seen(self) -> list[str]:
        """Return what happened to the files."""
        found: dict[str, None] = {}
        with contextlib.suppress(BlockingIOError):
            while content := os.read(self._descriptor, 1 << 16):
                while content:
                    number, mask, _, length = struct.unpack_from("iIII", content)
                    name = os.fsdecode(content[16 : 16 + length].rstrip(b"\0"))  # of an entry of a folder
                    content = content[16 + length :]
                    path = self._paths.get(number, Path("?")) / name
                    if mask & _READ:
                        found[f"read: {path}"] = None
                    if mask & _CHANGED:
                        found[f"changed: {path}"] = None
        return list(found)


# -- Ann's verbs


def _use(verb: str) -> None:
    for what in _steps(verb):
        try:
            if (shown := what()) is not None:
                print(shown)
        except rlnb.RlnbError as exc:
            print(f"RlnbError: {exc}")
        except TimeoutError:
            raise
        except Exception as exc:
            print(f"BARE {type(exc).__name__}: {exc}")
            traceback.print_exc()


def _runs() -> list[rlnb.Run]:
    return [*rlnb.runs(), *rlnb.runs(archived=True)]


def _steps(verb: str) -> list[Callable[[], object]]:
    quick: dict[str, Any] = {"library": "echo", "agent": {"iteration_s": 0.0}, "max_iterations": 2}
    if verb == "train":
        return [
            lambda: rlnb.train("Echo", **quick).wait(),
            lambda: rlnb.train(script=_script()).wait(),
            *(lambda name=name: repr(rlnb.task(name)) for name in ("Push-Ann", "Push-Eve")),
            *(lambda one=one: rlnb.train(like=one) for one in _foreign()),
            *(lambda one=one: rlnb.train("Echo", init_from=one, **quick) for one in _foreign()[:1]),
        ]
    if verb == "define":
        return [
            *(lambda n=n: rlnb.define("Push-Ann", CELL.format(number=n)) for n in (7, 8)),
            lambda: rlnb.define("Push-Eve", CELL.format(number=9)),
        ]
    if verb == "list":
        return [lambda: repr(rlnb.runs()), lambda: rlnb.runs().table().to_string(), lambda: rlnb.runs()._repr_html_()]
    if verb == "prune":
        return [
            lambda: repr(rlnb.runs().prune(keep=1).apply()),
            lambda: repr(rlnb.Runs(_runs()).prune(whole=True).apply()),
        ]
    if verb == "report":
        return [lambda one=one: rlnb.report(one) for one in (_foreign() or _runs())[:1]]
    if verb == "panel":
        return [_panel]
    if verb == "archive":
        return [lambda one=one: rlnb.Runs([one]).archive().apply() for one in _runs()]
    if verb == "cancel":
        return [_cancel_own, *(lambda one=one: (one.state, one.cancel()) for one in _runs())]
    acting: dict[str, Callable[[rlnb.Run], object]] = {
        "resume": lambda run: run.resume(max_iterations=27).wait(),
        "evaluate": lambda run: run.evaluate(episodes=2),
    }
    own = [run for run in _runs() if "Ann" in run.tags][:1]
    return [lambda one=one: acting[verb](one) for one in (*own, *_foreign())]


def _foreign() -> list[rlnb.Run]:
    """Return Eve's runs, those that were trained longest first."""
    runs = [run for run in _runs() if os.lstat(run.path).st_uid != os.getuid()]
    return sorted(runs, key=lambda run: "Eve" not in run.tags)


def _cancel_own() -> None:
    run = rlnb.train("Echo", library="echo", agent={"iteration_s": 0.5}, max_iterations=500)
    run.cancel()


def _panel() -> None:
    """Ask for everything that the pages of the panel show."""
    from rlnb_jupyterlab import detail, logs
    from rlnb_jupyterlab.pages import Pages
    from rlnb_jupyterlab.watcher import Watcher, key_of

    watcher = Watcher([rlnb.options.folders.path], Pages())
    for known in _runs():
        run = watcher.run(key_of(known))
        if run is None:
            continue
        print(detail.detail(run, key_of(known)))
        for path in (*detail.files(run), *(run.path / name for name in ("manifest.json", "report.html"))):
            if (file := detail.open_offered(run, path)) is not None:
                with file:
                    print(file.read(4096))
        for job in run.jobs:
            for log in job.folder.logs():
                if (file := logs.open_log(run, job.folder.number, log.name)) is not None:
                    with file:
                        print(logs.piece(file, -4096))
    print(watcher.simulators())


# -- the whole


def readable_python() -> None:
    """Let other users read the interpreter, in a mount namespace of this process alone.

    An interpreter below ``/root`` is closed to them; there, each folder above it is replaced by an open one.
    """
    real = Path(os.path.realpath(sys.executable))
    closed = next((folder for folder in reversed(real.parents) if not folder.stat().st_mode & 0o001), None)
    if closed is None:
        return
    os.unshare(os.CLONE_NEWNS)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    kept = real.parents[1]
    with tempfile.TemporaryDirectory(prefix="rlnb-python-") as name:
        subprocess.run(["mount", "--bind", kept, name], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", closed], check=True)
        kept.mkdir(parents=True)
        subprocess.run(["mount", "--bind", name, kept], check=True)
        subprocess.run(["umount", name], check=True)


def run(
    number: int,
    seed: int = 50,
    only: Callable[[Attack], bool] = lambda attack: True,
    manipulations: Sequence[str] = MANIPULATIONS,
) -> Iterator[Outcome]:
    """Carry out attacks and yield what came of each."""
    readable_python()
    with tempfile.TemporaryDirectory(prefix="rlnb-attacks-") as name:
        world = World(Path(name))
        try:
            import_everything()
            world.furnish()
            for attack in attacks(world, number, seed, manipulations):
                if only(attack):
                    yield try_out(world, attack)
        finally:
            world.end_processes()


def main() -> None:
    """``python attacks.py NUMBER [SEED]``: carry out attacks and print a line of JSON for each."""
    for outcome in run(*map(int, sys.argv[1:])):
        print(json.dumps(dataclasses.asdict(outcome)), flush=True)


if __name__ == "__main__":
    main()
