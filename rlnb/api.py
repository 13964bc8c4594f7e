"""The verbs. Each reads top to bottom as one straight line."""

from __future__ import annotations

import contextlib
import getpass
import logging
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import rlnb
from rlnb import plugins, tasks
from rlnb import warm as warm_process
from rlnb.errors import CheckError, NotFoundError, RlnbError, unknown
from rlnb.frames import Preview
from rlnb.frames import read as read_frames
from rlnb.launch.command import worker_command
from rlnb.launch.local import LocalLauncher, gpu_count
from rlnb.settings import options
from rlnb.records import files
from rlnb.records.layout import JobDir, Root, RunDir
from rlnb.records.record import RunRecord, find
from rlnb.run import Run, Runs
from rlnb.spec import Job, JobKind, Launcher, Library, Manifest, Problem, Resources, Task, to_json

logger = logging.getLogger(__name__)

LEAST_FREE_BYTES = 50 * 2**20
"""Free space without which a run is not started."""


def train(
    task: Task | str,
    *,
    library: str = "rsl_rl",
    max_iterations: int | None = None,
    seed: int = 42,
    num_envs: int | None = None,
    agent: Mapping[str, Any] | None = None,
    device: str = "auto",
    nproc_per_node: int = 1,
    launcher: Launcher | None = None,
    python: str | None = None,
    asset_root: str | None = None,
    tags: Sequence[str] = (),
    warm: bool | None = None,
) -> Run:
    """Start a training and return at once. The run goes on without this process.

    Args:
        task: A task, or its name (see :func:`rlnb.task`).
        library: Name of the RL library.
        max_iterations: Learning iterations; None keeps the agent config's own number.
        seed: Seed of env and policy.
        num_envs: Environments in total; None keeps the task's own number.
        agent: Agent config values by dotted path, e.g. ``{"algorithm.learning_rate": 3e-4}``.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``; ``"auto"`` is a GPU where there is one.
        nproc_per_node: Worker processes (ranks).
        launcher: Where to run; None is this machine.
        python: Command of the worker's interpreter; None is ``rlnb.options.python``.
        asset_root: Folder or URL of robot assets; None is ``rlnb.options.asset_root``.
        tags: Words to find the run by.
        warm: Whether the warm worker may become the run's own process; None is ``rlnb.options.warm``.

    Raises:
        CheckError: The run would fail; all problems at once, nothing was written.
    """
    launcher = launcher or LocalLauncher()
    manifest = _manifest(
        task, library, max_iterations, seed, num_envs, agent, device, nproc_per_node, launcher, python, asset_root, tags
    )
    check(manifest, launcher)
    run_dir = _create(options.folders, manifest)
    submit(run_dir, manifest, Job(kind="train"), launcher, warm=warm)
    return Run(run_dir.path)


def check(manifest: Manifest, launcher: Launcher) -> None:
    """Find everything that would make a run fail, before anything is written.

    Raises:
        CheckError: With all problems.
    """
    problems = [*_check_arguments(manifest), *_check_root(options.folders.path)]
    spec = plugins.libraries().get(manifest.library)
    if spec is None:
        error = unknown("RL library", manifest.library, plugins.libraries())
        problems.append(Problem(what=str(error), mend=f"pip install rlnb-{manifest.library.replace('_', '-')}"))
    elif spec.simulator:
        problems += _check_task(manifest, spec)
    elif manifest.task.id not in plugins.tasks():
        problems.append(Problem(what=str(unknown("task", manifest.task.id, plugins.tasks(), has="Without a simulator"))))
    problems += launcher.check(manifest)
    for found in plugins.manager().hook.rlnb_check(manifest=manifest):
        problems += found
    if problems:
        raise CheckError(f"{manifest.task.id} with {manifest.library}", problems)


def _check_arguments(manifest: Manifest) -> Iterator[Problem]:
    numbers = {
        "max_iterations": manifest.max_iterations,
        "num_envs": manifest.task.num_envs,
        "nproc_per_node": manifest.resources.nproc_per_node,
    }
    for name, value in numbers.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            yield Problem(what=f"{name}={value!r} is not a positive whole number.", mend=f"{name}=64")
    if isinstance(manifest.seed, bool) or not isinstance(manifest.seed, int) or manifest.seed < 0:
        yield Problem(what=f"seed={manifest.seed!r} is not a whole number from 0 on.", mend="seed=42")
    device = manifest.resources.device
    if device not in ("auto", "cpu", "cuda") and not (device.startswith("cuda:") and device[5:].isdigit()):
        yield Problem(what=f"device={device!r} is none of 'auto', 'cpu', 'cuda', 'cuda:N'.", mend='device="auto"')


def _check_root(root: Path) -> Iterator[Problem]:
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    mend = "Set rlnb.options.root, or RLNB_ROOT, to a folder of yours."
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        yield Problem(what=f"the run folder {root} cannot be written by {getpass.getuser()}.", mend=mend)
    elif (free := shutil.disk_usage(existing).free) < LEAST_FREE_BYTES:
        yield Problem(what=f"the disk of {root} is full: {free / 2**20:.0f} MiB free.", mend=f"Make room. {mend}")


def _check_task(manifest: Manifest, library: Library) -> Iterator[Problem]:
    ranks = manifest.resources.world_size
    if ranks > 1 and not library.distributed:
        yield Problem(what=f"{library.name} trains in one process, not in {ranks}.", mend="nproc_per_node=1")
    try:
        card = task_card(manifest.task, python=manifest.python, asset_root=manifest.asset_root)
    except RlnbError as exc:
        yield Problem(what=str(exc))
        return
    yield from tasks.check(manifest.task, card)
    agent = card["agents"].get(library.name)
    if agent is None:
        listed = ", ".join(sorted(card["agents"])) or "none"
        yield Problem(what=f"{manifest.task.id} has no agent config for {library.name}; it has: {listed}.")
    elif "error" in agent:
        yield Problem(what=f"the agent config of {library.name} does not load: {agent['error']}")
    else:
        yield from tasks.check_values(manifest.agent, agent["fields"], f"agent config of {library.name}")
    theirs = card["versions"].get("rlnb", "none")
    if theirs != rlnb.__version__:
        python = manifest.python or sys.executable
        yield Problem(
            what=f"rlnb {rlnb.__version__} runs here, rlnb {theirs} in the worker's interpreter {python}.",
            mend=f"{python} -m pip install rlnb=={rlnb.__version__}",
        )


def task_card(task: Task | str, *, python: str | None = None, asset_root: str | None = None) -> tasks.Card:
    """Return what the worker says of a task: config values with types, cameras, agents, assets.

    Cached by source and versions; otherwise the warm worker resolves the task, which takes about a
    second, and 10 to 15 s when it has to start first.

    Raises:
        RlnbError: No such task, or it does not resolve.
    """
    task = tasks.task(task) if isinstance(task, str) else task
    python, asset_root = python or options.python, asset_root or options.asset_root
    card = tasks.cached_card(options.folders, task, python, asset_root)
    if card is not None:
        return card
    with status(f"Resolving {task.id}: no cached task card, so the worker looks (10 to 15 s if it has to start)"):
        card = warm_process.warm_worker(python, asset_root).request(
            "card", task=to_json(task), asset_root=asset_root
        )
    path = tasks.card_path(options.folders, task, python, asset_root)
    if path is not None:
        with contextlib.suppress(OSError):  # a cache; that the root cannot be written is found elsewhere
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            files.write_once(path, card)
    return card


def preview(
    task: Task | str,
    *,
    cameras: Sequence[str] | None = None,
    data_types: Sequence[str] | None = None,
    num_envs: int = 4,
    steps: int = 30,
    actions: str = "random",
    size: tuple[int, int] = (160, 120),
    seed: int = 42,
    device: str = "auto",
    python: str | None = None,
    asset_root: str | None = None,
) -> Preview:
    """Show what a task's cameras see, after some steps. A task without a camera gets one.

    Args:
        task: A task, or its name.
        cameras: Names of its cameras; None is all of them.
        data_types: ``"rgb"``, ``"depth"``, ``"semantic_segmentation"``, ``"normals"``, ...; None is what each
            camera is set to.
        num_envs: Envs to make and to show.
        steps: Env steps before the picture.
        actions: ``"random"`` (uniform in -1 to 1) or ``"zero"``.
        size: Width and height of an added camera, in pixels.
        seed: Seed of the env.
        device: As in :func:`train`.
        python: Command of the worker's interpreter.
        asset_root: Folder or URL of robot assets.

    Raises:
        CheckError: A problem with the task, the camera names or the numbers; nothing was made.
        WorkerError: The task's own code failed; with its traceback.
    """
    task = tasks.task(task) if isinstance(task, str) else task
    card = task_card(task, python=python, asset_root=asset_root)
    problems = tasks.check(task, card) + _check_preview(card, cameras, num_envs, steps, actions)
    if problems:
        raise CheckError(f"preview of {task.id}", problems)
    python, asset_root = python or options.python, asset_root or options.asset_root
    with tempfile.TemporaryDirectory(prefix="rlnb-preview-") as out, status(f"Previewing {task.id}"):
        reply = warm_process.warm_worker(python, asset_root).request(
            "preview",
            task=to_json(task),
            asset_root=asset_root,
            cameras=list(cameras) if cameras else None,
            data_types=list(data_types) if data_types else None,
            num_envs=num_envs,
            steps=steps,
            actions=actions,
            size=list(size),
            seed=seed,
            device=device,
            out=out,
        )
        return read_frames(task.id, steps, reply)


def _check_preview(
    card: tasks.Card, cameras: Sequence[str] | None, num_envs: int, steps: int, actions: str
) -> list[Problem]:
    problems = []
    if num_envs < 1:
        problems.append(Problem(what=f"num_envs={num_envs!r} is not a positive whole number.", mend="num_envs=4"))
    if steps < 0:
        problems.append(Problem(what=f"steps={steps!r} is negative.", mend="steps=30"))
    if actions not in ("random", "zero"):
        problems.append(Problem(what=f"actions={actions!r} is neither 'random' nor 'zero'.", mend='actions="random"'))
    known = card["cameras"] or {"preview": None}
    for name in cameras or ():
        if name not in known:
            problems.append(Problem(what=str(unknown("camera", name, known, has=f"{card['task']} has"))))
    return problems


@contextlib.contextmanager
def status(text: str) -> Iterator[None]:
    """Say what is being waited for, in the notebook or on the terminal."""
    from rlnb.notebook.display import status as show

    with show(text):
        yield


def _manifest(
    task: Task | str,
    library: str,
    max_iterations: int | None,
    seed: int,
    num_envs: int | None,
    agent: Mapping[str, Any] | None,
    device: str,
    nproc_per_node: int,
    launcher: Launcher,
    python: str | None,
    asset_root: str | None,
    tags: Sequence[str],
) -> Manifest:
    import dataclasses

    task = tasks.task(task) if isinstance(task, str) else task
    if num_envs is not None:
        task = dataclasses.replace(task, num_envs=num_envs)
    now = datetime.now()
    name = "".join(c if c.isalnum() else "-" for c in task.id.removeprefix("Isaac-")).strip("-").lower()
    return Manifest(
        run_id=f"{now:%Y%m%d-%H%M%S}-{name[:40]}-{library}-{secrets.token_hex(2)}",
        created=files.now(),
        task=task,
        library=library,
        max_iterations=max_iterations,
        seed=seed,
        agent=dict(agent or {}),
        resources=Resources(device=device, nproc_per_node=nproc_per_node),
        launcher=launcher.name,
        python=python or options.python,
        asset_root=asset_root or options.asset_root,
        git=_git(),
        versions={"rlnb": rlnb.__version__, "python": sys.version.split()[0]},
        tags=tuple(tags),
    )


def _git() -> dict[str, str]:
    """Return commit and cleanliness of the working folder; nothing where it is no repository."""
    try:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=2, check=True)
        changed = subprocess.run(["git", "status", "--porcelain"], capture_output=True, text=True, timeout=2, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    return {"commit": commit.stdout.strip(), "state": "changed" if changed.stdout.strip() else "clean"}


def _create(root: Root, manifest: Manifest) -> RunDir:
    """Make the run's folder whole, then give it its name: a run is there or it is not."""
    staging = root.runs / f".{manifest.run_id}"
    try:
        staging.mkdir(parents=True)
        draft = RunDir(staging)
        if manifest.task.source:
            module = Path(manifest.task.source)
            draft.source.mkdir()
            shutil.copy2(module, draft.source / module.name)
            for name in manifest.task.files:
                (draft.source / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(module.parent / name, draft.source / name)
        files.write_once(draft.manifest, to_json(manifest))
        staging.rename(root.runs / manifest.run_id)
    except OSError as exc:
        shutil.rmtree(staging, ignore_errors=True)
        raise RlnbError(f"The run folder could not be made in {root.runs}: {exc}. Nothing is left of it.") from exc
    return RunDir(root.runs / manifest.run_id)


def submit(run_dir: RunDir, manifest: Manifest, job: Job, launcher: Launcher, *, warm: bool | None = None) -> JobDir:
    """Add a job to a run and start it, in the warm worker where that fits."""
    folder = run_dir.next_job(job.kind)
    local = launcher if isinstance(launcher, LocalLauncher) else None
    command = worker_command(
        manifest,
        job.kind,
        run_dir.path,
        folder.path,
        max_running=local.max_running if local else 1,
        walltime_s=local.walltime_s if local else None,
        gpu_per_slot=bool(local) and gpu_count() > 1 and manifest.resources.device in ("auto", "cuda"),
    )
    command = plugins.manager().hook.rlnb_wrap_command(command=command, manifest=manifest) or command
    files.write_once(folder.job, to_json(job))
    files.write_once(folder.command, to_json(command))
    use_warm = (options.warm if warm is None else warm) and local is not None and manifest.resources.world_size == 1
    worker = warm_process.idle_worker(manifest.python, manifest.asset_root) if use_warm and _plain(command) else None
    if worker is not None and job.kind == "train":
        handle = worker.adopt(folder.path)
        warm_process.let_go(manifest.python, manifest.asset_root)
    else:
        handle = launcher.submit(command, folder.path)
    files.write_once(folder.handle, dict(handle))
    return folder


def _plain(command: Any) -> bool:
    """Return whether the command is an unwrapped worker, which a living one can stand in for."""
    return "rlnb.worker" in command.argv and not command.gpu_per_slot and set(command.env) <= {"PYTHONUNBUFFERED"}


def runs(
    path: str | Path | None = None,
    *,
    task: str | None = None,
    library: str | None = None,
    state: str | None = None,
    tag: str | None = None,
) -> Runs:
    """Return runs, newest first.

    Args:
        path: An rlnb root, a run, or a folder of stock Isaac Lab ``logs/``; None is ``rlnb.options.root``.
        task: Only runs of this task.
        library: Only runs of this library.
        state: Only runs in this state.
        tag: Only runs with this tag.
    """
    found: list[RunRecord] = []
    for record in find(Path(path).absolute() if path is not None else options.folders.path):
        try:
            manifest = record.manifest
            wanted = (
                (task is None or manifest.task.id == task)
                and (library is None or manifest.library == library)
                and (tag is None or tag in manifest.tags)
                and (state is None or record.state == state)
            )
        except RlnbError as exc:  # one damaged record must not hide the others
            logger.warning("%s", exc)
            continue
        if wanted:
            found.append(record)
    found.sort(key=lambda record: record.manifest.created, reverse=True)
    return Runs([Run.of(record) for record in found])


def get_run(id: str) -> Run:
    """Return one run by its id, by a unique part of it, or by its folder.

    Raises:
        NotFoundError: No run, or several.
    """
    if (Path(id) / "manifest.json").exists():
        return Run(Path(id))
    known = {record.id: record for record in find(options.folders.path)}
    matches = [name for name in known if id in name]
    if id in known or len(matches) == 1:
        return Run.of(known[id if id in known else matches[0]])
    if matches:
        raise NotFoundError(f"{id!r} fits {len(matches)} runs: {', '.join(sorted(matches)[-5:])}. Give more of it.")
    raise unknown("run", id, list(known)[-10:], has=f"Newest in {options.folders.runs}")


def start_job(record: RunRecord, kind: JobKind, options_: Mapping[str, Any], *, warm: bool | None = None) -> JobDir:
    """Start a further job in a run that exists."""
    launcher = plugins.load(plugins.launcher(record.manifest.launcher).factory)()
    return submit(record.folder, record.manifest, Job(kind=kind, options=options_), launcher, warm=warm)
