"""The verbs. Each reads top to bottom as one straight line."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import logging
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from rlnb import plugins, tasks
from rlnb import warm as warm_process
from rlnb.cards import task_card
from rlnb.checks import check_preview, check_run
from rlnb.contracts import Launcher
from rlnb.errors import CheckError, NotFoundError, RlnbError, unknown
from rlnb.frames import Preview
from rlnb.frames import read as read_frames
from rlnb.launch.command import worker_command
from rlnb.launch.local import LocalLauncher, gpu_count
from rlnb.listing import Runs
from rlnb.manifests import acting, task_of
from rlnb.notebook.display import status
from rlnb.planning import plan
from rlnb.records import files
from rlnb.records.find import find
from rlnb.records.layout import JobDir, Root, RunDir, run_dir_of
from rlnb.records.record import RunRecord
from rlnb.run import Run
from rlnb.selection import Selection, moment
from rlnb.serial import from_json, to_json
from rlnb.settings import options
from rlnb.spec import Command, Job, JobKind, Manifest, Problem, Task

logger = logging.getLogger(__name__)


def train(
    task: Task | str | None = None,
    *,
    script: str | Path | None = None,
    args: Sequence[str] = (),
    library: str = "rsl_rl",
    max_iterations: int | None = None,
    seed: int = 42,
    num_envs: int | None = None,
    agent: Mapping[str, Any] | str | Path | None = None,
    device: str = "auto",
    nproc_per_node: int | Literal["auto"] | None = None,
    init_from: Run | str | Path | None = None,
    trust: bool = False,
    keep: int | None = None,
    launcher: Launcher | None = None,
    python: str | None = None,
    asset_root: str | None = None,
    tags: Sequence[str] = (),
    warm: bool | None = None,
) -> Run:
    """Start a training and return at once. The run goes on without this process.

    Args:
        task: A task, or its name (see :func:`rlnb.task`).
        script: Instead of a task, any training script that Python or torchrun can start, such as Isaac Lab's
            ``scripts/reinforcement_learning/rsl_rl/train.py``. It runs in the run's ``logs`` folder; metrics come from
            the event files that it writes there. Of the arguments below only ``args``, ``nproc_per_node`` (a number),
            ``launcher``, ``python`` and ``tags`` go with it; others are refused, ``warm`` says nothing to it.
        args: Arguments of the script.
        library: Name of the RL library.
        max_iterations: Learning iterations, whatever the agent config says; None keeps its number.
        seed: Seed of env and policy, whatever the agent config says.
        num_envs: Environments in total; None keeps the task's own number.
        agent: Agent config values, by dotted path as in ``{"algorithm.learning_rate": 3e-4}`` or nested, or the path
            of a YAML file that holds them. A + before a path adds what the config leaves out:
            ``{"+normalize_input": True}``; those of RSL-RL are classes and take no more. What another argument sets,
            such as the seed, is refused here if it differs.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``; ``"auto"`` is a GPU where there is one.
        nproc_per_node: Worker processes (ranks) on each machine, which share the envs. None is one, on a cluster one
            for each GPU that was asked for. ``"auto"`` is that too on a cluster; on this machine one on each of its
            GPUs, without any what trains this task fastest, which is measured once (about a minute per candidate).
        init_from: A run or its id, whose last checkpoint, or a checkpoint, whose weights to start from. Optimiser and
            counters begin anew; to go on with them, ``run.resume()``.
        trust: Whether ``init_from`` may hold more than weights.
        keep: Checkpoints to keep while it trains, the newest, beside the best by reward; None keeps all.
        launcher: Where to run; None is this machine.
        python: Command of the worker's interpreter; None is ``rlnb.options.python``.
        asset_root: Folder or URL of robot assets; None is ``rlnb.options.asset_root``.
        tags: Words to find the run by.
        warm: Whether the warm worker may become the run's own process; None is ``rlnb.options.warm``.

    Raises:
        CheckError: The run would fail; all problems at once, nothing was written.
    """
    planned = plan(
        task,
        script=script,
        args=args,
        library=library,
        max_iterations=max_iterations,
        seed=seed,
        num_envs=num_envs,
        agent=agent,
        device=device,
        nproc_per_node=nproc_per_node,
        init_from=init_from,
        trust=trust,
        keep=keep,
        launcher=launcher,
        python=python,
        asset_root=asset_root,
        tags=tags,
    )
    manifest = planned.manifest
    if planned.measure_ranks:
        from rlnb.auto import resources

        check_run(manifest, planned.launcher)
        manifest = dataclasses.replace(manifest, resources=resources(manifest))
    return start(manifest, planned.launcher, planned.options, warm=warm)


def check(task: Task | str | None = None, **arguments: Any) -> list[Problem]:
    """Return everything for which :func:`train` would refuse these arguments; starts and writes nothing.

    Args:
        task: As of :func:`train`.
        arguments: As of :func:`train`.
    """
    asked = inspect.signature(train).bind(task, **arguments)
    asked.apply_defaults()
    asked.arguments.pop("warm")
    try:
        planned = plan(**asked.arguments)
        check_run(planned.manifest, planned.launcher)
    except CheckError as exc:
        return list(exc.problems)
    except RlnbError as exc:
        return [Problem(what=str(exc))]
    return []


def start(
    manifest: Manifest, launcher: Launcher, options_: Mapping[str, Any] | None = None, *, warm: bool | None = None
) -> Run:
    """Check a run, make its folder, start its training."""
    check_run(manifest, launcher)
    return create(options.folders, manifest, launcher, options_, warm=warm)


def create(
    root: Root,
    manifest: Manifest,
    launcher: Launcher,
    options_: Mapping[str, Any] | None = None,
    *,
    warm: bool | None = None,
) -> Run:
    """Make the folder of a run that has been checked, start its training."""
    run_dir = _create(root, manifest, Job(kind="train", options=options_ or {}), launcher)
    _begin(run_dir.jobs()[-1], "train", manifest, launcher, warm=warm, undo=run_dir.path)
    return Run(run_dir.path)


def preview(
    task: Task | Run | str,
    *,
    cameras: Sequence[str] | None = None,
    data_types: Sequence[str] | None = None,
    num_envs: int = 4,
    envs: Sequence[int] | None = None,
    steps: int = 30,
    every: int | None = None,
    actions: Literal["random", "zero"] = "random",
    policy: Run | str | None = None,
    checkpoint: str | Path | None = None,
    trust: bool = False,
    size: tuple[int, int] = (160, 120),
    seed: int = 42,
    device: str = "auto",
    python: str | None = None,
    asset_root: str | None = None,
    warm: bool | None = None,
) -> Preview:
    """Show what a task's cameras see, after the reset and after some steps. A task without a camera gets one.

    Args:
        task: A task or its name; or a run, which stands for its task and its policy.
        cameras: Names of its cameras; None is all of them.
        data_types: ``"rgb"``, ``"depth"``, ``"semantic_segmentation"``, ``"normals"``, ...; None is what each
            camera is set to.
        num_envs: Envs to make.
        envs: Which of them to show; None is all.
        steps: Env steps from the first frame to the last.
        every: Steps from frame to frame, for a film; None takes the first and the last only.
        actions: ``"random"`` (uniform in -1 to 1) or ``"zero"``.
        policy: A run, or its id, whose policy acts instead.
        checkpoint: Which of that run's checkpoints; None is the last.
        trust: Whether the checkpoint may hold more than weights.
        size: Width and height of an added camera, in pixels.
        seed: Seed of the env.
        device: As in :func:`train`.
        python: Command of the worker's interpreter.
        asset_root: Folder or URL of robot assets.
        warm: Whether the living simulator does it; False takes a process for this only. None is ``rlnb.options.warm``.

    Raises:
        CheckError: A problem with the task, the camera names or the numbers; nothing was made.
        WorkerError: The task's own code failed; with its traceback.
    """
    policy = get_run(policy) if isinstance(policy, str) else policy or (task if isinstance(task, Run) else None)
    actor = acting(policy, checkpoint, trust)
    if policy is not None:
        python, asset_root = python or policy.manifest.python, asset_root or policy.manifest.asset_root
    task = task_of(task) if isinstance(task, Run) else tasks.task(task) if isinstance(task, str) else task
    card = task_card(task, python=python, asset_root=asset_root)
    check_preview(task, card, cameras, data_types, num_envs, envs, steps, every, actions, size)
    with tempfile.TemporaryDirectory(prefix="rlnb-preview-") as out, status(f"Previewing {task.id}") as show:

        def read(reply: Mapping[str, Any], *, inspected: bool = True) -> Preview:
            shown = tuple(envs if envs is not None else range(num_envs))
            return read_frames(task.id, steps, shown, reply, inspected=inspected)

        reply = warm_process.request(
            "preview",
            python,
            asset_root,
            warm=warm,
            meanwhile=lambda first: show(read(first, inspected=False).image),
            task=to_json(task),
            cameras=list(cameras) if cameras else None,
            data_types=list(data_types) if data_types else None,
            num_envs=num_envs,
            envs=list(envs) if envs is not None else None,
            steps=steps,
            every=every,
            actions=actions,
            policy=actor,
            size=list(size),
            seed=seed,
            device=device,
            out=out,
        )
        return read(reply)


def _create(root: Root, manifest: Manifest, job: Job, launcher: Launcher) -> RunDir:
    """Make the run's folder whole, its first job included, then give it its name: a run is there or it is not."""
    staging, run_dir = root.runs / f".{manifest.run_id}", RunDir(root.runs / manifest.run_id)
    try:
        staging.mkdir(parents=True)
        draft = RunDir(staging)
        draft.logs.mkdir()
        if manifest.task.source:
            module = Path(manifest.task.source)
            draft.source.mkdir()
            shutil.copy2(module, draft.source / module.name)
            for name in manifest.task.files:
                (draft.source / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(module.parent / name, draft.source / name)
        files.write_once(draft.manifest, to_json(manifest))
        draft.next_job(job.kind, _job_writer(run_dir, manifest, job, launcher))
        staging.rename(run_dir.path)
    except OSError as exc:
        raise RlnbError(f"The run folder could not be made in {root.runs}: {exc}. Nothing is left of it.") from exc
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return run_dir


def _job_writer(run_dir: RunDir, manifest: Manifest, job: Job, launcher: Launcher) -> Callable[[JobDir, str], None]:
    """Return what writes the records of a job of ``run_dir`` into its draft: what it does, and its command."""

    def write(draft: JobDir, name: str) -> None:
        command = _command(manifest, job.kind, launcher, run_dir, JobDir(run_dir.jobs_folder / name))
        wrapped = plugins.manager().hook.rlnb_wrap_command(command=command, manifest=manifest)
        files.write_once(draft.job, to_json(job))
        files.write_once(draft.command, to_json(wrapped or command))

    return write


def _command(manifest: Manifest, kind: JobKind, launcher: Launcher, run_dir: RunDir, job_dir: JobDir) -> Command:
    """Return the command of a job as rlnb itself would run it."""
    local, gpus = isinstance(launcher, LocalLauncher), gpu_count()
    return worker_command(
        manifest,
        kind,
        run_dir.path,
        job_dir.path,
        max_running=launcher.max_running,
        walltime_s=launcher.walltime_s,
        gpu_per_slot=local
        and gpus > 1
        and manifest.resources.device in ("auto", "cuda")
        and manifest.resources.nproc_per_node <= (launcher.max_running or 1) <= gpus,
        threads=launcher.threads if isinstance(launcher, LocalLauncher) else None,
    )


def submit(run_dir: RunDir, manifest: Manifest, job: Job, launcher: Launcher, *, warm: bool | None = None) -> JobDir:
    """Add a job to a run and start it, in the warm worker where that fits.

    Raises:
        RlnbError: The job could not be written; the run is as it was before.
    """
    try:
        folder = run_dir.next_job(job.kind, _job_writer(run_dir, manifest, job, launcher))
    except OSError as exc:
        raise RlnbError(
            f"The job could not be written in {run_dir.jobs_folder}: {exc}. Nothing was started, and the run is as it "
            "was before."
        ) from exc
    _begin(folder, job.kind, manifest, launcher, warm=warm, undo=folder.path)
    return folder


def _begin(
    folder: JobDir, kind: JobKind, manifest: Manifest, launcher: Launcher, *, warm: bool | None, undo: Path
) -> None:
    """Start a job whose command is written, in the warm worker where that fits; remove ``undo`` if that fails."""
    command = from_json(Command, files.read_json(folder.command) or {})
    use_warm = options.warm if warm is None else warm
    fits = kind == "train" and isinstance(launcher, LocalLauncher) and manifest.resources.world_size == 1
    own = command == _command(manifest, kind, launcher, run_dir_of(folder.path), folder)
    worker = None
    if use_warm and fits and own and _plain(command):
        worker = warm_process.idle_worker(manifest.python, manifest.asset_root)
    try:
        handle = worker.adopt(folder.path) if worker is not None else launcher.submit(command, folder.path)
    except Exception:  # nothing was started
        shutil.rmtree(undo, ignore_errors=True)
        raise
    if worker is not None:
        warm_process.let_go(manifest.python, manifest.asset_root)
    with contextlib.suppress(OSError):  # a full disk: it runs, and its agent's heartbeat tells where it stands
        files.write_once(folder.handle, dict(handle))


def _plain(command: Any) -> bool:
    """Return whether a living worker can stand in for the command."""
    return "rlnb.worker" in command.argv and not command.gpu_per_slot and set(command.env) <= {"PYTHONUNBUFFERED"}


def runs(
    path: str | Path | None = None,
    *,
    task: str | None = None,
    library: str | None = None,
    state: str | None = None,
    tag: str | None = None,
    since: str | datetime | timedelta | None = None,
    where: Mapping[str, Any] | None = None,
    archived: bool = False,
) -> Runs:
    """Return runs, newest first.

    Args:
        path: An rlnb root, a run, or a folder of stock Isaac Lab ``logs/``; None is ``rlnb.options.root``.
        task: Only runs of this task.
        library: Only runs of this library.
        state: Only runs in this state.
        tag: Only runs with this tag.
        since: Only runs that were started since then: ``"2026-11-20"``, a datetime, or a timedelta (so long ago).
        where: Only runs of which this was asked: ``{"num_envs": 512, "sim.dt": 0.005}``, agent values as
            ``{"agent.algorithm.learning_rate": lambda rate: rate < 1e-3}``.
        archived: Only runs that are archived; else those are left out.

    Raises:
        NotFoundError: There is no such state or library, of no run such a thing was asked, or the root is no folder.
    """
    wanted = Selection(
        task=task, library=library, state=state, tag=tag, since=moment(since), where=where or {}, archived=archived
    )
    if path is None and options.folders.path.exists() and not options.folders.path.is_dir():
        raise NotFoundError(f"{options.folders.path} is no folder, so no runs can be in it: rlnb.options.root = ...")
    readable, found = [], []
    for record in find(Path(path).absolute() if path is not None else options.folders.path):
        try:
            if wanted.fits(record):
                found.append(record)
            readable.append(record)
        except (RlnbError, OSError) as exc:  # one odd record must not hide the others
            logger.warning("%s is not listed. %s", record.path, exc)
    wanted.check_names(readable)
    found.sort(key=lambda record: record.manifest.created, reverse=True)
    return Runs([Run.of(record) for record in found])


def get_run(id: str) -> Run:
    """Return one run by its id, by a unique part of it, or by its folder.

    Raises:
        NotFoundError: No run, or several.
    """
    folder = Path(id).absolute()
    if folder.is_dir() and (record := next((found for found in find(folder) if found.path == folder), None)):
        return Run.of(record)
    known = {record.id: record for record in find(options.folders.path)}
    matches = [name for name in known if id in name]
    if id in known or len(matches) == 1:
        return Run.of(known[id if id in known else matches[0]])
    if matches:
        raise NotFoundError(f"{id!r} fits {len(matches)} runs: {', '.join(sorted(matches)[-5:])}. Give more of it.")
    raise unknown("run", id, list(known)[-10:], has=f"Newest in {options.folders.runs}")


def start_job(record: RunRecord, kind: JobKind, options_: Mapping[str, Any], *, warm: bool | None = None) -> JobDir:
    """Start a further job in a run that exists."""
    job, launcher = Job(kind=kind, options=options_), plugins.launcher_of(record.manifest)
    return submit(record.folder, record.manifest, job, launcher, warm=warm)
