"""What a person holds: a run's record, and the verbs on it."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb import plugins
from rlnb import warm as warm_process
from rlnb.errors import RlnbError, RunError, unknown
from rlnb.records import files
from rlnb.records.find import open_record
from rlnb.records.layout import JobDir
from rlnb.records.record import JobRecord, RunRecord, StockRecord
from rlnb.records.script import ScriptRecord
from rlnb.settings import options
from rlnb.spec import JobKind, State, to_json

if TYPE_CHECKING:
    from datetime import datetime

    from rlnb.evaluation import Evaluation
    from rlnb.records.checkpoints import Checkpoints
    from rlnb.records.metrics import Metrics
    from rlnb.spec import Manifest, Result, Started

logger = logging.getLogger(__name__)

ENDED: tuple[State, ...] = ("completed", "failed", "cancelled", "timeout", "lost")
POLL_S = 0.25
SHOW_S = 1.0


class Run:
    """A run: everything it left on disk, and what can be done with it.

    It only reads the run's folder, so any number of kernels can hold the same run.
    """

    def __init__(self, path: Path) -> None:
        self._record = open_record(path)

    @classmethod
    def of(cls, record: RunRecord) -> Run:
        """Return the run of a record."""
        run = cls.__new__(cls)
        run._record = record
        return run

    @property
    def record(self) -> RunRecord:
        """What the run's folder tells."""
        return self._record

    # -- what it is

    @property
    def id(self) -> str:
        return self._record.id

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self._record.path

    @property
    def manifest(self) -> Manifest:
        """What was asked."""
        return self._record.manifest

    @property
    def task(self) -> str:
        return self._record.task

    @property
    def library(self) -> str:
        return self._record.library

    @property
    def created(self) -> datetime:
        return self._record.created

    @property
    def state(self) -> State:
        """Where the training stands, derived from the run's files."""
        return self._record.state

    @property
    def started(self) -> Started | None:
        """What really runs: devices, envs, versions, assets; None before the first iteration."""
        job = self._record.training
        return job.started if job else None

    @property
    def result(self) -> Result | None:
        """How the training ended; None before."""
        job = self._record.training
        return job.result if job else None

    @property
    def jobs(self) -> list[JobRecord]:
        """Everything done in this run: training, evaluations, exports."""
        return self._record.jobs

    @property
    def metrics(self) -> Metrics:
        """Metrics by name, live; ``.frame()`` gives tidy data."""
        return self._record.metrics

    @property
    def checkpoints(self) -> Checkpoints:
        """Checkpoints, oldest iteration first; ``.last``, and ``.best("reward")`` by any metric."""
        return self._record.checkpoints

    @property
    def evaluations(self) -> list[Evaluation]:
        """Every evaluation of this run, oldest first."""
        from rlnb.evaluation import Evaluation

        folders = [job.folder for job in self.jobs if job.kind == "evaluate"]
        return [
            Evaluation.from_record(data, folder.rollout)
            for folder in folders
            if (data := files.read_json(folder.evaluation))
        ]

    @property
    def progress(self) -> tuple[int, int]:
        """Finished iterations and iterations in all; zeros before the first."""
        started = self.started
        if started is None:
            return 0, 0
        return max(self.metrics.iteration + 1, started.first_iteration), started.max_iterations

    @property
    def command(self) -> str:
        """The shell command that the newest training job ran."""
        from rlnb.launch.command import shell
        from rlnb.spec import Command, from_json

        job = self._record.training
        data = files.read_json(job.folder.command) if job else None
        return shell(from_json(Command, data)) if data else ""

    def logs(self, lines: int = 40, *, job: int | None = None) -> str:
        """Return the end of a job's log.

        Args:
            lines: Lines from its end.
            job: Number of the job; None is the newest.
        """
        jobs = self.jobs
        if not jobs:
            return ""
        chosen = jobs[-1] if job is None else next((j for j in jobs if j.folder.number == job), None)
        if chosen is None:
            raise unknown("job", str(job), [j.folder.path.name for j in jobs], has=f"Jobs of {self.id}")
        return "\n".join(files.tail(path, lines) for path in chosen.folder.logs())

    # -- what can be done with it

    def wait(self, timeout_s: float | None = None) -> Run:
        """Wait for the training to end, showing progress. An interrupt stops the waiting, never the run.

        Raises:
            RunError: The training did not complete; names the log and the next call.
            TimeoutError: It goes on after ``timeout_s`` seconds.
        """
        from rlnb.notebook.display import progress

        deadline = time.monotonic() + timeout_s if timeout_s is not None else None
        shown = float("-inf")
        with progress(self) as show:
            while (state := self.state) not in ENDED:
                if time.monotonic() - shown > SHOW_S:  # looking costs the training, on a small machine
                    show()
                    shown = time.monotonic()
                if deadline is not None and time.monotonic() > deadline:
                    raise TimeoutError(f"{self.id} is still {state} after {timeout_s} s. It goes on.")
                time.sleep(POLL_S)
            show()
        self._raise_unless_completed(self._record.training)
        return self

    def _raise_unless_completed(self, job: JobRecord | None) -> None:
        state = job.state() if job else "created"
        if job is None or state == "completed":
            return
        log = next(iter(job.folder.logs()), job.folder.path)
        result = job.result if state != "lost" else None
        reason = result.error if result else "its process is gone and left no result (killed, or the machine went down)"
        resume = f"rlnb.get_run({self.id!r}).resume()" if self.checkpoints else f"rlnb.get_run({self.id!r}).logs(200)"
        raise RunError(
            f"{self.id} ({job.kind}) {state}: {reason}\n  log:  {log}\n  next: {resume}"
            + (f"\n\n{result.detail}" if result and result.detail else "")
        )

    def cancel(self) -> Run:
        """Ask the newest unfinished job to end; returns at once. Its checkpoints stay."""
        for job in reversed(self.jobs):
            if job.state() not in ENDED:
                files.write_once(job.folder.cancel, {"time": files.now()})
                handle = job.handle
                if handle is not None:
                    launcher = plugins.load(plugins.launcher(self.manifest.launcher).factory)()
                    launcher.cancel(handle, job.folder.path)
                return self
        return self

    def resume(
        self, *, max_iterations: int | None = None, checkpoint: str | Path | None = None, trust: bool = False
    ) -> Run:
        """Go on from a checkpoint as a further job of this run; the curves become one.

        Args:
            max_iterations: Iteration to end at; None keeps the first job's.
            checkpoint: Where to start; None is the last one.
            trust: Whether to load a checkpoint that holds more than weights.

        Raises:
            RunError: It still runs, there is no checkpoint, or nothing is left to do.
        """
        from rlnb import api

        if self.state not in ENDED:
            raise RunError(f"{self.id} is still {self.state}. Wait for it, or cancel it: run.cancel()")
        chosen = {"checkpoint": self._checkpoint(checkpoint), "trust": trust}
        done, total = self.progress
        total = total if max_iterations is None else max_iterations
        if total < 1 or (self.state == "completed" and checkpoint is None and total <= done):
            raise RunError(
                f"{self.id} has finished {done} iterations, and is to end at {total}: nothing is left to do. "
                f"run.resume(max_iterations={2 * done or 150})"
            )
        if max_iterations is not None:
            chosen["max_iterations"] = max_iterations
        api.start_job(self._record, "train", chosen)
        return self

    def evaluate(
        self,
        episodes: int = 100,
        *,
        num_envs: int | None = None,
        seed: int = 1000,
        checkpoint: str | Path | None = None,
        trust: bool = False,
        record: int = 0,
    ) -> Evaluation:
        """Run whole episodes from reset with deterministic actions; return what came of them.

        Every env runs the same number of episodes, so ``episodes`` is rounded up to a multiple of
        ``num_envs``: otherwise short episodes would count more often.

        Args:
            episodes: Episodes at least.
            num_envs: Envs side by side; None is ``min(episodes, 64)``.
            seed: Seed of the env, apart from the training's.
            checkpoint: Which one; None is the last.
            trust: Whether to load a checkpoint that holds more than weights.
            record: Observations to keep with the policy's actions, one row per env and step; see
                :attr:`rlnb.Evaluation.rollout`.

        Raises:
            RunError: There is no checkpoint, or the evaluation failed.
        """
        from rlnb.evaluation import Evaluation

        if episodes < 1:
            raise RlnbError(f"episodes={episodes!r} is not a positive whole number.")
        chosen = {
            "episodes": episodes,
            "num_envs": num_envs or min(episodes, 64),
            "seed": seed,
            "checkpoint": self._checkpoint(checkpoint),
            "trust": trust,
            "record": record,
        }
        job = self._do("evaluate", chosen)
        data = files.read_json(job.evaluation)
        assert data is not None, "a completed evaluation has written its record"
        return Evaluation.from_record(data, job.rollout)

    def export(self, *formats: str, checkpoint: str | Path | None = None, trust: bool = False) -> dict[str, Path]:
        """Write the policy for deployment, normaliser included; return format to file.

        Of a multi-agent library there is a policy for each agent: ``"<agent>/<format>"`` to file.

        Args:
            formats: ``"torchscript"``, ``"onnx"``; all that the library has when none is given.
            checkpoint: Which one; None is the last.
            trust: Whether to load a checkpoint that holds more than weights.

        Raises:
            RunError: There is no checkpoint, or the export failed.
            NotFoundError: The library has no such format.
        """
        known = plugins.library(self.library).exports
        for name in formats:
            if name not in known:
                raise unknown("export format", name, known, has=self.library)
        chosen = {"formats": list(formats or known), "checkpoint": self._checkpoint(checkpoint), "trust": trust}
        result = JobRecord(self._do("export", chosen), self.manifest.launcher).result
        assert result is not None, "a completed export has written its result"
        return {name: self.path / path for name, path in result.values.items()}

    def _do(self, kind: JobKind, chosen: dict[str, Any]) -> JobDir:
        """Do a job now, in the warm worker where that is allowed, and wait for it."""
        from rlnb import api
        from rlnb.notebook.display import status

        with status(f"{kind} {chosen['checkpoint']}"):
            # A wrapped command (a container, say) is not what the warm worker runs in.
            wraps = plugins.manager().hook.rlnb_wrap_command.get_hookimpls()
            if options.warm and plugins.library(self.library).simulator and not wraps:
                folder = self._in_warm_worker(kind, chosen)
            else:
                folder = api.start_job(self._record, kind, chosen, warm=False)
            job = JobRecord(folder, self.manifest.launcher)
            while job.state() not in ENDED:
                time.sleep(POLL_S)
        self._raise_unless_completed(job)
        return folder

    def _in_warm_worker(self, kind: JobKind, chosen: dict[str, Any]) -> JobDir:
        from rlnb.errors import WorkerError
        from rlnb.spec import Job, Result

        worker = warm_process.warm_worker(self.manifest.python, self.manifest.asset_root)
        folder = self._record.folder.next_job(kind)
        files.write_once(folder.job, to_json(Job(kind=kind, options=chosen)))
        try:
            worker.request(kind, job_dir=str(folder.path))
        except (RlnbError, WorkerError) as exc:
            first, _, rest = str(exc).partition("\n")
            failed = Result(outcome="failed", error=first, detail=rest, ended=files.now())
            files.write_once(folder.result, to_json(failed))
        return folder

    def _checkpoint(self, wanted: str | Path | None) -> str:
        if isinstance(self._record, StockRecord):
            raise RunError(f"{self.path} was written by stock Isaac Lab; rlnb only reads it.")
        if isinstance(self._record, ScriptRecord):
            raise RunError(f"{self.id} is a script's: what can be done with its checkpoints, the script knows.")
        found = self.checkpoints
        if wanted is None and not found:
            raise RunError(f"{self.id} ({self.state}) has no checkpoint yet. Its log: run.logs()")
        if wanted is None:
            return str(found[-1].relative_to(self.path))
        path = next((path for path in found if path.name == str(wanted) or path == Path(wanted)), Path(wanted))
        if not path.is_file():
            raise unknown("checkpoint", str(wanted), [path.name for path in found], has=self.id)
        return str(path.relative_to(self.path)) if path.is_relative_to(self.path) else str(path.absolute())

    # -- looking at it

    def watch(self, metrics: Sequence[str] | None = None, *, x: str = "frames") -> Any:
        """Show live curves until the run ends; see :func:`rlnb.watch`."""
        from rlnb.notebook.live import watch

        return watch([self], metrics=metrics, x=x)

    def plot(self, metrics: Sequence[str] | None = None, *, x: str = "frames") -> Any:
        """Return the curves as a Plotly figure; see :func:`rlnb.notebook.curves.figure`."""
        from rlnb.notebook.curves import figure

        return figure([self], metrics=metrics, x=x)

    def report(self, path: str | Path | None = None) -> Path:
        """Write a report as one self-contained HTML file that needs neither network nor JavaScript."""
        from rlnb.notebook.report import report

        return report([self], path)

    def __repr__(self) -> str:
        return repr(self._record)

    def _repr_html_(self) -> str:
        from rlnb.notebook.display import table

        done, total = self.progress
        started = self.started
        rows = [
            ("task", self.task),
            ("library", self.library),
            ("state", self.state),
            ("iteration", f"{done} of {total}" if total else "-"),
            *[(name, f"{self.metrics[name].last:.4g}") for name in self.metrics.names],
            *[(f"{part} of the checkpoint", found) for part, found in (started.restored if started else {}).items()],
            ("folder", str(self.path)),
        ]
        return table(["", ""], rows, caption=self.id)
