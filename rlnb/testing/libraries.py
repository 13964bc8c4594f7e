"""The contract of an RL library, as tests that a plugin's author runs with pytest::

    from rlnb.testing import LibraryConformance

    class TestMyLibrary(LibraryConformance):
        library = "my_library"

Isaac Lab itself trains a small task on this machine, which takes about seven minutes on two cores. The tests run in
the worker's interpreter and need ``pytest``, ``onnx`` and ``onnxruntime`` there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import rlnb
from rlnb import plugins
from rlnb.records.ranks import ranks_of
from rlnb.simulation import simulator
from rlnb.spec import METRICS, Json
from rlnb.testing.files import run_export, write_as_on_gpu

FRESH_S = 1.0
"""Seconds within which a logged scalar must be readable."""
CANCEL_S = 5.0
"""Seconds within which all processes of a cancelled run must end."""
START_S = 300.0
"""Seconds that a simulator may take to start if it has to compile its kernels."""
RATE_TOLERANCE = 0.3
"""Allowed relative difference between a logged rate and the wall clock. Short iterations are noisy."""
EXPORT_TOLERANCE = 1e-5
"""Allowed difference between the actions of a policy and of its export."""
BATCHES = (1, 64, 1000)
"""Numbers of recorded observations that an export takes at once."""
LOAD_TOLERANCE = 1e-6
"""Allowed difference between the actions of two loads of one checkpoint."""
LEARNED = ("reward", "policy_loss", "value_loss", "entropy", "action_std")
"""Metrics that depend on what was learned. The others depend on the clock, the task, or a schedule."""
HEAVY = ("torch", "isaaclab", "tensorboard", "pandas")
"""Packages that the registration of a library must not import."""

ACT = """
import copy, dataclasses, json, sys
from pathlib import Path
import torch
import rlnb
from rlnb import plugins
from rlnb.tasks.agent_config import choice_of
from rlnb.worker.isaac import isaaclab
from rlnb.worker.isaac.env import environment

manifest = rlnb.Run(Path(sys.argv[1])).manifest
library = plugins.library(manifest.library)
isaaclab.start(manifest.asset_root)
task = dataclasses.replace(manifest.task, num_envs=4)
observations = None
for checkpoint, seed in json.loads(sys.argv[2]):
    opened = environment(task, library, agent=choice_of(manifest), seed=seed, device="cpu", manifest=manifest)
    with opened as (env, agent_cfg):
        backend = plugins.load(library.backend)()
        policy = backend.load_policy(env, agent_cfg, Path(checkpoint), device="cpu", trust=False)
        own, _ = env.reset()
        observations = observations or copy.deepcopy(own)
        with torch.inference_mode():
            actions = policy(observations)
        parts = actions.values() if isinstance(actions, dict) else [actions]
        print("ACTIONS", json.dumps([part.tolist() for part in parts]), flush=True)
"""
"""Script that loads each checkpoint in a new env with the given seed and prints the policy's actions. All policies get
the observations of the first of these resets."""


class LibraryConformance:
    """Tests that every RL library must pass. Subclass it as ``Test...`` and set :attr:`library`."""

    library: str
    """Name of the library under test."""
    task: str = "Isaac-Cartpole-Direct"
    """Task with an agent config for the library."""
    num_envs: int = 16
    """Number of envs."""
    iterations: int = 6
    """Iterations of the short runs, enough for some episodes to end."""
    agent: Mapping[str, Json] = {}
    """Agent config values by dotted path, e.g. to write checkpoints often."""
    unlogged: frozenset[str] = frozenset()
    """Names in :data:`rlnb.spec.METRICS` that the library does not log, e.g. a loss of another algorithm."""
    optimiser: str = "optim"
    """Part of the key of the optimiser's state in a checkpoint; empty if checkpoints do not hold it."""

    @pytest.fixture(scope="class")
    @classmethod
    def root(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
        """Provide a folder for runs, a separate queue and a living simulator for the class."""
        folder = tmp_path_factory.mktemp("conformance")
        patch = pytest.MonkeyPatch()
        patch.setenv("RLNB_QUEUE", str(folder / "queue"))
        patch.setattr(rlnb.options, "root", folder / "rlnb-runs")
        patch.setattr(rlnb.options, "warm", True)
        yield folder / "rlnb-runs"
        for run in rlnb.runs():
            run.cancel()
        simulator.shut_down()
        patch.undo()

    @classmethod
    def train(cls, iterations: int, **arguments: Any) -> rlnb.Run:
        """Start a short run; ``arguments`` are passed on to :func:`rlnb.train`."""
        return rlnb.train(
            cls.task,
            library=cls.library,
            num_envs=cls.num_envs,
            max_iterations=iterations,
            agent=dict(cls.agent),
            device="cpu",
            **arguments,
        )

    @pytest.fixture(scope="class")
    @classmethod
    def trained(cls, root: Path) -> rlnb.Run:
        """Provide a short run that has completed."""
        return cls.train(cls.iterations).wait(timeout_s=START_S)

    @pytest.fixture(scope="class")
    @classmethod
    def other(cls, root: Path) -> rlnb.Run:
        """Provide a short run with another seed."""
        return cls.train(cls.iterations, seed=7).wait(timeout_s=START_S)

    # -- registration

    def test_registration_is_light(self) -> None:
        """Listing the library imports no heavy package."""
        code = (
            "import sys; from rlnb import plugins; "
            f"assert {self.library!r} in plugins.libraries(); "
            f"print([name for name in {HEAVY!r} if name in sys.modules])"
        )
        output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert output.strip() == "[]"

    def test_a_missing_requirement_is_named(self, root: Path, monkeypatch: Any) -> None:
        """A missing package is reported as one problem, with a pip command as its fix, before anything starts."""
        spec = plugins.library(self.library)
        assert spec.requires, "Library.requires must name the package, so that rlnb can report a missing one"
        package = spec.requires[0].split("[")[0].split("=")[0].split(">")[0].split("<")[0]
        card = rlnb.task_card(self.task)
        assert card.agents[self.library].missing == ()
        lacking = dataclasses.replace(card.agents[self.library], missing=(f"{package} (not installed)",))
        without = dataclasses.replace(card, agents={**card.agents, self.library: lacking})
        monkeypatch.setattr("rlnb.training.lookup.card_of", lambda *_: without)
        with pytest.raises(rlnb.CheckError, match=f"{package}.*\n.*pip install"):
            self.train(1)

    def test_an_unknown_agent_value_is_refused_with_the_closest_name(self, trained: rlnb.Run) -> None:
        """The names of agent config values are checked against the task's agent config."""
        field = next(iter(rlnb.task_card(self.task).agents[self.library].fields))
        with pytest.raises(rlnb.CheckError, match=f"{field}x.*{field}"):
            rlnb.train(self.task, library=self.library, agent={f"{field}x": 1}, device="cpu")

    def test_every_value_that_the_backend_changes_is_declared(self, trained: rlnb.Run) -> None:
        """``overruled`` and ``adapted`` name each value of the agent config that the backend has changed."""
        library = plugins.library(self.library)
        declared = [*library.overruled, *library.adapted]
        changes = trained.started.agent_changes if trained.started else {}
        silent = [path for path in changes if path not in declared]
        assert not silent, f"changed, but neither in Library.overruled nor in Library.adapted: {', '.join(silent)}"

    # -- training

    def test_a_training_runs_the_requested_number_of_iterations(self, trained: rlnb.Run) -> None:
        """The run completes and records its facts."""
        started = trained.started
        assert started is not None
        assert trained.state == "completed"
        assert trained.progress == (self.iterations, self.iterations)
        assert (started.num_envs, started.world_size) == (self.num_envs, 1)
        assert trained.checkpoints

    def test_every_metric_of_the_schema_is_logged(self, trained: rlnb.Run) -> None:
        """The library's own tags map to the common names, with common x axes."""
        names = set(trained.metrics.names)
        missing = ", ".join(sorted(set(METRICS) - names - self.unlogged))
        assert not missing, f"not logged: {missing}. Map them in Library.metrics, or list them in `unlogged`."
        started = trained.started
        assert started is not None
        per_iteration = started.horizon * started.num_envs
        expected = [per_iteration * (index + 1) for index in range(self.iterations)]
        assert trained.metrics["fps"].frames == pytest.approx(expected)
        assert trained.metrics["fps"].iterations == pytest.approx(range(self.iterations))
        for name in names:
            assert np.isfinite(trained.metrics[name].values).all(), name

    def test_the_logged_rate_agrees_with_the_wall_clock(self, trained: rlnb.Run) -> None:
        """The logged frames per second agree with the time between iterations."""
        fps, started = trained.metrics["fps"], trained.started
        assert started is not None
        seconds = np.diff(fps.wall_time_s)
        measured = started.horizon * started.num_envs / np.median(seconds)
        assert np.median(fps.values[1:]) == pytest.approx(measured, rel=RATE_TOLERANCE)

    def test_the_seed_reaches_the_policy_and_the_env(self, trained: rlnb.Run, other: rlnb.Run) -> None:
        """The same seed gives the same run. Another seed gives different first observations and a different curve."""
        keys = [key for key, argument in plugins.library(self.library).overruled.items() if argument == "seed"]
        assert {other.config.get(f"agent.{key}", 7) for key in keys} <= {7}, "the config names another seed"
        repeat = self.train(self.iterations).wait(timeout_s=START_S)
        assert _learned(repeat) == _learned(trained)
        assert _learned(other) != _learned(trained)
        assert _first_observations(repeat) == _first_observations(trained)
        assert _first_observations(other) != _first_observations(trained)

    # -- use of a policy
    def test_whole_episodes_are_evaluated(self, trained: rlnb.Run) -> None:
        """Evaluations run whole episodes, are repeatable, and write nothing into the working folder."""
        beside = set(Path.cwd().iterdir())
        evaluation = trained.evaluate(episodes=16, num_envs=8)
        assert evaluation.episodes == 16
        assert all(length > 0 for length in evaluation.lengths)
        repeat = trained.evaluate(episodes=16, num_envs=8)
        assert repeat.returns == pytest.approx(evaluation.returns, rel=1e-3), "same seed, different returns"
        elsewhere = trained.evaluate(episodes=16, num_envs=8, seed=7)
        assert elsewhere.returns != pytest.approx(evaluation.returns, rel=1e-3), "different seed, same returns"
        sampled = trained.evaluate(episodes=16, num_envs=8, deterministic=False)
        assert sampled.returns != pytest.approx(evaluation.returns, rel=1e-3)
        assert not (new := {*Path.cwd().iterdir()} - beside), f"written into the working folder meanwhile: {new}"

    def test_a_policy_has_the_weights_of_its_checkpoint(self, trained: rlnb.Run, other: rlnb.Run) -> None:
        """A checkpoint gives the same actions for any seed of the env; another run's checkpoint gives others."""
        last, foreign = trained.checkpoints[-1], other.checkpoints[-1]
        actions, repeat, different = _actions(trained, (last, 1), (last, 2), (foreign, 1))
        assert repeat == pytest.approx(actions, abs=LOAD_TOLERANCE), "the weights are not the checkpoint's"
        assert different != pytest.approx(actions, abs=LOAD_TOLERANCE), "another checkpoint gives the same actions"

    def test_exports_give_the_actions_of_the_policy(self, trained: rlnb.Run) -> None:
        """Every export is one file that gives the policy's actions on recorded observations, in any batch size."""
        formats = plugins.library(self.library).exports
        if not formats:
            with pytest.raises(rlnb.RlnbError, match="exports nothing"):
                trained.export()
            return
        rollout = np.load(str(trained.evaluate(episodes=8, num_envs=8, record=max(BATCHES)).rollout))
        exports = trained.export()
        agents = {key.removeprefix("actions.") for key in rollout if key.startswith("actions.")}
        assert set(exports) == {f"{agent}/{name}" for agent in agents for name in formats} if agents else set(formats)
        assert {*(trained.path / "exports").rglob("*.*")} == {*exports.values()}, "a policy is one file"
        for name, path in exports.items():
            agent, _, export_format = name.rpartition("/")
            kinds = ("obs.", "actions.") if agent else ("obs.policy", "actions")
            observations, actions = (rollout[f"{kind}{agent}"] for kind in kinds)
            for rows in BATCHES:
                exported = run_export(export_format, path, observations[:rows])
                np.testing.assert_allclose(exported, actions[:rows], atol=EXPORT_TOLERANCE, err_msg=name)

    def test_a_checkpoint_with_code_in_it_is_refused(self, trained: rlnb.Run, tmp_path: Path) -> None:
        """A pickle that would run code is not loaded without ``trust=True``."""
        import pickle

        class Evil:
            def __reduce__(self) -> tuple[Any, ...]:
                return (Path.touch, (tmp_path / "executed",))

        bad = tmp_path / trained.checkpoints[-1].name
        bad.write_bytes(pickle.dumps(Evil()))
        with pytest.raises(rlnb.RunError, match="trust=True"):
            trained.evaluate(episodes=1, checkpoint=bad)
        assert not (tmp_path / "executed").exists()

    # -- interruptions

    def test_scalars_are_readable_at_once_and_cancel_ends_every_process(self, root: Path) -> None:
        """A logged scalar is in ``run.metrics`` within a second, and cancelling ends every process."""
        run = self.train(10_000, warm=False)  # an adopted living simulator would be given back
        _until(lambda: run.state == "running", START_S)
        delays: list[float] = []
        count = len(run.metrics["fps"])
        while len(delays) < 5:
            points = run.metrics["fps"].points
            if len(points) > count:
                delays.append(time.time() - points[-1][1])
                count = len(points)
            time.sleep(0.05)
        processes = _processes(run)
        run.cancel()
        _until(lambda: not any(_lives(process) for process in processes), CANCEL_S)
        assert max(delays) < FRESH_S
        assert run.state == "cancelled"

    def test_a_killed_run_resumes_with_its_whole_state(self, root: Path) -> None:
        """After SIGKILL the run continues from its last checkpoint, without a gap in the curves."""
        run = self.train(40)
        _until(lambda: len(run.checkpoints) >= 2, START_S)
        _processes(run)[-1].kill()
        _until(lambda: run.state == "failed", 30.0)
        run.resume()
        run.wait(timeout_s=START_S)
        started = run.started
        assert started is not None
        assert 0 < started.first_iteration < 40
        assert self.optimiser in str(started.restored), (
            f"no {self.optimiser!r} among the parts of the checkpoint: {dict(started.restored)}. Set `optimiser`."
        )
        assert {report.split(":")[0] for report in started.restored.values()} == {"restored"}, started.restored
        assert run.metrics["fps"].iterations == pytest.approx(range(40)), "the curve has a gap or a repeated iteration"

    def test_a_checkpoint_of_a_gpu_is_used_on_this_machine(self, trained: rlnb.Run, other: rlnb.Run) -> None:
        """A checkpoint from a GPU that this machine lacks is evaluated, and its run continues from it."""
        checkpoint = other.checkpoints[-1]
        write_as_on_gpu(checkpoint)
        assert trained.evaluate(episodes=1, num_envs=1, checkpoint=checkpoint).episodes == 1
        other.resume(max_iterations=self.iterations + 1).wait(timeout_s=START_S)
        started = other.started
        assert started is not None
        assert started.first_iteration == self.iterations
        assert {report.split(":")[0] for report in started.restored.values()} == {"restored"}, started.restored

    def test_a_run_starts_from_the_weights_of_another(self, trained: rlnb.Run) -> None:
        """``init_from`` takes another run's weights but starts at iteration 0; the manifest names that run."""
        run = self.train(self.iterations, init_from=trained).wait(timeout_s=START_S)
        assert run.manifest.parent == trained.id
        assert run.progress == (self.iterations, self.iterations)
        assert _learned(run) != _learned(trained), "the run started from fresh weights"
        assert _first_observations(run) == _first_observations(trained), "same seed, different first observations"

    # -- several ranks

    def test_ranks_learn_as_one(self, root: Path) -> None:
        """Two ranks with different data end with equal parameters and statistics; unsynchronised ranks do not."""
        if not plugins.library(self.library).distributed:
            with pytest.raises(rlnb.CheckError, match="one process"):
                self.train(1, nproc_per_node=2)
            return
        proof = rlnb.verify_sync(
            self.task,
            library=self.library,
            num_envs=2 * self.num_envs,
            agent=self.agent,
            device="cpu",
            timeout_s=START_S,
        )
        assert proof.synchronised, proof.rows()


def _learned(run: rlnb.Run) -> dict[str, list[float]]:
    """Return the values of the metrics that depend on what was learned, by metric."""
    values = {name: list(run.metrics[name].values) for name in LEARNED if name in run.metrics.names}
    assert values, f"none of {', '.join(LEARNED)} is logged in {run.progress[0]} iterations. Set `iterations` higher."
    return values


def _first_observations(run: rlnb.Run) -> list[str]:
    """Return the digest of each rank's observations at the first reset."""
    ranks = ranks_of(run.jobs[0].result)
    assert ranks is not None, "the job's result has no digests of its ranks' observations"
    return list(ranks.observations)


def _actions(run: rlnb.Run, *loads: tuple[Path, int]) -> list[np.ndarray]:
    """Return each checkpoint's actions for the same observations. A load is a checkpoint and the seed of its env."""
    argv = [sys.executable, "-c", ACT, str(run.path), json.dumps([(str(path), seed) for path, seed in loads])]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=START_S)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    lines = [line.removeprefix("ACTIONS ") for line in done.stdout.splitlines() if line.startswith("ACTIONS ")]
    return [np.concatenate([np.ravel(part) for part in json.loads(line)]) for line in lines]


def _until(condition: Callable[[], object], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"the condition did not hold within {timeout_s:.0f} s"
        time.sleep(0.05)


def _lives(process: Any) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE  # type: ignore[no-any-return]
    except psutil.NoSuchProcess:
        return False


def _processes(run: rlnb.Run) -> list[Any]:
    """Return a run's node agent and all processes below it."""
    handle = run.jobs[-1].handle
    assert handle is not None
    agent = psutil.Process(handle["pid"])
    with contextlib.suppress(psutil.NoSuchProcess):
        return [agent, *agent.children(recursive=True)]
    return [agent]
