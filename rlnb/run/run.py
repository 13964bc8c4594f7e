"""``rlnb.Run``: the record of a run, and the verbs on it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rlnb.contracts.launchers import MirrorLauncher
from rlnb.display.links import LinkedPaths
from rlnb.errors import RlnbError, RunError
from rlnb.hooks import plugins
from rlnb.jobs.alerts import follow
from rlnb.jobs.cancellation import cancel
from rlnb.jobs.jobs import do, raise_unless_completed, say_where, what_is_left
from rlnb.records.facts import RunFacts, checkpoint_of, differences
from rlnb.records.options import ExportOptions, env_mode, export_files_of, formats_of
from rlnb.records.record import JobRecord
from rlnb.records.remote import REMOTE
from rlnb.records.source_diff import SourceDiff, source_diff
from rlnb.run.guesses import GuidedRun
from rlnb.run.waiting import wait_for
from rlnb.simulation.placement import takes_launcher
from rlnb.spec import ENDED, EnvMode, Task
from rlnb.storage.files import whole
from rlnb.training.arguments import TrainArguments, split_alerts
from rlnb.training.create import refuse, train_array
from rlnb.training.plan import make_plan
from rlnb.training.repeat import request_of, seeds_of
from rlnb.training.start import start
from rlnb.version import deprecated

if TYPE_CHECKING:
    import pandas as pd
    from PIL.Image import Image

    from rlnb.accounting.goodput import Goodput
    from rlnb.cameras.live import CameraFeed
    from rlnb.contracts.launchers import Launcher
    from rlnb.curves.tensorboard import TensorBoard
    from rlnb.diagnosis.diagnosis import Diagnosis
    from rlnb.display.live_pictures import LiveView
    from rlnb.interactive.replay import Replay
    from rlnb.manifests.job import Document
    from rlnb.manifests.render import Form
    from rlnb.records.evaluation import Evaluation
    from rlnb.records.video import Video

CANCEL_S = 30.0
"""Seconds that ``resume`` waits for a job that was just cancelled to end."""


class Run(GuidedRun, RunFacts):
    """A run: everything in its folder, and the verbs on it.

    Its state is read from the folder, so any number of kernels can hold the same run.
    """

    # -- verbs

    def wait(self, timeout_s: float | None = None, *, check: bool = False) -> Run:
        """Wait for the training to end, and show its progress. An interrupt ends the wait, never the run.

        Args:
            timeout_s: Seconds to wait; None waits for as long as it takes.
            check: Whether to raise if the training was cancelled. By default, a cancelled training has ended as its
                user wished, and nothing is raised.

        Raises:
            RunError: The training failed, was lost, reached its walltime, or was cancelled and ``check`` is True. The
                message names the log and a suitable next call.
            TimeoutError: The training has not ended after ``timeout_s`` seconds; it continues.
        """
        wait_for([self], timeout_s)
        self.raise_unless_completed(check=check)
        return self

    def raise_unless_completed(self, *, check: bool = False) -> None:
        """Raise if the ended training did not complete.

        Args:
            check: Whether to raise if it was cancelled, too.

        Raises:
            RunError: As for :meth:`wait`.
        """
        if check or self.state != "cancelled":
            raise_unless_completed(self._record, self._record.training)

    def wait_for_completion(self, timeout_s: float | None = None) -> Run:
        """Wait with ``wait(check=True)``, which has taken the place of this method. Version 0.3 drops it."""
        deprecated("run.wait_for_completion()", "run.wait(check=True)")
        return self.wait(timeout_s, check=True)

    def cameras(
        self,
        cameras: Sequence[str] | None = None,
        *,
        data_types: Sequence[str] | None = None,
        num_envs: int = 9,
        size: tuple[int, int] = (160, 120),
        share: float = 0.04,
        eye: Sequence[float] | None = None,
        target: Sequence[float] | None = None,
    ) -> LiveView | Image:
        """Show live camera frames of this training without stopping it.

        Frames are rendered only while a viewer is open, between two env steps, and as often as ``share`` allows. A
        report shows a single frame. This works on any machine that sees the run's folder, also for cluster jobs.

        Args:
            cameras: Names of the task's cameras; None is all. For a task without cameras, one is added that follows
                its robots (rgb, with Newton or OvPhysX).
            data_types: Isaac Lab's names of data types that the cameras render in this training; None is all.
            num_envs: Number of envs to show, from the first.
            size: Width and height of an added camera, in pixels.
            share: Largest share of the training's time, 0 to 1, that rendering and writing frames may take.
            eye: Position of an added camera in the frame of each env, in metres. None shows the robots whole.
            target: Point in the middle of its picture, in the same frame; None is the middle of the robots.

        Raises:
            RlnbError: The run has ended, or the arguments are wrong.
        """
        from rlnb.cameras.live import watch_cameras

        return watch_cameras(self, cameras or (), data_types or (), num_envs, size, share, eye, target)

    def camera_feed(
        self,
        cameras: Sequence[str] | None = None,
        *,
        data_types: Sequence[str] | None = None,
        num_envs: int = 9,
        size: tuple[int, int] = (160, 120),
        share: float = 0.04,
        eye: Sequence[float] | None = None,
        target: Sequence[float] | None = None,
    ) -> CameraFeed:
        """Return the frames of :meth:`cameras` for a custom viewer, with the same arguments.

        The viewer calls ``still_looking()`` every second, and ``newest()`` at any time.
        """
        from rlnb.cameras.live import CameraFeed

        return CameraFeed(self, cameras or (), data_types or (), num_envs, size, share, eye, target)

    def fetch(self, checkpoint: str | Path | None = None) -> Path:
        """Return the path of a checkpoint on this machine, after copying it from the machine of the run if necessary.

        Its companions, such as a replay buffer, are copied with it.

        Args:
            checkpoint: Name or path of the checkpoint; None is the last.

        Raises:
            RlnbError: The other machine cannot be reached, or no longer has the checkpoint.
        """
        path = self.path / checkpoint_of(self._record, checkpoint)
        if path in self.checkpoints.remote:
            launcher = plugins.launcher_of(self.manifest)
            if not isinstance(launcher, MirrorLauncher):
                raise RunError(f"{self.id} was not made by a launcher of another machine. Move {REMOTE} away.")
            paths = self.checkpoints.remote_files(path)
            launcher.fetch(self.path, [path.relative_to(self.path).as_posix() for path in paths])
        return path

    def cancel(self, *, save_s: float = 25.0) -> Self:
        """Ask every unfinished job of the run to end, and return at once. The checkpoints are kept.

        The jobs of a lost run leave the cluster's queue. A training finishes its iteration and saves a checkpoint
        first, if its library can. Does not stop a job in the warm simulator: interrupt the cell that waits for that
        job instead.

        Of a run of another user, only the request is written, where that is possible: its records name the entries of
        the queue, and could name any job of this user.

        Args:
            save_s: Seconds after which a training is ended even if it has not saved; 0 ends it at once.

        Raises:
            RlnbError: ``save_s`` is not a number of seconds, the records of the job are malformed, or its queue does
                not answer.
            RunError: The run belongs to another user, and no request can be written.
        """
        cancel(self._record, save_s)
        return self

    def resume(
        self, *, max_iterations: int | None = None, checkpoint: str | Path | None = None, trust: bool = False
    ) -> Run:
        """Continue the training from a checkpoint, as a new job of this run whose curves extend the earlier ones.

        Args:
            max_iterations: Iteration to end at; None keeps that of the previous job.
            checkpoint: Checkpoint to start from; None is the last. The iterations after an older one are trained again,
                and later checkpoints no longer count as the run's (``run.checkpoints.abandoned``).
            trust: Whether to act on a run of another user, and to load a checkpoint that holds more than weights.

        Raises:
            RunError: The training has not ended, another process has just resumed it, its library cannot resume, it has
                no checkpoint, or no iterations are left.
        """
        from rlnb.jobs import jobs

        self._let_cancel_end()
        training = self._record.training  # looked up before its state is: a later one is found when this one is claimed
        if self.state not in ENDED:
            raise RunError(f"{self.id} is still {self.state}. Wait for it, or cancel it: run.cancel()")
        max_iterations = whole(max_iterations)
        if max_iterations is not None and (not isinstance(max_iterations, int) or max_iterations < 1):
            raise RunError(f"max_iterations={max_iterations!r} is not a positive whole number. Use max_iterations=150.")
        rest = what_is_left(self, max_iterations, checkpoint, trust)
        done = self.progress[0]
        jobs.start_job(self._record, "train", rest, after=training)
        if self.manifest.alerts:
            follow(self, {})
        say_where(self, rest, done)
        return self

    def rerun(self, **changes: Any) -> Run:
        """Start the training again as a new run, with the code, config, versions and seed of this one.

        ``run.rerun()`` is ``rlnb.train(like=run)``, and ``changes`` are its other arguments, such as ``seed=2``.

        Raises:
            RunError: The run cannot be repeated: its copy of the task's module is gone, or it is another user's.
            CheckError: The training would fail. Nothing was written.
        """
        if seeds_of(changes) is not None:
            raise RlnbError(f"run.rerun() starts one run. Use rlnb.train(like=run, seed={changes['seed']!r}).")
        return start_each([_request(like=self, **changes)])[0]

    def _let_cancel_end(self) -> None:
        """Wait for a cancelled training to end, which takes a moment."""
        deadline = time.monotonic() + CANCEL_S
        training = self._record.training
        while training and training.folder.cancel.exists() and self.state not in ENDED and time.monotonic() < deadline:
            time.sleep(0.05)

    @takes_launcher
    def evaluate(
        self,
        episodes: int = 100,
        *,
        num_envs: int | None = None,
        seed: int = 1000,
        checkpoint: str | Path | None = None,
        trust: bool = False,
        deterministic: bool = True,
        mode: EnvMode | None = None,
        video: bool = False,
        camera: str | None = None,
        record: int = 0,
        launcher: Launcher | None = None,
    ) -> Evaluation:
        """Run complete episodes from reset and return their statistics.

        Every env runs the same number of episodes, because short episodes would otherwise count too often.
        ``episodes`` is therefore rounded up to a multiple of ``num_envs``.

        Args:
            episodes: Least number of episodes.
            num_envs: Number of parallel envs; None is ``min(episodes, 64)``, or none without a simulator.
            seed: Seed of the env, independent of the training's.
            checkpoint: Checkpoint to evaluate; None is the last.
            trust: Whether to act on a run of another user, and to load a checkpoint that holds more than weights.
            deterministic: Whether the policy takes its most likely actions; otherwise it samples them, as in training.
            mode: ``"play"`` (None) for the env after Isaac Lab's ``play_mode()``, mostly without noise and pushes;
                ``"train"`` for the env of the training.
            video: Whether to record up to a minute of the first 4 envs. A camera renders all envs, so few envs are
                faster.
            camera: Which of the task's cameras to use; None is its first, or an added one if the task has none.
            record: Number of rows of observations and actions to keep, one row per env and step; see
                :attr:`rlnb.results.Evaluation.rollout`.
            launcher: Launcher whose job holds the simulator; None is ``rlnb.options.simulator``.

        Raises:
            RunError: The run has no checkpoint, or the evaluation failed.
        """
        from rlnb.records import evaluation as evaluations

        episodes, num_envs, seed, record = map(whole, (episodes, num_envs, seed, record))
        evaluations.refuse_odd_numbers(episodes, num_envs, seed, record)
        library = plugins.library(self.manifest.library)
        if not library.simulator:
            settings = {"num_envs": num_envs, "mode": mode, "video": video, "camera": camera, "record": record}
            evaluations.refuse_settings_of_envs(library.name, **settings)
        options = evaluations.EvaluateOptions(
            episodes=episodes,
            num_envs=num_envs or min(episodes, 64),
            seed=seed,
            checkpoint=checkpoint_of(self._record, checkpoint),
            trust=trust,
            deterministic=deterministic,
            mode=env_mode(mode),
            video=video,
            camera=camera,
            record=record,
        )
        evaluations.say_rounding(episodes, options.num_envs if library.simulator else 1)
        evaluation = evaluations.evaluation_of(do(self._record, "evaluate", options))
        assert evaluation is not None, "a completed evaluation has written evaluation.json"
        return evaluation

    def play(
        self,
        num_envs: int = 4,
        *,
        seed: int = 1000,
        checkpoint: str | Path | None = None,
        trust: bool = False,
        deterministic: bool = True,
        mode: EnvMode | None = None,
        camera: str | None = None,
        launcher: Launcher | None = None,
    ) -> Video:
        """Record a video of the policy, with one episode in each of a few envs; a notebook plays it inline.

        Args:
            num_envs: Number of envs, of which the video shows at most 4.
            seed: Seed of the env.
            checkpoint: Checkpoint to play; None is the last.
            trust: Whether to act on a run of another user, and to load a checkpoint that holds more than weights.
            deterministic: Whether the policy takes its most likely actions; otherwise it samples them.
            mode: As in :meth:`evaluate`.
            camera: Which of the task's cameras to use; None is its first, or an added one if the task has none.
            launcher: Launcher whose job holds the simulator; None is ``rlnb.options.simulator``.
        """
        evaluation = self.evaluate(
            num_envs,
            num_envs=num_envs,
            seed=seed,
            checkpoint=checkpoint,
            trust=trust,
            deterministic=deterministic,
            mode=mode,
            video=True,
            camera=camera,
            launcher=launcher,
        )
        assert evaluation.video is not None, "the evaluation was given video=True"
        return evaluation.video

    @takes_launcher
    def export(
        self,
        *formats: str,
        checkpoint: str | Path | None = None,
        trust: bool = False,
        mode: EnvMode | None = None,
        launcher: Launcher | None = None,
    ) -> dict[str, Path]:
        """Export the policy for deployment, including its normaliser, and return a dict of format to file.

        A multi-agent library exports one policy per agent, with the keys ``"<agent>/<format>"``. The output ``actions``
        has the actions of the deterministic policy, as they go to the env. The metadata of the files names the terms of
        a manager-based task's observations and actions in their order, the control rate and the run. See
        ``docs/exports.md``.

        Args:
            formats: ``"torchscript"``, ``"onnx"``; none for every format that the library supports.
            checkpoint: Checkpoint to export; None is the last.
            trust: Whether to act on a run of another user, and to load a checkpoint that holds more than weights.
            mode: Env whose observations and actions the policy fits, as in :meth:`evaluate`.
            launcher: Launcher whose job holds the simulator; None is ``rlnb.options.simulator``.

        Raises:
            RunError: The run has no checkpoint, or the export failed.
            NotFoundError: The library does not support such a format.
        """
        options = ExportOptions(
            checkpoint=checkpoint_of(self._record, checkpoint),
            formats=formats_of(plugins.library(self.library), formats),
            trust=trust,
            mode=env_mode(mode),
        )
        result = JobRecord(do(self._record, "export", options), self.manifest.launcher).result
        assert result is not None, "a completed export has written result.json"
        return LinkedPaths({file.format: file.path for file in export_files_of(result, self._record.folder)})

    def job_script(
        self,
        form: Form = "shell",
        *,
        python: str | None = None,
        image: str = "",
        claim: str = "",
        mount: str = "",
        cpus: int | None = None,
        memory_gib: int | None = None,
        env: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        queue: str = "",
        lines: Sequence[str] = (),
        template: Document | None = None,
    ) -> str:
        """Return a job script, a manifest or a command that starts the run on a cluster.

        The run has to be created with ``launcher=rlnb.injected(nodes=..., nproc_per_node=...)``.

        Only ``shell`` and ``sbatch`` have been tested on a live service.

        Args:
            form: ``"shell"``, the command to run on every node; ``"sbatch"``, a Slurm job script; ``"trainjob"``, a
                manifest for Kubeflow Trainer 2.2 and later; ``"pytorchjob"``, one for Kubeflow's older training
                operator; ``"osmo"``, a workflow of NVIDIA OSMO; ``"skypilot"``, a task of SkyPilot on Kubernetes;
                ``"dlc"``, the command that submits the job to PAI-DLC.
            python: Interpreter on the nodes; None is ``python`` in an image, and the current interpreter elsewhere.
            image: Container image with Isaac Lab, rlnb and the plugins; required for pods.
            claim: Volume that holds the run's folder: a persistent volume claim of Kubernetes, a volume of SkyPilot, or
                the id of a dataset of PAI.
            mount: Path at which pods mount the claim; empty is rlnb's root on this machine.
            cpus: Cores of each node; None is 8 for each GPU, or 2 for each rank without GPUs. In a Slurm script None is
                the site's default.
            memory_gib: Memory of each node, in GiB; None is 32 for each GPU, or 8 for each rank without GPUs.
            env: Further variables of the environment, such as those that accept a vendor's terms.
            secrets: Variables whose values are secrets: ``{"WANDB_API_KEY": "wandb/api-key"}`` names a secret and a key
                in it, of Kubernetes or OSMO. SkyPilot asks for the values at the launch.
            queue: Queue that admits the job: Slurm's partition, the queue of Kueue or Volcano, the pool of OSMO, or the
                resource quota of PAI.
            lines: Further lines of a Slurm script: options (``"--account=robots"``), and shell lines that run before
                it.
            template: Further fields, merged at any depth: into the pod template (``pytorchjob``, ``trainjob``), into
                the workflow (``osmo``), the task (``skypilot``) or the parameters of the command (``dlc``).

        Raises:
            RlnbError: The run has another launcher.
            CheckError: An argument is wrong, missing, or not used by the form.
            NotFoundError: The form does not exist.
        """
        from rlnb.manifests.render import render

        return render(
            self,
            form,
            python=python,
            image=image,
            claim=claim,
            mount=mount,
            cpus=cpus,
            memory_gib=memory_gib,
            env=env,
            secrets=secrets,
            queue=queue,
            lines=lines,
            template=template,
        )

    # -- display

    def diff(self, *others: Run) -> pd.DataFrame:
        """Return the arguments and config values in which this run differs from others; see :meth:`rlnb.Runs.diff`."""
        import pandas as pd

        runs = [self, *others]
        return pd.DataFrame.from_dict(differences(runs), orient="index", columns=[run.id for run in runs])

    def source_diff(self, other: Run) -> SourceDiff:
        """Return how the source of this run's task differs from that of another run, as a unified diff.

        The copies in the folders of the runs are compared, with the task's further files. A task of a package has none.
        """
        return source_diff(other.record, self.record)

    def watch(self, metrics: Sequence[str] | None = None, *, x: str = "frames") -> Any:
        """Show live curves until the run ends; see :func:`rlnb.watch`."""
        from rlnb.curves.live import watch

        return watch([self], metrics=metrics, x=x)

    def plot(self, metrics: Sequence[str] | None = None, *, x: str = "frames") -> Any:
        """Return the curves as a Plotly figure; see :func:`rlnb.curves.figure.figure`."""
        from rlnb.curves.figure import figure
        from rlnb.display.figures import with_picture

        return with_picture(figure([self], metrics=metrics, x=x))

    def diagnose(self) -> Diagnosis:
        """Return what the curves say about how the training learns: its symptoms, each with its numbers and a fix.

        The rules look at the standard deviation and the entropy of the policy, the KL divergence, the losses, the
        reward, its terms and the success, the episodes' length, the throughput and the memory. An empty diagnosis means
        that no rule has found anything, not that the training is good.
        """
        from rlnb.diagnosis.diagnosis import diagnose

        return diagnose(self)

    def goodput(self) -> Goodput:
        """Return where the time of the run went, and what it cost; see :meth:`rlnb.Runs.goodput`."""
        from rlnb.accounting.goodput import goodput

        return goodput(self)

    def tensorboard(self, *, reload_s: float = 5.0) -> TensorBoard:
        """Show TensorBoard for the run; see :meth:`rlnb.Runs.tensorboard`.

        Raises:
            RlnbError: TensorBoard does not start. The error contains its last lines of output.
        """
        from rlnb.curves.tensorboard import tensorboard

        return tensorboard(self, reload_s=reload_s)

    def replay(
        self,
        *,
        device: str | None = None,
        python: str | None = None,
        asset_root: str | None = None,
        trust: bool = False,
    ) -> Replay:
        """Repeat the last recorded steps of the training in which a value was not finite, or the steps around an alert.

        The env is made in the warm simulator, with the number of envs and the seed of the training, and brought into
        the recorded state. Each step uses the recorded actions and random numbers.

        Args:
            device: As in :func:`rlnb.train`; None is that of the run.
            python: Command of the worker's interpreter; None is the run's.
            asset_root: Folder or URL of robot assets; None is the run's.
            trust: Whether to replay a run of another user, whose code is executed.

        Raises:
            RlnbError: The run has no such record.
            WorkerError: The task's own code failed.
        """
        from rlnb.interactive.replay import replay

        return replay(self, device=device, python=python, asset_root=asset_root, trust=trust)

    def report(self, path: str | Path | None = None, *, pdf: bool = False) -> Path:
        """Write a report as one self-contained HTML file; see :func:`rlnb.report`."""
        from rlnb.reports.report import report

        return report([self], path, pdf=pdf)

    def __repr__(self) -> str:
        return repr(self._record)

    def overview(self) -> list[tuple[str, str]]:
        """Return what the run's table shows, in a notebook and elsewhere: a name and a text for each row."""
        from rlnb.curves.progress import rows

        return [*rows(self), ("folder", str(self.path))]

    def _repr_html_(self) -> str:
        from rlnb.display.table import table

        return table(["", ""], self.overview(), caption=f"{self.name} ({self.id})" if self.name else self.id)


def start_each(requests: Sequence[TrainArguments]) -> list[Run]:
    """Start trainings one after another, and return their runs at once.

    Rules of alerts that are functions are called in this process.

    Raises:
        CheckError: A training would fail. It lists the problems of all trainings; nothing was written.
        RlnbError: A training could not be started. A note of the error names those that were.
    """
    plans, runs = [make_plan(request) for request in requests], list[Run]()
    refuse(*plans)
    for request, plan in zip(requests, plans, strict=True):
        try:
            runs.append(_followed(start(plan, warm=request.warm), request))
        except BaseException as exc:
            if runs:
                exc.add_note(f"Already started: {', '.join(run.id for run in runs)}. To end them: run.cancel()")
            raise
    return runs


def start_runs(requests: Sequence[TrainArguments], *, at_once: int | None = None) -> list[Run]:
    """Start trainings as one array, and return their runs at once.

    Args:
        requests: The trainings, all with the same launcher.
        at_once: Largest number of trainings that run at once; None leaves it to the queue.

    Raises:
        CheckError: A training would fail. It lists the problems of all trainings; nothing was written.
        RlnbError: The array could not be started. Nothing is left of any run.
    """
    runs = train_array(requests, at_once=at_once)
    return [_followed(run, request) for run, request in zip(runs, requests, strict=True)]


def _request(task: Task | str | None = None, **arguments: Any) -> TrainArguments:
    """Return the request of a call with the arguments of :func:`rlnb.train`."""
    return request_of(task, arguments)


def _followed(new: RunFacts, request: TrainArguments) -> Run:
    """Return a new run. Its alerts are printed in this process, which also calls rules that are functions."""
    run = Run.of(new.record)
    if request.alerts:
        follow(run, split_alerts(request.alerts)[1])
    return run
