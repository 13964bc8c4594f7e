"""The part of a library's contract that needs no simulator: registration, curves, seed, checkpoints and interruptions.

:class:`rlnb.testing.LibraryConformance` adds what Isaac Lab makes possible.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import rlnb
from rlnb.hooks import plugins
from rlnb.records.checkpoints import files_of
from rlnb.simulation.pool import pool
from rlnb.spec import ENDED, Json
from rlnb.testing.runs import learned, lives, measured, processes_of, until

FRESH_S = 1.0
"""Seconds within which a logged scalar must be readable."""
CANCEL_S = 5.0
"""Seconds within which all processes of a cancelled run must end, in addition to the length of an iteration."""
START_S = 300.0
"""Seconds that a simulator may take to start if it has to compile its kernels."""
FAIL_S = 30.0
"""Seconds within which a run whose worker was killed must be reported as failed."""
DELAYS = 5
"""Number of scalars whose delay is measured."""
STOPPING = "Call ctx.iteration_finished(save) after each iteration, or leave out Library.saves_when_stopped."
EPISODES = 16
"""Episodes of an evaluation."""
HEAVY = ("torch", "isaaclab", "tensorboard", "pandas")
"""Packages that the registration of a library must not import."""


class TrainingConformance:
    """Tests of a library's trainings, whether they need a simulator or not."""

    library: str
    """Name of the library under test."""
    task: str
    """Task that the library trains."""
    iterations: int = 6
    """Iterations of the short runs, enough for some episodes to end."""
    resume_iterations: int = 40
    """Iterations of the run that is killed and resumed. The run has to outlast its second checkpoint by a second."""
    cancel_iterations: int = 10_000
    """Iterations of the run that is cancelled. The run has to outlast a minute."""
    agent: Mapping[str, Json] = {}
    """Agent config values by dotted path, e.g. to write checkpoints often."""
    unlogged: frozenset[str] = frozenset()
    """Metric names that the library does not log, e.g. a loss of another algorithm."""
    nproc_per_node: int = 1
    """Ranks of each run, for a library whose ranks have roles. The ranks are compared if one of the roles has two."""

    @pytest.fixture(scope="class")
    @classmethod
    def root(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
        """Provide a folder for runs, a separate queue and a warm simulator for the class."""
        folder = tmp_path_factory.mktemp("conformance")
        patch = pytest.MonkeyPatch()
        patch.setenv("RLNB_QUEUE", str(folder / "queue"))
        patch.setattr(rlnb.options, "root", folder / "rlnb-runs")
        patch.setattr(rlnb.options, "warm", True)
        yield folder / "rlnb-runs"
        for run in rlnb.runs():
            run.cancel()
        pool.shut_down()
        patch.undo()

    @classmethod
    def training_inputs(cls) -> Mapping[str, rlnb.Run | Path]:
        """Return the inputs of each run by name, for a library that needs some, such as a teacher.

        It is called for each run, after :meth:`root` has set the folder for runs. Override it, and train a teacher at
        the first call only.
        """
        return {}

    @classmethod
    def train(cls, iterations: int, **arguments: Any) -> rlnb.Run:
        """Start a run; ``arguments`` are passed on to :func:`rlnb.train`."""
        usual = {
            "agent": dict(cls.agent),
            "inputs": cls.training_inputs() or None,
            "nproc_per_node": cls.nproc_per_node,
        }
        return rlnb.train(cls.task, library=cls.library, max_iterations=iterations, **{**usual, **arguments})

    @pytest.fixture(scope="class")
    @classmethod
    def trained(cls, root: Path) -> rlnb.Run:
        """Provide a short run that has completed."""
        return cls.train(cls.iterations).wait(timeout_s=START_S)

    @pytest.fixture(scope="class")
    @classmethod
    def repeated(cls, root: Path) -> rlnb.Run:
        """Provide the short run once more."""
        return cls.train(cls.iterations).wait(timeout_s=START_S)

    @pytest.fixture(scope="class")
    @classmethod
    def other(cls, root: Path) -> rlnb.Run:
        """Provide a short run with another seed."""
        return cls.train(cls.iterations, seed=7).wait(timeout_s=START_S)

    @pytest.fixture(scope="class")
    @classmethod
    def from_weights(cls, trained: rlnb.Run) -> rlnb.Run:
        """Provide a short run that started from the weights of the first one."""
        return cls.train(cls.iterations, init_from=trained).wait(timeout_s=START_S)

    # -- registration

    def test_registration_is_light(self) -> None:
        """Listing the library imports no heavy package."""
        code = (
            "import sys; from rlnb.hooks import plugins; "
            f"assert {self.library!r} in plugins.libraries(); "
            f"print([name for name in {HEAVY!r} if name in sys.modules])"
        )
        output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert output.strip() == "[]", f"The plugin imports {output.strip()}. Import them in the backend only."

    # -- training

    def test_a_training_runs_the_requested_number_of_iterations(self, trained: rlnb.Run) -> None:
        """The run completes, and ends at the iteration that was requested."""
        started = trained.started
        assert started is not None
        assert trained.state == "completed"
        assert started.max_iterations == trained.progress[0] == self.iterations, (
            f"{self.iterations} iterations were requested, {started.max_iterations} reported by ctx.started, and "
            f"{trained.progress[0]} logged. End at ctx.max_iterations."
        )

    def test_a_checkpoint_is_named_after_its_last_iteration(self, trained: rlnb.Run) -> None:
        """The last checkpoint has the last iteration in its name, and no name is of an iteration that was not made."""
        checkpoints = trained.checkpoints
        assert checkpoints, "No checkpoint was written, or Library.checkpoint_glob does not match it."
        numbers = [number for number in checkpoints.iterations if number is not None]
        assert numbers, f"Library.checkpoint_pattern matches none of {[path.name for path in checkpoints]}."
        assert max(numbers) == self.iterations - 1, (
            f"By their names, the checkpoints are of the iterations {numbers}, but the last one was "
            f"{self.iterations - 1}. Save one at the end, and see Library.checkpoint_iteration."
        )

    def test_every_metric_of_the_library_is_logged_once_in_each_iteration(self, trained: rlnb.Run) -> None:
        """The x axes of the curves, iterations and frames, are those that ``ctx.started`` reports."""
        names = trained.metrics.names
        missing = ", ".join(sorted({*plugins.library(self.library).metrics} - {*names} - self.unlogged))
        assert not missing, (
            f"These metrics are not logged in {self.iterations} iterations: {missing}. Correct their tags in "
            "Library.metrics, set `iterations` higher if no episode ended, or list them in `unlogged`."
        )
        for name in names:
            assert np.isfinite(trained.metrics[name].values).all(), f"{name} has values that are not finite."
        self.assert_axes(trained)

    def assert_axes(self, run: rlnb.Run) -> None:
        """Assert that the curve of a complete run has one value per iteration, at the right iterations and frames."""
        started, curve = run.started, run.metrics[self.curve(run)]
        assert started is not None
        iterations = started.max_iterations
        frames = started.horizon * started.num_envs
        assert curve.iterations == pytest.approx(range(iterations)), (
            f"The curve has values at the iterations {curve.iterations[:9]}, not one at each of 0 to {iterations - 1}. "
            "Log iteration k at its own step of Library.step_unit, also after a resume, and correct ctx.started: "
            f"frames_per_step, or the {started.horizon} env steps of {started.num_envs} envs in an iteration."
        )
        assert curve.frames == pytest.approx([frames * (index + 1) for index in range(iterations)])

    @classmethod
    def curve(cls, run: rlnb.Run) -> str:
        """Return the name of a metric with a value in each iteration."""
        mapped = [name for name in ("fps", *plugins.library(cls.library).metrics) if name in run.metrics.names]
        assert mapped, f"None of the tags in Library.metrics is logged. There are {run.metrics.tags}."
        return max(mapped, key=lambda name: len(run.metrics[name]))

    def test_the_seed_decides_what_is_learned(self, trained: rlnb.Run, repeated: rlnb.Run, other: rlnb.Run) -> None:
        """The same seed gives the same curves, and another seed gives others."""
        keys = [key for key, argument in plugins.library(self.library).overruled.items() if argument == "seed"]
        assert {other.config.get(f"agent.{key}", 7) for key in keys} <= {7}, "the config names another seed"
        assert learned(repeated) == learned(trained), (
            "Two runs with one seed differ. Take every random number from a generator that ctx.seed seeds."
        )
        assert learned(other) != learned(trained), "Runs with the seeds 42 and 7 are equal. Use ctx.seed."

    # -- evaluation

    @classmethod
    def evaluate(cls, run: rlnb.Run, **arguments: Any) -> rlnb.results.Evaluation:
        """Evaluate a run in a few episodes; ``arguments`` are passed on to :meth:`rlnb.Run.evaluate`."""
        return run.evaluate(episodes=EPISODES, **arguments)

    @pytest.fixture(scope="class")
    @classmethod
    def evaluated(cls, trained: rlnb.Run) -> rlnb.results.Evaluation:
        """Provide an evaluation of the short run."""
        return cls.evaluate(trained)

    def test_an_evaluation_is_repeatable_and_changes_nothing(
        self, trained: rlnb.Run, evaluated: rlnb.results.Evaluation
    ) -> None:
        """The same seed gives the same returns, the checkpoints stay as they are, and no file is left here."""
        beside, before = {*Path.cwd().iterdir()}, digests(trained)
        repeat = self.evaluate(trained)
        assert measured(repeat) == pytest.approx(measured(evaluated), rel=1e-3), (
            "Two evaluations with one seed have different returns. Use the seed that `evaluate` is given, "
            "act in eval mode, and learn nothing: neither weights nor the statistics of a normaliser."
        )
        differences = sorted(name for name, _ in digests(trained) ^ before)
        assert not differences, f"An evaluation has written {differences}. Only a training writes checkpoints."
        assert not (new := {*Path.cwd().iterdir()} - beside), f"written into the working folder meanwhile: {new}"

    def test_an_evaluation_uses_its_checkpoint(
        self, trained: rlnb.Run, other: rlnb.Run, evaluated: rlnb.results.Evaluation
    ) -> None:
        """The policy of another run, or of an earlier iteration, has other returns."""
        checkpoints = (other.checkpoints[-1], trained.checkpoints[0])
        returns = [measured(self.evaluate(trained, checkpoint=path)) for path in checkpoints]
        assert any(values != pytest.approx(measured(evaluated), rel=1e-3) for values in returns), (
            "Different checkpoints have the same returns. Load the one that `evaluate` or `load_policy` is given."
        )

    # -- interruptions

    def test_scalars_are_readable_at_once_and_cancel_ends_every_process(self, root: Path) -> None:
        """A logged scalar is in ``run.metrics`` within a second. Cancelling ends every process and loses nothing."""
        run = self.train(self.cancel_iterations, warm=False)  # an adopted warm simulator would be given back
        until(lambda: run.metrics.names or run.state in ENDED, START_S, "the first scalar")
        name = self.curve(run)
        delays: list[float] = []
        count = len(run.metrics[name])
        while len(delays) < DELAYS:
            assert run.state == "running", (
                f"The run is {run.state} before it is cancelled. Set cancel_iterations higher."
            )
            points = run.metrics[name].points
            if len(points) > count:
                delays.append(time.time() - points[-1][1])
                count = len(points)
            time.sleep(0.05)
        processes = processes_of(run)
        end_s = CANCEL_S + longest_iteration_s(run.metrics[name].points)
        run.cancel()
        stopping = STOPPING if plugins.library(self.library).saves_when_stopped else ""
        until(lambda: not any(map(lives, processes)), end_s, "the end of the cancelled run's processes", stopping)
        assert max(delays) < FRESH_S, f"A scalar was readable after {max(delays):.1f} s. Flush after each iteration."
        assert run.state == "cancelled"
        self.assert_saved(run)

    def assert_saved(self, run: rlnb.Run) -> None:
        """Assert that a cancelled run has a checkpoint of its last iteration, if the library saves when stopped."""
        if not plugins.library(self.library).saves_when_stopped:
            return
        last = run.metrics[self.curve(run)].iterations[-1]
        saved = max((number for number in run.checkpoints.iterations if number is not None), default=None)
        assert saved == pytest.approx(last), (
            f"The cancelled run has logged iteration {last:g}, but its last checkpoint is of {saved}. {STOPPING}"
        )

    def test_a_killed_run_resumes_with_its_whole_state(self, root: Path) -> None:
        """After SIGKILL the run continues from its last checkpoint, without a gap in the curves, or is refused to."""
        run = self.train(self.resume_iterations)
        until(lambda: len(run.checkpoints) >= 2 or run.state in ENDED, START_S, "the second checkpoint")
        self.kill(run)
        until(lambda: run.state in ENDED, FAIL_S, "the end of the killed run")
        assert run.state == "failed", f"The run is {run.state} before it is killed. Set resume_iterations higher."
        if not plugins.library(self.library).resumes:
            with pytest.raises(rlnb.RunError, match="cannot resume"):
                run.resume()
            return
        run.resume()
        run.wait(timeout_s=START_S)
        started = run.started
        assert started is not None
        assert 0 < started.first_iteration < self.resume_iterations, (
            f"The resumed training starts at iteration {started.first_iteration}. Load ctx.checkpoint, and report the "
            "iteration after it as first_iteration."
        )
        self.assert_axes(run)
        self.assert_restored(run)

    @staticmethod
    def kill(run: rlnb.Run) -> None:
        """Kill the training of a run with SIGKILL, but not its agent."""
        with contextlib.suppress(psutil.NoSuchProcess):  # the run has ended
            processes_of(run)[-1].kill()

    def assert_restored(self, run: rlnb.Run) -> None:
        """Assert that a resumed run has the curves of one that was never interrupted."""
        whole = self.train(self.resume_iterations).wait(timeout_s=START_S)
        assert learned(run) == learned(whole), (
            "The resumed run differs from one that was never interrupted. Save and restore the weights, the optimiser, "
            "the state of the env and the random numbers (rlnb.backend.random_state)."
        )

    def test_a_run_starts_from_the_weights_of_another(self, trained: rlnb.Run, from_weights: rlnb.Run) -> None:
        """``init_from`` takes another run's weights but starts at iteration 0; the manifest names that run."""
        assert from_weights.manifest.parent == trained.id
        assert from_weights.progress == (self.iterations, self.iterations)
        self.assert_axes(from_weights)
        assert learned(from_weights) != learned(trained), (
            "The run started from fresh weights. Load the weights in ctx.init_from."
        )


def digests(run: rlnb.Run) -> set[tuple[str, str]]:
    """Return the name and the digest of each file of a run's checkpoints."""
    return {
        (str(path.relative_to(run.path)), hashlib.sha256(path.read_bytes()).hexdigest())
        for checkpoint in run.checkpoints
        for path in files_of(checkpoint)
    }


def longest_iteration_s(points: Sequence[Sequence[float]]) -> float:
    """Return the longest time between two points of a curve, in seconds.

    Args:
        points: Points whose second number is their wall time, in seconds.
    """
    return max(after[1] - before[1] for before, after in itertools.pairwise(points))
