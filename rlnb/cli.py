"""The ``rlnb`` command: the verbs of the package on a terminal, with tables.

Thin on purpose. Nothing heavy is imported before a command needs it, so that ``rlnb --help`` is quick.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from rlnb.errors import CheckError, RlnbError

if TYPE_CHECKING:
    from rich.console import Console

    from rlnb.run import Run

FAILED = 2
"""Exit status of every error that rlnb raises on purpose; 1 is for a check that found something missing."""
INTERRUPTED = 130
FOLLOW_S = 0.2
TAIL_BYTES = 65536
PIPE_COLUMNS = 160
"""Width of tables that go into a pipe or a file."""
NOTEBOOK = "01_quickstart.ipynb"


class Shown(TyperGroup):
    """Commands whose errors are shown as their message, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; turn an error of rlnb into its message and exit status 2."""
        try:
            return super().invoke(ctx)
        except RlnbError as exc:
            if ctx.params.get("debug"):
                raise
            _screen(stderr=True).print(f"[red]{_safe(exc)}[/]", highlight=False, soft_wrap=True)
            raise typer.Exit(FAILED) from exc


app = typer.Typer(
    cls=Shown,
    no_args_is_help=True,
    rich_markup_mode=None,  # typer's coloured help imports half of rich, 0.3 s
    pretty_exceptions_show_locals=False,
    help="Reinforcement learning of robots with NVIDIA Isaac Lab.",
)
assets_app = typer.Typer(
    no_args_is_help=True, help="Robot and scene files: build them offline, or see what a task needs."
)
app.add_typer(assets_app, name="assets")

RunId = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, a unique part of it, or its folder.")]
TaskId = Annotated[str, typer.Argument(metavar="TASK", help="Registered id, module:EnvCfg, or the name of a %%task.")]
Python = Annotated[str | None, typer.Option("--python", help="Command of the worker's interpreter.")]
AssetRoot = Annotated[str | None, typer.Option(help="Folder or URL of robot assets.")]
Checkpoint = Annotated[str | None, typer.Option(help="Checkpoint, by name or path; the last by default.")]
Trust = Annotated[bool, typer.Option("--trust", help="Load a checkpoint that holds more than weights.")]
Wait = Annotated[bool, typer.Option("--wait/--detach", help="Wait for the end, or print the id and return.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _version(wanted: bool) -> None:
    if wanted:
        import rlnb

        _screen().print(f"rlnb {rlnb.__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def main(
    debug: Annotated[bool, typer.Option("--debug", envvar="RLNB_DEBUG", help="Show tracebacks.")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    """Reinforcement learning of robots with NVIDIA Isaac Lab."""


# -- runs ------------------------------------------------------------------------------------------------


@app.command()
def train(
    task: TaskId,
    library: Annotated[str, typer.Option(help="RL library.")] = "rsl_rl",
    num_envs: Annotated[int | None, typer.Option(help="Environments in total.")] = None,
    max_iterations: Annotated[int | None, typer.Option(help="Learning iterations.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of env and policy.")] = 42,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    nproc_per_node: Annotated[int, typer.Option(help="Worker processes (ranks).")] = 1,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Env config value: sim.dt=0.005. Repeatable.")] = None,
    agent: Annotated[list[str] | None, typer.Option(help="Agent config value, as --set. Repeatable.")] = None,
    presets: Annotated[str, typer.Option(help="Isaac Lab's global presets: a,b.")] = "",
    physics: Annotated[str | None, typer.Option(help="Physics selector, e.g. newton_mjwarp.")] = None,
    renderer: Annotated[str | None, typer.Option(help="Renderer selector, e.g. newton_renderer.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Word to find the run by. Repeatable.")] = None,
    python: Python = None,
    asset_root: AssetRoot = None,
    wait: Wait = True,
) -> None:
    """Train a task. Ctrl-C while waiting leaves the run alone."""
    import rlnb

    overrides, agent_values = values(set_=set_ or (), agent=agent or ())
    names = [name.strip() for name in presets.split(",") if name.strip()]
    described = rlnb.task(task, overrides=overrides, presets=names, physics=physics, renderer=renderer)
    _keep_no_fresh_worker()
    run = rlnb.train(
        described,
        library=library,
        max_iterations=max_iterations,
        seed=seed,
        num_envs=num_envs,
        agent=agent_values,
        device=device,
        nproc_per_node=nproc_per_node,
        python=python,
        asset_root=asset_root,
        tags=tag or (),
    )
    _wait_or_detach(run, wait)


@app.command()
def resume(
    run: RunId,
    max_iterations: Annotated[int | None, typer.Option(help="Iteration to end at.")] = None,
    checkpoint: Checkpoint = None,
    trust: Trust = False,
    wait: Wait = True,
) -> None:
    """Go on from a checkpoint, in the same run."""
    import rlnb

    found = rlnb.get_run(run).resume(max_iterations=max_iterations, checkpoint=checkpoint, trust=trust)
    _wait_or_detach(found, wait)


@app.command()
def runs(
    path: Annotated[Path | None, typer.Option(help="rlnb root, run, or stock Isaac Lab logs folder.")] = None,
    task: Annotated[str | None, typer.Option(help="Only of this task.")] = None,
    library: Annotated[str | None, typer.Option(help="Only of this library.")] = None,
    state: Annotated[str | None, typer.Option(help="Only in this state, e.g. running.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only with this tag.")] = None,
    as_json: Json = False,
) -> None:
    """List runs, newest first."""
    import rlnb

    rows = [_row(run) for run in rlnb.runs(path, task=task, library=library, state=state, tag=tag)]
    if as_json:
        return _print_json(rows)
    shown = ("id", "task", "library", "state", "iteration", "reward", "success_rate", "created")
    _table([name.replace("_", " ") for name in shown], [[row[name] for name in shown] for row in rows])


def _row(run: Run) -> dict[str, Any]:
    done, total = run.progress
    metrics = run.metrics
    last = {name: metrics[name].last if name in metrics.names else None for name in ("reward", "success_rate")}
    return {
        "id": run.id,
        "task": run.task,
        "library": run.library,
        "state": run.state,
        "iteration": f"{done}/{total}" if total else "",
        **last,
        "created": run.created.astimezone().strftime("%Y-%m-%d %H:%M"),
        "tags": list(run.manifest.tags),
        "path": str(run.path),
    }


@app.command()
def show(run: RunId) -> None:
    """Show what a run is, where it stands and what it left."""
    import rlnb

    _show(rlnb.get_run(run))


def _show(run: Run) -> None:
    done, total = run.progress
    manifest, metrics, result = run.manifest, run.metrics, run.result
    rows: list[tuple[str, Any]] = [
        ("task", run.task),
        ("library", run.library),
        ("state", run.state),
        ("error", result.error if result else ""),
        ("iteration", f"{done} of {total}" if total else ""),
        ("created", run.created.astimezone().strftime("%Y-%m-%d %H:%M:%S")),
        ("launcher", manifest.launcher),
        ("devices", ", ".join(run.started.devices) if run.started else ""),
        ("overrides", _assigned(manifest.task.overrides)),
        ("agent", _assigned(manifest.agent)),
        ("tags", ", ".join(manifest.tags)),
        *[(name, metrics[name].last) for name in metrics.names],
        *[(f"evaluation {n}", "; ".join(map(" ".join, e.rows()))) for n, e in enumerate(run.evaluations)],
        ("jobs", ", ".join(f"{job.folder.path.name} {job.state()}" for job in run.jobs)),
        ("checkpoint", str(run.checkpoints[-1]) if run.checkpoints else ""),
        ("folder", str(run.path)),
        ("command", run.command),
    ]
    _table(["", ""], [row for row in rows if row[1] != ""], title=run.id)


@app.command()
def logs(
    run: RunId,
    lines: Annotated[int, typer.Option("-n", "--lines", min=0, help="Lines from the end.")] = 40,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job ends.")] = False,
) -> None:
    """Print the end of the log of a run's newest job."""
    import rlnb

    found = rlnb.get_run(run)
    if follow:
        _follow(found, lines)
    elif text := found.logs(lines) if lines else "":
        _print_log(text)


def _follow(run: Run, lines: int) -> None:
    """Print what is appended to the newest job's logs until that job has ended."""
    from rlnb.run import ENDED

    if not run.jobs:
        raise RlnbError(f"{run.id} has no job yet, so it has no log.")
    job, ends = run.jobs[-1], dict[Path, int]()
    while True:
        ended = job.state() in ENDED  # asked first: what is written before the end is then read below
        for path in job.folder.logs():
            first = path not in ends
            start = max(0, path.stat().st_size - TAIL_BYTES) if first else ends[path]
            text, ends[path] = _appended(path, start, whole_lines=not ended)
            new = text.splitlines()
            if new := (new[-lines:] if lines else []) if first else new:
                _print_log("\n".join(new))
        if ended:
            return
        time.sleep(FOLLOW_S)


def _appended(path: Path, start: int, *, whole_lines: bool) -> tuple[str, int]:
    """Return what a file holds from byte ``start`` on, and the byte after it."""
    with path.open("rb") as file:
        file.seek(start)
        data = file.read()
    if whole_lines:
        data = data[: data.rfind(b"\n") + 1]
    return data.decode("utf-8", "replace"), start + len(data)


@app.command()
def cancel(run: RunId) -> None:
    """Ask a run to end. Its checkpoints stay."""
    import rlnb
    from rlnb.run import ENDED

    found = rlnb.get_run(run)
    if all(job.state() in ENDED for job in found.jobs):
        _say(f"{found.id} has ended already: {found.state}.")
        return
    found.cancel()
    _say(f"{found.id} was asked to end. How it goes: rlnb show {found.id}")


@app.command()
def evaluate(
    run: RunId,
    episodes: Annotated[int, typer.Option(help="Whole episodes, at least.")] = 100,
    num_envs: Annotated[int | None, typer.Option(help="Envs side by side.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the env.")] = 1000,
    checkpoint: Checkpoint = None,
    trust: Trust = False,
) -> None:
    """Run whole episodes with deterministic actions."""
    import rlnb

    found = rlnb.get_run(run)
    evaluation = found.evaluate(episodes, num_envs=num_envs, seed=seed, checkpoint=checkpoint, trust=trust)
    _table(["", "value", "95 % interval"], evaluation.rows(), title=f"{found.id}, {evaluation.checkpoint}")


@app.command()
def export(
    run: RunId,
    formats: Annotated[list[str] | None, typer.Option("--format", help="onnx, torchscript. Repeatable.")] = None,
    checkpoint: Checkpoint = None,
    trust: Trust = False,
) -> None:
    """Write the policy for deployment."""
    import rlnb

    written = rlnb.get_run(run).export(*formats or (), checkpoint=checkpoint, trust=trust)
    _table(["format", "file"], list(written.items()))


@app.command()
def report(
    run: RunId,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="HTML file.")] = None,
) -> None:
    """Write a report as one self-contained HTML file, and print its path."""
    import rlnb

    _say(str(rlnb.get_run(run).report(output)))


@app.command()
def preview(
    task: TaskId,
    output: Annotated[Path, typer.Option("-o", "--output", help="PNG file.")],
    num_envs: Annotated[int, typer.Option(help="Envs to show.")] = 16,
    steps: Annotated[int, typer.Option(help="Env steps before the picture.")] = 60,
    camera: Annotated[list[str] | None, typer.Option(help="Camera, all by default. Repeatable.")] = None,
    data_type: Annotated[list[str] | None, typer.Option(help="rgb, depth, ... Repeatable.")] = None,
) -> None:
    """Take a picture of what a task's cameras see."""
    import rlnb

    taken = rlnb.preview(task, cameras=camera, data_types=data_type, num_envs=num_envs, steps=steps)
    _say(str(taken.save(output)))


# -- what there is ---------------------------------------------------------------------------------------


@app.command()
def tasks(
    pattern: Annotated[str, typer.Argument(help="Part of the name, or a pattern with * and ?; case is ignored.")] = "",
    python: Python = None,
    asset_root: AssetRoot = None,
) -> None:
    """List Isaac Lab's tasks."""
    import fnmatch

    from rlnb import warm
    from rlnb.api import status

    with status("Asking the worker for its tasks (10 to 15 s)"):
        known: list[str] = warm.warm_worker(python, asset_root).request("tasks", asset_root=asset_root)
    wanted = pattern.lower() if set("*?[") & set(pattern) else f"*{pattern.lower()}*"
    found = [name for name in known if fnmatch.fnmatchcase(name.lower(), wanted)]
    if not found:
        from rlnb.errors import did_you_mean

        raise RlnbError(f"No task fits {pattern!r}; there are {len(known)}.{did_you_mean(pattern, known)}")
    for name in found:
        _say(name)


@app.command()
def libraries() -> None:
    """List the installed RL libraries."""
    from rlnb import plugins

    rows = [
        (lib.name, lib.step_unit, _yes(lib.distributed), ", ".join(lib.exports), ", ".join(lib.requires))
        for lib in plugins.libraries().values()
    ]
    _table(["library", "step unit", "several ranks", "exports", "requires"], rows)


@app.command("plugins")
def list_plugins() -> None:
    """List the plugins, what each brings, and why one does not load."""
    import importlib.metadata
    import warnings

    from rlnb import plugins
    from rlnb.doctor import load_error

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a broken plugin warns as it is loaded; the table says it better
        manager = plugins.manager()
    entries = {entry.name: entry for entry in importlib.metadata.entry_points(group="rlnb")}
    by_hand = [name for name, _ in manager.list_name_plugin() if name not in entries]
    rows = []
    for name in [*sorted(entries), *by_hand]:
        dist = entries[name].dist if name in entries else None
        package = (dist.name, dist.version) if dist else ("" if name in entries else "registered by hand", "")
        failed = load_error(entries[name]) if name in entries and not manager.has_plugin(name) else ""
        rows.append((name, *package, _brings(manager.get_plugin(name)), failed))
    _table(["plugin", "distribution", "version", "brings", "error"], rows)


def _brings(plugin: Any) -> str:
    """Return the libraries, launchers, tasks and packs of a plugin, and its other hooks by name."""
    from rlnb import plugins

    found = []
    for caller in plugins.manager().get_hookcallers(plugin) or [] if plugin is not None else []:
        kind = caller.name.removeprefix("rlnb_")
        if kind in ("libraries", "launchers", "tasks", "asset_packs"):
            items: Any = next(impl for impl in caller.get_hookimpls() if impl.plugin is plugin).function()
            kind = kind.replace("_", " ")
            found.append(f"{kind}: {', '.join(item.id if kind == 'tasks' else item.name for item in items)}")
        else:
            found.append(f"hook {caller.name}")
    return "; ".join(sorted(found))


@assets_app.command()
def build(
    destination: Annotated[Path | None, typer.Argument(metavar="[DEST]", help="Folder; the cache by default.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Build again what is there.")] = False,
    python: Python = None,
) -> None:
    """Make robots and scenes on this machine, without a download; print their folder."""
    import subprocess

    from rlnb.api import status
    from rlnb.launch.command import interpreter
    from rlnb.settings import options

    argv = [*interpreter(python or options.python), "-m", "rlnb.worker", "assets-build"]
    argv += [*([str(destination)] if destination else []), *(["--force"] if force else [])]
    with status("Building the asset packs"):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    folder = done.stdout.strip().splitlines()[-1:]
    if done.returncode or not folder:
        tail = "\n".join(done.stderr.strip().splitlines()[-10:])
        raise RlnbError(f"The asset packs could not be built: exit status {done.returncode} of {argv[0]}\n{tail}")
    _say(folder[0])


@assets_app.command("check")
def check_assets(task: TaskId, python: Python = None, asset_root: AssetRoot = None) -> None:
    """Show where each file of a task comes from; exit status 1 if one is missing."""
    from rlnb.api import task_card

    card = task_card(task, python=python, asset_root=asset_root)
    # A card may be older than a build, so files of this machine are looked at again.
    local = {name: asset["there"] is not None for name, asset in card["assets"].items()}
    there = {name: Path(card["assets"][name]["path"]).is_file() for name in local if local[name]}
    say = {True: "there", False: "missing", None: "remote, not looked at"}
    rows = [(name, asset["path"], say[there.get(name)]) for name, asset in card["assets"].items()]
    _table(["file", "where", ""], rows, title=f"{card['task']}: {card['asset_root']['reason']}")
    if not all(there.values()):
        raise typer.Exit(1)


# -- the whole -------------------------------------------------------------------------------------------


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the notebook, its runs and its report.")] = Path("rlnb-demo"),
) -> None:
    """Execute the quickstart notebook and print the path of its HTML report."""
    from rlnb.api import status

    try:
        import papermill
    except ImportError as exc:
        raise RlnbError("The demo needs papermill. pip install 'rlnb[report]'") from exc
    begun, folder = time.time(), out.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    executed = folder / NOTEBOOK
    os.environ.setdefault("RLNB_ROOT", str(folder / "rlnb-runs"))
    with status("Executing the quickstart notebook (a few minutes)"):
        try:
            papermill.execute_notebook(
                str(quickstart()), str(executed), cwd=str(folder), kernel_name="python3", progress_bar=False
            )
        except papermill.PapermillExecutionError as exc:
            raise RlnbError(f"The quickstart notebook failed; see {executed}\n{exc}") from exc
    _say(str(_newest_html([folder, Path(os.environ["RLNB_ROOT"])], begun) or _as_html(executed)))


def quickstart() -> Path:
    """Return the quickstart notebook: of the repository checkout, else the one in the package.

    Raises:
        RlnbError: It is in neither.
    """
    package = Path(__file__).absolute().parent
    for path in (package.parent / "notebooks" / NOTEBOOK, package / "notebook" / NOTEBOOK):
        if path.is_file():
            return path
    raise RlnbError(f"{NOTEBOOK} is neither beside this rlnb nor in it ({package}). Reinstall rlnb.")


def _newest_html(folders: Iterable[Path], since_s: float) -> Path | None:
    """Return the report that the notebook has just written, if it wrote one."""
    found = {path: path.stat().st_mtime for folder in folders for path in folder.rglob("*.html")}
    fresh = {path: written for path, written in found.items() if written >= since_s}
    return max(fresh, key=lambda path: fresh[path]) if fresh else None


def _as_html(notebook: Path) -> Path:
    from nbconvert import HTMLExporter

    body, _ = HTMLExporter().from_filename(str(notebook))
    path = notebook.with_suffix(".html")
    path.write_text(body, encoding="utf-8")
    return path


@app.command()
def doctor(python: Python = None, asset_root: AssetRoot = None, as_json: Json = False) -> None:
    """Look whether this machine is fit, and say how to mend what is not; exit status 1 if there is a fault."""
    from rlnb.doctor import examine
    from rlnb.settings import options

    findings = examine(
        root=options.folders.path, python=python or options.python, asset_root=asset_root or options.asset_root
    )
    if as_json:
        from rlnb.spec import to_json

        _print_json(to_json(findings))
    else:
        colour = {"ok": "green", "warning": "yellow", "fault": "red"}
        rows = [
            (item.name, f"[{colour[item.level]}]{item.level}[/]", f"{_safe(item.found)}{_mend(item.mend)}")
            for item in findings
        ]
        _table(["", "", "found"], rows, markup=True)
    if any(item.level == "fault" for item in findings):
        raise typer.Exit(1)


def _mend(mend: str) -> str:
    return f"\n[bold]mend:[/] {_safe(mend)}" if mend else ""


# -- arguments -------------------------------------------------------------------------------------------


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


def _keep_no_fresh_worker() -> None:
    """A notebook gets a fresh warm worker after each training; a command ends, so nobody would use it."""
    import threading

    from rlnb import warm

    warm.FRESH_AFTER_S = threading.TIMEOUT_MAX


def _wait_or_detach(run: Run, wait: bool) -> None:
    if not wait:
        _say(run.id)
        return
    hint = f"It goes on. Find it again: rlnb show {run.id}, rlnb logs {run.id} --follow, rlnb cancel {run.id}"
    _say(f"{run.id} started in {run.path}", stderr=True)
    try:
        run.wait()
    except KeyboardInterrupt:
        _say(f"Detached from {run.id}. {hint}", stderr=True)
        raise typer.Exit(INTERRUPTED) from None
    _show(run)


# -- the screen ------------------------------------------------------------------------------------------


def _screen(*, stderr: bool = False) -> Console:
    from rich.console import Console

    terminal = (sys.stderr if stderr else sys.stdout).isatty() or "COLUMNS" in os.environ
    return Console(stderr=stderr, width=None if terminal else PIPE_COLUMNS, highlight=False)


def _safe(text: object) -> str:
    """Return text that was written elsewhere so that it can neither mark up nor steer the terminal."""
    from rich.markup import escape

    return escape("".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in str(text)))


def _say(text: str, *, stderr: bool = False) -> None:
    _screen(stderr=stderr).print(_safe(text), soft_wrap=True)


def _print_log(text: str) -> None:
    """Print lines of a log: colours stay on a terminal, every other control sequence goes."""
    from rich.text import Text

    _screen().print(Text.from_ansi(text), soft_wrap=True)


def _print_json(data: Any) -> None:
    """Print JSON that every reader takes: a number that is none (NaN) is null."""
    _screen().print_json(data=_finite(data))


def _finite(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _finite(item) for key, item in data.items()}
    if isinstance(data, list):
        return [_finite(item) for item in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _table(header: Sequence[str], rows: Sequence[Sequence[Any]], *, title: str = "", markup: bool = False) -> None:
    """Print a table; the first column is never cut, since it is what is typed next."""
    from rich import box
    from rich.table import Table

    cell: Callable[[Any], str] = str if markup else lambda item: _safe(_text(item))
    table = Table(box=box.SIMPLE, title=_safe(title) or None, title_justify="left", show_header=any(header))
    for number, name in enumerate(header):
        table.add_column(name, no_wrap=number == 0, overflow="fold")
    for row in rows:
        table.add_row(*map(cell, row))
    _screen().print(table)


def _text(item: Any) -> str:
    return "" if item is None else f"{item:.4g}" if isinstance(item, float) else str(item)


def _assigned(pairs: Mapping[str, Any]) -> str:
    return ", ".join(f"{path}={json.dumps(item)}" for path, item in pairs.items())


def _yes(answer: bool) -> str:
    return "yes" if answer else ""
