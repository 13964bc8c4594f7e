"""Start a job of an existing run, in a new process or in the warm simulator, and report how it ended."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rlnb.contracts.launchers import Launcher
from rlnb.errors import NotFiniteError, RlnbError, RunError, WorkerError
from rlnb.hooks import plugins
from rlnb.hooks.registry import require
from rlnb.launch.command import own_env, runs_one_worker, worker_command
from rlnb.launch.detached import DetachedLauncher
from rlnb.launch.local import LocalLauncher
from rlnb.machine import threads
from rlnb.machine.gpus import gpu_count
from rlnb.protocol import requests
from rlnb.records import remote
from rlnb.records.checkpoints import put_back
from rlnb.records.facts import RunFacts, checkpoint_of
from rlnb.records.layout import COMMAND, HANDLE, JOB, JOBS, JobDir, RunDir, run_dir_of
from rlnb.records.options import CheckpointOptions, TrainOptions, options_of
from rlnb.records.record import JobRecord, RunRecord
from rlnb.records.repetition import differences
from rlnb.records.trust import decided_by, foreign_owner, require_trusted_owner
from rlnb.settings import options
from rlnb.simulation import placement
from rlnb.simulation.pool import pool
from rlnb.simulation.process import SimulatorProcess
from rlnb.spec import ENDED, Command, Job, JobKind, Manifest, Result
from rlnb.storage import entries, files
from rlnb.storage.access import printable
from rlnb.storage.serial import to_json

logger = logging.getLogger(__name__)
POLL_S, LONGEST_POLL_S = 0.1, 1.0
"""Seconds between two looks at a job, at first and at most: the folder may be on a file system that many share."""
SHORT_LINES = 8
"""Number of lines up to which the details of a failure, such as those of the user's own code, are above the log."""


class ResumedError(RunError):
    """Another process has resumed the run first."""


def do(record: RunRecord, kind: JobKind, job_options: CheckpointOptions) -> JobDir:
    """Run a job, in the warm simulator if that is possible, and wait for its end.

    Raises:
        RunError: The job did not complete, or the simulator of this call cannot do it.
    """
    from rlnb.display.status import status

    require_trusted_owner(record, trust=job_options.trust)
    with status(f"{kind} {job_options.checkpoint}"):
        if _fits_simulator(record, job_options):
            folder = in_simulator(record, kind, job_options)
        else:
            folder = start_job(record, kind, job_options, warm=False)
        job, begin_s = JobRecord(folder, record.manifest.launcher), time.monotonic()
        while job.state() not in ENDED:
            time.sleep(pause_s(time.monotonic() - begin_s))
    raise_unless_completed(record, job)
    for text in job.result.warnings if job.result else ():
        warnings.warn(text, stacklevel=3)
    return folder


def _fits_simulator(record: RunRecord, job_options: CheckpointOptions) -> bool:
    """Return whether a warm simulator does a job, rather than a process where the run is.

    Raises:
        RunError: The user has chosen a simulator for this call that cannot do the job.
    """
    # A wrapped command may run in a container, whose environment differs from the warm simulator's.
    plain = Command(argv=(sys.executable,))
    wrapper = require("rlnb_wrap_command", command=plain, manifest=record.manifest)
    library, checkpoint = plugins.library(record.library), record.path / job_options.checkpoint
    if not library.simulator or wrapper is not None:
        why = f"{library.name} has no simulator" if not library.simulator else "a container or a plugin wraps its jobs"
        if placement.of_this_call.get() is not None:
            raise RunError(f"launcher= is not possible for {record.id}, since {why}. Leave it out.")
        return False
    if placement.of_this_call.get() is None:
        is_here = remote.remote_of(record.folder) is None  # otherwise the run's own machine has its checkpoints
        if not options.warm or not (is_here or placement.has_run(record.path)):
            return False
    if not placement.has_run(record.path):
        remote.refuse_remote(record.folder, checkpoint)
    if placement.shares_no_folder() and not checkpoint.is_relative_to(record.path):
        logs = record.folder.logs
        raise RunError(f"{checkpoint} is not in the folder of {record.id}, so it is not sent. Copy it into {logs}.")
    return True


def pause_s(waited_s: float) -> float:
    """Return the seconds until the next look at a job, which are 1 % of the seconds waited so far."""
    return min(max(POLL_S, waited_s / 100), LONGEST_POLL_S)


def raise_unless_completed(record: RunRecord, job: JobRecord | None) -> None:
    """Raise a :class:`RunError` that names the log and a suitable next call, unless the job has completed."""
    if job is None:
        if record.state == "lost":
            raise RunError(
                f"{record.id} is lost: its kernel ended before the training started.\n"
                f"  next: start the training again. To remove this run: rlnb runs prune {record.id} --whole --yes"
            )
        return
    state = job.state()
    if state == "completed":
        return
    result = job.result
    node_log = job.folder.log(result.node if result else 0)
    log = node_log if node_log.exists() else next(iter(job.folder.logs()), job.folder.path)
    last_line = "" if result else files.tail(node_log, 1).strip()
    end = f". Last line of its log: {last_line}" if last_line else ""
    loss = f"its process ended without a result (it was killed, or its machine went down){end}"
    if job.may_wait():
        loss += f". {_place(record, job)}"
    reason = result.error if result else loss
    end = reason if f"{reason} ".startswith(f"{state} ") else f"{state}: {reason}"
    kind = f"{job.kind}, {restart.count}" if (restart := job.restart) else job.kind
    detail = result.detail.rstrip() if result else ""
    calls = f"  log:  {log}\n  next: {_next_call(record, job)}"
    is_short = detail.count("\n") < SHORT_LINES
    parts = [detail, calls] if is_short else [calls, f"\n{detail}"]
    text = "\n".join(filter(None, [f"{record.id} ({kind}) {end}", *parts]))
    raise (NotFiniteError if _is_not_finite(result) else RunError)(text)


def in_queue(record: RunRecord, job: JobRecord) -> bool | None:
    """Ask the queue whether a job whose host is gone is still in it; return None if that is unknown.

    Args:
        record: The run.
        job: Job of the run.
    """
    ids = job.submission.jobs
    if not ids or decided_by(record, job.folder):  # a record of another user is no argument of a command
        return None if ids else False
    try:
        launcher = plugins.load(plugins.launcher(record.manifest.launcher).factory)()
        if not isinstance(launcher, DetachedLauncher):
            return None
        return launcher.in_queue(job.folder.path, [launcher.checked_id(one, job.folder.submitted) for one in ids])
    except RlnbError:  # the launcher is not installed, or a record is malformed
        return None


def _place(record: RunRecord, job: JobRecord) -> str:
    """Return where the job of a host that is gone is now, as a sentence without its end."""
    ids, owner = printable(", ".join(job.submission.jobs)), foreign_owner(record, job.folder)
    whose = ": run.cancel() takes it out" if owner is None else f" of the user {owner}"
    known = in_queue(record, job)
    if known is None:
        return f"Its job {ids} may still be in the queue{whose}"
    return f"Its job {ids} is still in the queue{whose}" if known else f"Its job {ids} has left the queue"


def _next_call(record: RunRecord, job: JobRecord) -> str:
    """Return the call that helps after a job that has failed, was lost or was cancelled."""
    run, result = f"rlnb.get_run({record.id!r})", job.result
    flight = RunFacts.of(record).flight if _is_not_finite(result) and job.kind == "train" else None
    if flight is not None and flight.fatal:  # a training that goes on would meet the same value again
        return f"{run}.flight" if flight.replay_from is None else f"rlnb.get_run({record.id!r}).replay()"
    is_refused = _is_not_finite(result) and not files.there(job.folder.started)  # what it would start from
    checkpoints = record.checkpoints if job.kind == "train" and resumes(record) and not is_refused else None
    goes_on = checkpoints is not None and any(
        not checkpoints.fault(path, to_resume=True) for path in reversed(checkpoints)
    )
    return f"{run}.resume()" if goes_on else f"{run}.logs(200)"


def _is_not_finite(result: Result | None) -> bool:
    return result is not None and result.error.startswith(f"{NotFiniteError.__name__}:")


def resumes(record: RunRecord) -> bool:
    """Return whether a training can continue from a checkpoint, as far as its library is known here."""
    return record.library_spec is None or record.library_spec.resumes


def refuse_without_resuming(record: RunRecord) -> None:
    """Refuse to continue a training whose library cannot.

    Raises:
        RunError: The library has ``resumes=False``.
    """
    if not resumes(record):
        raise RunError(
            f"The library {record.library!r} cannot resume a training, so {record.id} does not continue. "
            "Start a new training: rlnb.train(...)"
        )


@dataclass(kw_only=True, slots=True)
class NewJob:
    """A job that is being added to a run: its records are written first, then it is started."""

    run_path: Path
    """Final folder of the run, even while the run is still a draft under another name."""
    manifest: Manifest
    job: Job
    launcher: Launcher
    command: Command | None = None
    """Command of the job; None until :meth:`records` was called."""
    fits_simulator: bool = False
    """Whether the warm simulator can run the job in place of the command."""

    def records(self, name: str) -> Mapping[str, object]:
        """Return the job's records by file name.

        Args:
            name: Name of the job's folder.
        """
        command = _command(self.manifest, self.job.kind, self.launcher, self.run_path, self.run_path / JOBS / name)
        one_worker = runs_one_worker(command.argv)
        self.command = require("rlnb_wrap_command", command=command, manifest=self.manifest) or command
        self.fits_simulator = (
            self.job.kind == "train"
            and self.launcher.nodes == 1
            and self.command == command  # a wrapper may run it in another environment, such as a container
            and one_worker
            and not command.gpu_per_slot
            and not self.manifest.deterministic  # Warp's modules keep the setting from the time of their import
            and command.env.items() <= own_env().items()
            and (
                command.max_running == 1 or threads.OMP_THREADS in os.environ
            )  # else it has more than its share of threads
        )
        return {JOB: self.job, COMMAND: self.command}

    def start(self, folder: JobDir, *, warm: bool | None, undo: Callable[[], None]) -> None:
        """Start the job, in the warm simulator if it can run there; call ``undo`` if the start fails."""
        assert self.command is not None, "records() was called"
        worker = self._simulator(warm) if self.fits_simulator else None
        try:
            handle = worker.adopt(folder.path) if worker else self.launcher.submit(self.command, folder.path)
        except Exception:  # no process was started
            undo()
            raise
        if worker is not None:
            pool.release(worker, folder)
            if worker.job is not None:
                return  # no process of this machine has the job, so its state follows from the heartbeat
        with contextlib.suppress(OSError):  # a full disk; the job runs, and its state follows from the heartbeat
            files.write_once(folder.path / HANDLE, handle)

    def _simulator(self, warm: bool | None) -> SimulatorProcess | None:
        """Return the idle simulator that becomes the job's process; None for a process of its own.

        A simulator in a job of the same launcher is taken only on request, since a training in it ends with that job.
        """
        settings = self.manifest.python, self.manifest.asset_root
        if type(self.launcher) is LocalLauncher:
            return pool.idle(*settings) if (options.warm if warm is None else warm) else None
        worker = pool.idle(*settings, self.launcher)
        if worker is not None and warm is None:
            what = "The warm simulator of this kernel holds a node of the same launcher (%s)."
            logger.info(what + " With rlnb.train(..., warm=True), a training runs there at once.", worker.job)
        return worker if warm else None


def _command(manifest: Manifest, kind: JobKind, launcher: Launcher, run_path: Path, job_path: Path) -> Command:
    """Return the command of a job before any plugin wraps it."""
    return worker_command(
        manifest,
        kind,
        run_path,
        job_path,
        max_running=launcher.max_running,
        walltime_s=launcher.walltime_s,
        gpu_ranks=_gpu_ranks(manifest, launcher),
    )


def _gpu_ranks(manifest: Manifest, launcher: Launcher) -> int | None:
    """Return the number of ranks that each get a GPU of their own; None if this machine has too few, or one."""
    if not isinstance(launcher, LocalLauncher) or manifest.resources.device not in ("auto", "cuda"):
        return None
    gpus = gpu_count()
    if gpus < 2:
        return None
    ranks = plugins.gpu_ranks(manifest)
    return ranks if max(ranks, launcher.max_running or 1) <= gpus else None


def submit(run_dir: RunDir, manifest: Manifest, job: Job, launcher: Launcher, *, warm: bool | None = None) -> JobDir:
    """Add a job to a run and start it, in the warm simulator if it can run there.

    Raises:
        ResumedError: Another process has resumed the run; the run is unchanged.
        RlnbError: The job's records could not be written; the run is unchanged.
    """
    new = NewJob(run_path=run_dir.path, manifest=manifest, job=job, launcher=launcher)
    try:
        folder = run_dir.next_job(job.kind, new.records)
        if job.after:
            _claim(folder, JobDir(run_dir.jobs_folder / job.after))
    except FileNotFoundError as exc:
        raise RunError(f"{run_dir.path} was deleted or moved while its job was made. No process was started.") from exc
    except OSError as exc:
        raise RlnbError(
            f"The records of the job could not be written in {run_dir.jobs_folder}: {exc}. No process was started, and "
            "the run is unchanged."
        ) from exc
    new.start(folder, warm=warm, undo=lambda: _withdraw(folder, job.after))
    return folder


def _claim(job: JobDir, earlier: JobDir) -> None:
    """Make a job the one successor of an earlier training. If the earlier one has another successor, remove the job.

    The claim comes after the job's folder, so that it never names a job that does not exist, and before the job's
    process, so that at most one process is ever started. A reader ignores the folder of a job without a claim.

    Raises:
        ResumedError: The earlier training has another successor.
        OSError: The claim could not be written; the job's folder is removed.
    """
    claim = {"job": job.path.name, "host": socket.gethostname(), "pid": os.getpid(), "time": files.now()}
    try:
        # NFS may report "exists" for a link that this very call created, so the content decides.
        ours = files.write_once(earlier.successor, claim) or files.read_json(earlier.successor) == claim
    except (OSError, RlnbError):
        _remove(job)
        raise
    if not ours:
        _remove(job)
        id, first = run_dir_of(job.path).path.name, earlier.successor_name()
        if job.sibling(first) is None:  # a person has deleted its folder
            raise RunError(f"The job {first!r}, which has resumed {id}, does not exist. Delete {earlier.successor}.")
        raise ResumedError(
            f"{id} has already been resumed, as job {first}. Wait for it, or cancel it: rlnb.get_run({id!r}).cancel()"
        )


def _withdraw(job: JobDir, after: str) -> None:
    """Undo a job that was not started. Its claim goes first: a claim without a job would block the run."""
    with contextlib.suppress(OSError):
        if after:
            entries.remove(JobDir(job.path.parent / after).successor)
        _remove(job)


def _remove(job: JobDir) -> None:
    """Remove the folder of a job that was not started. It is hidden first: half of it could be taken for a job."""
    hidden = job.path.with_name(f".{job.path.name}")
    with contextlib.suppress(OSError):
        entries.rename(job.path, hidden.name)
    entries.remove_tree(hidden, ignore_errors=True)


def start_job(
    record: RunRecord,
    kind: JobKind,
    job_options: CheckpointOptions | TrainOptions,
    *,
    after: JobRecord | None = None,
    restart: int = 0,
    max_restarts: int = 0,
    launcher: Launcher | None = None,
    warm: bool | None = None,
) -> JobDir:
    """Start another job of an existing run.

    Args:
        record: The run.
        kind: Kind of the job.
        job_options: Arguments of the job.
        after: For a training: the training that it continues, which has ended.
        restart: Number of the restart, from 1, if the cluster interrupted that training.
        max_restarts: Number of restarts after which the training is not continued.
        launcher: Launcher of the job; None is the run's own.
        warm: Whether the warm simulator may become the job's process; None takes ``rlnb.options.warm``.
    """
    require_trusted_owner(record, trust=job_options.trust)
    job = Job(
        kind=kind,
        options=to_json(job_options),
        after=after.folder.path.name if after else "",
        restart=restart,
        max_restarts=max_restarts,
    )
    launcher = launcher or plugins.launcher_of(record.manifest)
    return submit(record.folder, record.manifest, job, launcher, warm=warm)


# -- where a training goes on ----------------------------------------------------------------------------------------


def iterations_of(run: RunFacts) -> dict[Path, float | None]:
    """Return the last iteration of each checkpoint; see :attr:`rlnb.records.checkpoints.Checkpoints.iterations`."""
    checkpoints = run.checkpoints  # listed once, since a training may add one
    return {path: checkpoints.iteration(path) for path in checkpoints}


class NothingLeftError(RunError):
    """A training has done all its iterations."""


def what_is_left(
    run: RunFacts, max_iterations: int | None = None, checkpoint: str | Path | None = None, trust: bool = False
) -> TrainOptions:
    """Return the options of the next training job of a run; the arguments are those of :meth:`rlnb.Run.resume`.

    Raises:
        RunError: The library cannot resume, the run has no checkpoint, or no iterations are left.
    """
    refuse_without_resuming(run.record)
    library = run.record.library_spec
    if library is not None and library.checkpoint_is_folder and run.state in ENDED:
        put_back(run.record.folder.logs)
    start = checkpoint_of(run.record, checkpoint, to_resume=True)
    done, started, training = run.progress[0], run.record.last_started, run.record.training
    limit = max_iterations or (options_of(TrainOptions, training.folder).max_iterations if training else None)
    total = limit or (started.max_iterations if started else 0)
    # A cancelled or failed job restarts at its last checkpoint, so it may also end before the point it had reached.
    numbers = iterations_of(run)
    reached = numbers.get(run.path / start) or 0
    nothing_left = total <= (done if run.state == "completed" else reached)
    if total < 1 or (checkpoint is None and nothing_left):
        raise NothingLeftError(
            f"{run.id} has finished {done} iterations and would end at {total}: nothing is left to do. "
            f"Use run.resume(max_iterations={2 * done or 150}) to extend it."
        )
    # The manifest's max_iterations may be lower, if the run was extended before.
    lost = training is not None and not training.folder.result.exists()
    logged = run.record.folder.logged() if lost else {}
    return TrainOptions(checkpoint=start, trust=trust, max_iterations=total, logged=logged)


def say_where(run: RunFacts, rest: TrainOptions, done: int) -> None:
    """Log the iteration that the training continues from; warn if more is lost than a checkpoint interval.

    Args:
        run: The run.
        rest: Options of the job that continues the training.
        done: Number of iterations that were finished before.
    """
    numbers = iterations_of(run)
    last = numbers.get(run.path / str(rest.checkpoint))
    if last is None:
        return
    begin = int(last) + 1
    logger.info("%s continues from %s, at iteration %d of %s.", run.id, rest.checkpoint, begin, rest.max_iterations)
    earlier = [number for number in numbers.values() if number is not None and number < last]
    interval = last - max(earlier, default=-1)
    if done - begin > interval:
        logger.warning("%s had finished %d iterations. %d of them are trained again.", run.id, done, done - begin)


def say_losses(run: RunFacts) -> bool:
    """Warn of what a training could not restore or repeat; return whether it has said what it could."""
    started = run.started
    if started is not None and (unequal := differences(run.record)):
        logger.warning("The curve may differ from that of %s. %s", run.manifest.like, " ".join(unequal))
    if started is not None and started.losses:
        losses = "; ".join(f"{part}: {report}" for part, report in started.losses.items())
        logger.warning("%s was resumed without a part of its state. %s", run.id, losses)
    return started is not None


# -- jobs in a warm simulator --------------------------------------------------------------------------------------


def in_simulator(record: RunRecord, kind: JobKind, job_options: CheckpointOptions) -> JobDir:
    """Do a job in the warm simulator of this call, and return its folder. A failure becomes the job's result."""
    job = Job(kind=kind, options=to_json(job_options))
    folder = record.folder.next_job(kind, lambda name: {JOB: job})
    try:
        if placement.shares_no_folder():
            _do_there(record, job, folder)
        else:
            request = requests.RunJob(kind=kind, job_dir=str(folder.path))
            pool.request(request, *_settings(record), warm=_warm())
    except (RlnbError, WorkerError) as exc:
        first, _, rest = str(exc).partition("\n")
        if isinstance(exc, NotFiniteError):  # as a process of its own writes it
            first = f"{NotFiniteError.__name__}: {first}"
        error, detail = first[: files.MOST_DETAIL], rest[-files.MOST_DETAIL :]
        failed = Result(outcome="failed", error=error, detail=detail, ended=files.now())
        files.write_once(folder.result, failed)
    except BaseException:  # an interrupt: without a result the job would look unfinished forever
        stopped = Result(outcome="cancelled", error="the wait for the job was interrupted", ended=files.now())
        files.write_once(folder.result, stopped)
        raise
    return folder


def _warm() -> bool:
    """Return whether the simulator that lives already does the job. A call that names a launcher may start another."""
    return options.warm or placement.of_this_call.get() is None


def _settings(record: RunRecord) -> tuple[str | None, str | None]:
    """Return interpreter and asset root of the worker. The interpreter of a run is one of the run's machine."""
    is_elsewhere = placement.shares_no_folder() and not placement.has_run(record.path)
    return None if is_elsewhere else record.manifest.python, record.manifest.asset_root


def _do_there(record: RunRecord, job: Job, folder: JobDir) -> None:
    """Do a job on a machine without this folder, and write here what it has written there.

    Raises:
        RlnbError: The job has failed, or a file cannot be written.
    """
    out = folder.path / ".there"
    files.make_subfolder(out)
    try:
        request = requests.RunJobThere(kind=job.kind, job_dir=str(folder.path), job=job, out=str(out))
        answer = pool.request(request, *_settings(record), warm=_warm())
        _take(folder, answer.files)
    except OSError as exc:
        raise RlnbError(f"The files of the job cannot be written: {exc}. Free space in {record.path}.") from exc
    finally:
        entries.remove_tree(out, ignore_errors=True)


def _take(folder: JobDir, copies: Mapping[str, str]) -> None:
    """Move the files of a job to their places in the folder of its run.

    Raises:
        RlnbError: A path leads to another place than that of a job's files.
        OSError: A file has not arrived, or cannot be moved.
    """
    run, out = run_dir_of(folder.path), folder.path / ".there"
    records = {path.relative_to(run.path) for path in (folder.result, folder.evaluation, folder.rollout)}
    for name, copy in copies.items():
        path = PurePosixPath(name)
        if ".." in path.parts or not (path in records or path.parts[0] in (run.media.name, run.exports.name)):
            raise RlnbError(f"The machine of the simulator has sent {name!r}, which is no file of this job.")
        files.make_folder((run.path / name).parent)
        entries.move(out / Path(copy).name, run.path / name)
