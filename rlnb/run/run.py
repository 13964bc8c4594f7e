"""A run as a person holds it: its record, and the verbs on it."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb import plugins
from rlnb.errors import RlnbError, RunError, unknown
from rlnb.records.facts import RunFacts, checkpoint_of
from rlnb.records.options import TrainOptions, options_of
from rlnb.records.record import JobRecord
from rlnb.run.jobs import POLL_S, do, raise_unless_completed
from rlnb.spec import ENDED

if TYPE_CHECKING:
    from PIL.Image import Image

    from rlnb.cameras.live import CameraFeed
    from rlnb.display.live_pictures import LiveView
    from rlnb.display.video import Video
    from rlnb.records.evaluation import Evaluation

logger = logging.getLogger(__name__)

SHOW_S = 1.0
"""Seconds between two looks at the progress of a run: looking takes time of the training, on a small machine."""
CANCEL_S = 30.0
"""Seconds that a resumption waits for the end of a job that was cancelled just before."""


class Run(RunFacts):
    """A run: everything it left on disk, and what can be done with it.

    It only reads the run's folder, so any number of kernels can hold the same run.
    """

    # -- what can be done with it

    def wait(self, timeout_s: float | None = None) -> Run:
        """Wait for the training to end, showing progress. An interrupt stops the waiting, never the run.

        Raises:
            RunError: The training did not complete; names the log and the next call.
            TimeoutError: It goes on after ``timeout_s`` seconds.
        """
        from rlnb.curves.progress import progress

        deadline = time.monotonic() + timeout_s if timeout_s is not None else None
        last_show = float("-inf")
        with progress(self) as show:
            while (state := self.state) not in ENDED:
                if time.monotonic() - last_show > SHOW_S:
                    show()
                    last_show = time.monotonic()
                if deadline is not None and time.monotonic() > deadline:
                    raise TimeoutError(f"{self.id} is still {state} after {timeout_s} s. It goes on.")
                time.sleep(POLL_S)
            show()
        raise_unless_completed(self._record, self._record.training)
        return self

    def cameras(
        self,
        cameras: Sequence[str] | None = None,
        *,
        data_types: Sequence[str] | None = None,
        num_envs: int = 9,
        size: tuple[int, int] = (160, 120),
        share: float = 0.04,
    ) -> LiveView | Image:
        """Show what the cameras of this training see, live, without stopping it.

        Pictures are taken only while a page shows them, between two env steps, and as often as ``share`` allows. In a
        report there is one picture. Works wherever this folder can be seen from, on a cluster too.

        Args:
            cameras: Names of the task's cameras; None is all. A task without any is filmed by one that follows its
                robots (rgb; physics by Newton).
            data_types: Isaac Lab's names, of those that the cameras render in this training; None is all of them.
            num_envs: The first so many envs are shown.
            size: Width and height of a camera that is added, in pixels.
            share: Largest part of the training's time that pictures may take.

        Raises:
            RlnbError: The run has ended, or the arguments are wrong.
        """
        from rlnb.cameras.live import watch_cameras

        return watch_cameras(self, cameras or (), data_types or (), num_envs, size, share)

    def camera_feed(
        self,
        cameras: Sequence[str] = (),
        *,
        data_types: Sequence[str] = (),
        num_envs: int = 9,
        size: tuple[int, int] = (160, 120),
        share: float = 0.04,
    ) -> CameraFeed:
        """Return the same for a page of one's own: call its ``still_looking()`` every second and ``newest()`` at will.

        The arguments are those of :meth:`cameras`.
        """
        from rlnb.cameras.live import CameraFeed

        return CameraFeed(self, cameras, data_types, num_envs, size, share)

    def resume(
        self, *, max_iterations: int | None = None, checkpoint: str | Path | None = None, trust: bool = False
    ) -> Run:
        """Go on from a checkpoint as a further job of this run; the curves become one.

        Args:
            max_iterations: Iteration to end at; None keeps that of the job before.
            checkpoint: Where to start; None is the last one.
            trust: Whether to load a checkpoint that holds more than weights.

        Raises:
            RunError: It still runs, there is no checkpoint, or nothing is left to do.
        """
        from rlnb.run import jobs

        self._let_cancel_end()
        if self.state not in ENDED:
            raise RunError(f"{self.id} is still {self.state}. Wait for it, or cancel it: run.cancel()")
        if max_iterations is not None and (not isinstance(max_iterations, int) or max_iterations < 1):
            raise RunError(f"max_iterations={max_iterations!r} is not a positive whole number.")
        jobs.start_job(self._record, "train", self.what_is_left(max_iterations, checkpoint, trust))
        return self

    def what_is_left(
        self, max_iterations: int | None = None, checkpoint: str | Path | None = None, trust: bool = False
    ) -> TrainOptions:
        """Return the options of a further training job; the arguments are those of :meth:`resume`.

        Raises:
            RunError: There is no checkpoint, or nothing is left to do.
        """
        start = checkpoint_of(self._record, checkpoint)
        done, started, training = self.progress[0], self._record.last_started, self._record.training
        limit = max_iterations or (options_of(TrainOptions, training.folder).max_iterations if training else None)
        total = limit or (started.max_iterations if started else 0)
        # What was cancelled or failed goes back to its last checkpoint, and may end before where it was.
        reached = max((iteration for iteration in self.checkpoints.iterations if iteration is not None), default=0)
        nothing_left = total <= (done if self.state == "completed" else reached)
        if total < 1 or (checkpoint is None and nothing_left):
            raise RunError(
                f"{self.id} has finished {done} iterations, and is to end at {total}: nothing is left to do. "
                f"run.resume(max_iterations={2 * done or 150})"
            )
        # The manifest's number may be less: the run may have been extended before.
        return TrainOptions(checkpoint=start, trust=trust, max_iterations=total)

    def _let_cancel_end(self) -> None:
        """Wait until what was cancelled has ended, which takes it a moment."""
        deadline = time.monotonic() + CANCEL_S
        training = self._record.training
        while training and training.folder.cancel.exists() and self.state not in ENDED and time.monotonic() < deadline:
            time.sleep(0.05)

    def evaluate(
        self,
        episodes: int = 100,
        *,
        num_envs: int | None = None,
        seed: int = 1000,
        checkpoint: str | Path | None = None,
        trust: bool = False,
        deterministic: bool = True,
        video: bool = False,
        camera: str | None = None,
        record: int = 0,
    ) -> Evaluation:
        """Run whole episodes from reset; return their statistics.

        Every env runs the same number of episodes, so ``episodes`` is rounded up to a multiple of
        ``num_envs``: otherwise short episodes would count more often.

        Args:
            episodes: Episodes at least.
            num_envs: Envs side by side; None is ``min(episodes, 64)``.
            seed: Seed of the env, apart from the training's.
            checkpoint: Which one; None is the last.
            trust: Whether to load a checkpoint that holds more than weights.
            deterministic: Whether the policy takes its mean actions; else it samples them, as in training.
            video: Whether to film the first 4 envs, up to a minute. A camera renders all envs: few are faster.
            camera: Which of the task's cameras films; None is its first, or one that is added.
            record: Observations to keep with the policy's actions, one row per env and step; see
                :attr:`rlnb.Evaluation.rollout`.

        Raises:
            RunError: There is no checkpoint, or the evaluation failed.
        """
        from rlnb.records.evaluation import EvaluateOptions, evaluation_of

        if episodes < 1:
            raise RlnbError(f"episodes={episodes!r} is not a positive whole number.")
        library = plugins.library(self.manifest.library)
        if video and not library.simulator:
            raise RunError(f"{library.name} has no simulator, so there is nothing to film.")
        options = EvaluateOptions(
            episodes=episodes,
            num_envs=num_envs or min(episodes, 64),
            seed=seed,
            checkpoint=checkpoint_of(self._record, checkpoint),
            trust=trust,
            deterministic=deterministic,
            video=video,
            camera=camera,
            record=record,
        )
        evaluation = evaluation_of(do(self._record, "evaluate", options))
        assert evaluation is not None, "a completed evaluation has written its record"
        return evaluation

    def play(
        self,
        num_envs: int = 4,
        *,
        seed: int = 1000,
        checkpoint: str | Path | None = None,
        trust: bool = False,
        deterministic: bool = True,
        camera: str | None = None,
    ) -> Video:
        """Film the policy, an episode in each of a few envs; in a notebook the film plays inline.

        Args:
            num_envs: Envs, at most 4 of them in the picture.
            seed: Seed of the env.
            checkpoint: Which one; None is the last.
            trust: Whether to load a checkpoint that holds more than weights.
            deterministic: Whether the policy takes its mean actions; else it samples them.
            camera: Which of the task's cameras films; None is its first, or one that is added.
        """
        evaluation = self.evaluate(
            num_envs,
            num_envs=num_envs,
            seed=seed,
            checkpoint=checkpoint,
            trust=trust,
            deterministic=deterministic,
            video=True,
            camera=camera,
        )
        assert evaluation.video is not None, "it was filmed"
        return evaluation.video

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
        from rlnb.records.export import ExportOptions, files_of

        choices = plugins.library(self.library).exports
        for name in formats:
            if name not in choices:
                raise unknown("export format", name, choices, has=self.library)
        start = checkpoint_of(self._record, checkpoint)
        if not choices:
            raise RlnbError(f"{self.library} exports nothing: its networks have no TorchScript or ONNX form.")
        options = ExportOptions(formats=tuple(formats or choices), checkpoint=start, trust=trust)
        result = JobRecord(do(self._record, "export", options), self.manifest.launcher).result
        assert result is not None, "a completed export has written its result"
        return {file.format: file.path for file in files_of(result, self._record.folder)}

    # -- looking at it

    def watch(self, metrics: Sequence[str] | None = None, *, x: str = "frames") -> Any:
        """Show live curves until the run ends; see :func:`rlnb.watch`."""
        from rlnb.curves.live import watch

        return watch([self], metrics=metrics, x=x)

    def plot(self, metrics: Sequence[str] | None = None, *, x: str = "frames") -> Any:
        """Return the curves as a Plotly figure; see :func:`rlnb.curves.figure.figure`."""
        from rlnb.curves.figure import figure, with_picture

        return with_picture(figure([self], metrics=metrics, x=x))

    def report(self, path: str | Path | None = None, *, pdf: bool = False) -> Path:
        """Write a report as one self-contained HTML file; see :func:`rlnb.report`."""
        from rlnb.reports.report import report

        return report([self], path, pdf=pdf)

    def __repr__(self) -> str:
        return repr(self._record)

    def _repr_html_(self) -> str:
        from rlnb.display.table import table

        done, total = self.progress
        started = self.started
        rows = [
            ("task", self.task),
            ("library", self.library),
            ("state", self.state),
            ("iteration", f"{done} of {total}" if total else "-"),
            *[(name, f"{self.metrics.last(name):.4g}") for name in self.metrics.names],
            *[(f"{part} of the checkpoint", report) for part, report in (started.restored if started else {}).items()],
            ("folder", str(self.path)),
        ]
        return table(["", ""], rows, caption=self.id)
