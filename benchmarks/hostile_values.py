"""Hostile values in every field of every record of a root that two users share. Needs root; about 6 minutes.

python benchmarks/hostile_values.py

Two users fill a root with real work: trainings, evaluations, sweeps, cells, notes, a job in a queue. Then each field of
one record of each kind of Eve's gets each hostile value, and Ann looks at that run: its state, logs, table, page, the
answers of the panel and the commands of a shell. A report takes seconds, so there is one for each value, which all
fields have at once.
Audit hooks see each program and each path that her process uses.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from results import record
from rlnb_jupyterlab import detail
from rlnb_jupyterlab.watcher import key_of

import rlnb
from rlnb.cli import app

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "rig"))
import attacks
from hostile import CONTROLS, MARKUP, VALUES, fields, put

HANG_S = 10.0
"""Seconds within which all looks at a run must end. They take half a second."""
TEXTS = [value for value in VALUES if isinstance(value, str)]
OF_FILES = {"os.listdir", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.scandir", "os.link", "os.symlink"}
OF_PROGRAMS = {"subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.spawn"}


class Hang(BaseException):
    """Something has not ended in time."""


def stop(*_: object) -> None:
    raise Hang("".join(traceback.format_stack(limit=6))[:1500])


class Ears:
    """Hears which programs and paths this process uses, and keeps those with a hostile value."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.off = True
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.off or not (event == "open" or event in OF_FILES or event in OF_PROGRAMS):
            return
        text = str(arguments)
        if any(value in text or repr(value)[1:-1] in text for value in TEXTS):
            self.heard.append(f"{'program' if event in OF_PROGRAMS else 'path'}: {event} {text[:300]}")


def of_kind(root: Path) -> dict[str, Path]:
    """Return one record of Eve's of each kind, those of the runs that have most records first."""
    found: dict[str, Path] = {}
    for path in sorted(root.rglob("*.json"), key=lambda path: (-len(list(path.parents[2].rglob("*"))), str(path))):
        if path.is_file() and not path.is_symlink():
            found.setdefault(attacks.kind_of(str(path.relative_to(root))), path)
    return found


def look(run_id: str) -> tuple[str, str, str]:
    """Look at a run in every way; return what pages, terminals and notebooks show of it."""

    run = rlnb.get_run(run_id)
    texts = [
        attempt(lambda: run.state),
        attempt(lambda: (run.reason, run.waits, run.alerts, run.progress, run.notes, run.tags, run.command)),
        attempt(lambda: run.logs()),
        attempt(lambda: (run.evaluations, run.checkpoints, run.jobs, run.restarts)),
        attempt(lambda: run.fetch()),
        attempt(lambda: run.cancel()),
        attempt(lambda: detail.detail(run, key_of(run))),
        attempt(lambda: detail.files(run)),
    ]
    pages = [
        page(lambda: run._repr_html_()),
        page(lambda: rlnb.Runs([run])._repr_html_()),
        page(lambda: run.goodput()._repr_html_()),
        page(lambda: [one._repr_html_() for one in (*run.evaluations, run.notes) if hasattr(one, "_repr_html_")]),
    ]
    shell = [in_shell(*argv) for argv in (["show", run_id], ["logs", run_id], ["runs"])]
    return "\n".join(texts), "\n".join(pages), "\n".join(shell)


def attempt(what: Callable[[], object]) -> str:
    """Return what is shown, or rlnb's error. Any other error is a violation."""
    try:
        return str(what())
    except rlnb.RlnbError as exc:
        return str(exc)
    except Exception as exc:
        return f"BARE {type(exc).__name__}: {exc}"


def page(what: Callable[[], object]) -> str:
    """Return a page; empty if there is none but rlnb's error, which a notebook shows as text."""
    shown = attempt(what)
    return shown if shown.lstrip("['\"(").startswith("<") or shown.startswith("BARE") else ""


def try_all(world: attacks.World) -> None:
    """Plant each value in each field, as root, and look at it as Ann; print a line of JSON for each violation."""
    ears, count = Ears(), 0
    signal.signal(signal.SIGALRM, stop)
    kinds = of_kind(world.root)
    total = sum(len(list(fields(json.loads(path.read_text())))) for path in kinds.values()) * len(VALUES)
    for kind, path in kinds.items():
        content = path.read_text()
        data = json.loads(content)
        print(f"{kind} ({count} of {total} values before)", file=sys.stderr, flush=True)
        for field in fields(data):
            for value in VALUES:
                count += 1
                os.seteuid(0)
                status = path.stat()
                path.write_text(json.dumps(put(data, field, value)))
                os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + count))
                os.seteuid(world.ann)
                for what in found(world, path, ears):
                    print(json.dumps({"kind": kind, "field": field, "value": value, "what": what}), flush=True)
                with contextlib.suppress(ChildProcessError):
                    while os.waitpid(-1, os.WNOHANG)[0]:
                        pass
        os.seteuid(0)
        path.write_text(content)
    print(json.dumps({"kinds": len(kinds), "count": count}))


def found(world: attacks.World, path: Path, ears: Ears) -> list[str]:
    """Return what a planted value has reached."""
    ears.heard.clear()
    run_id = next((one for one in path.relative_to(world.root).parts if one.startswith("20")), None)
    violations: list[str] = []
    ears.off = False
    signal.setitimer(signal.ITIMER_REAL, HANG_S)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            if run_id is None:
                texts, pages, shell = everything()
            else:
                texts, pages, shell = look(run_id)
        except rlnb.RlnbError as exc:  # the run cannot be opened at all
            texts, pages, shell = str(exc), "", ""
        except Hang as exc:
            violations.append(f"hang: {exc}")
            texts, pages, shell = "", "", ""
        except Exception as exc:
            texts, pages, shell = f"BARE {type(exc).__name__}: {exc}", "", ""
    signal.setitimer(signal.ITIMER_REAL, 0)
    ears.off = True
    violations += dict.fromkeys(ears.heard)
    violations += [f"page: {MARKUP.search(pages)}"] if MARKUP.search(pages) else []
    violations += [f"terminal: {CONTROLS.search(shell)}"] if CONTROLS.search(shell) else []
    violations += [line[:300] for line in texts.splitlines() if line.startswith("BARE")]
    return violations


def everything() -> tuple[str, str, str]:
    """Look at what belongs to no run: tables, sweeps, tasks, simulators."""
    texts = [attempt(lambda: rlnb.runs().table()), attempt(lambda: rlnb.task("Push-Eve"))]
    return "\n".join(texts), page(lambda: rlnb.runs()._repr_html_()), in_shell("runs")


@functools.cache
def command() -> Any:
    """Return the command line, which takes a while to make."""
    return typer.main.get_command(app.app)


def in_shell(*argv: str) -> str:
    """Return what a command prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), contextlib.suppress(SystemExit):
        command().main(list(argv))
    return said.getvalue()


def reports(world: attacks.World) -> None:
    """Plant a value in every field of a run at once and look at its report, once for each value."""
    run = next(run for run in rlnb.runs() if "Eve" in run.tags)
    kept = {"kind", "library", "launcher", "state", "queue", "created", "time", "schema", "run_id", "outcome"}
    records = [path for path in run.path.rglob("*.json") if path.is_file() and not path.is_symlink()]
    contents = {path: path.read_text() for path in records}
    made = 0
    for value in TEXTS:
        os.seteuid(0)
        for path, content in contents.items():
            data = json.loads(content)
            for field in fields(data):
                is_text = isinstance(functools.reduce(lambda one, name: one[name], field, data), str)
                if is_text and not kept & set(map(str, field)):
                    data = put(data, field, value)
            path.write_text(json.dumps(data))
        os.seteuid(world.ann)
        target = world.base / "tmp" / "report.html"
        said = attempt(lambda target=target: rlnb.report(run, path=target))
        made += target.exists()
        if said.startswith("BARE") or (target.exists() and MARKUP.search(target.read_text())):
            print(json.dumps({"kind": "report", "value": value, "what": f"page: {said}"}))
        target.unlink(missing_ok=True)
    print(json.dumps({"reports": made}))


def main() -> None:
    attacks.readable_python()
    with tempfile.TemporaryDirectory(prefix="rlnb-hostile-") as name:
        world = attacks.World(Path(name))
        attacks.import_everything()
        try:
            world.furnish()
            world.reset()
            lines = as_ann(world)
        finally:
            world.end_processes()
    violations = [line for line in lines if "what" in line]
    for line in violations:
        print(line)
    (total,) = [line for line in lines if "count" in line]
    (made,) = [line["reports"] for line in lines if "reports" in line]
    kinds = Counter(line["what"].partition(":")[0].partition(" ")[0] for line in violations)
    record(
        "records of others with hostile values in every field: one record of each kind in a root of real work",
        f"{total['count']:,} values in {total['kinds']} kinds of records, and {made} reports: "
        + (", ".join(f"{count} {what}" for what, count in kinds.items()) or "0 violations"),
        "0 reach a command line, a path or a page unescaped",
        not violations and made > 0,
    )


def as_ann(world: attacks.World) -> list[dict[str, Any]]:
    """Do all of it in a process that is Ann's but for the writing of files; return what it prints."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        os.dup2(write, 1)
        home = world.base / "ann"
        os.setgroups([])
        os.setresgid(world.ann, world.ann, 0)
        os.setresuid(world.ann, world.ann, 0)  # as root, it can write again
        tempfile.tempdir = str(world.base / "tmp")
        os.environ.update(HOME=str(home), TMPDIR=str(world.base / "tmp"), RLNB_CACHE=str(home / ".cache"))
        os.environ["COLUMNS"] = "200"
        os.environ["PATH"] = f"{world.bin}:{os.environ['PATH']}"
        rlnb.options.root = world.root
        try:
            try_all(world)
            reports(world)
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        lines = [json.loads(line) for line in pipe]
    os.waitpid(pid, 0)
    return lines


if __name__ == "__main__":
    main()
