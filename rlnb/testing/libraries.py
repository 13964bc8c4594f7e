"""The contract of an RL library, as tests that a plugin's author runs with pytest::

    from rlnb.testing import LibraryConformance

    class TestMyLibrary(LibraryConformance):
        library = "my_library"

Isaac Lab itself trains a small task on this machine, which takes some minutes on two cores. The tests run in
the worker's interpreter and need ``pytest``, ``onnx`` and ``onnxruntime`` there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rlnb
from rlnb.hooks import plugins
from rlnb.spec import METRICS, OFF_POLICY_METRICS
from rlnb.testing import exports
from rlnb.testing.exports import assert_exported, write_as_on_gpu, write_with_code
from rlnb.testing.runs import faults_of, first_observations
from rlnb.testing.training import EPISODES, START_S, TrainingConformance

EVALUATION_ENVS = 8
"""Number of envs of an evaluation."""
RATE_TOLERANCE = 0.3
"""Allowed relative difference between a logged rate and the wall clock. Short iterations are noisy."""
LOAD_TOLERANCE = 1e-6
"""Allowed difference between the actions of two loads of one checkpoint."""


class LibraryConformance(TrainingConformance):
    """Tests that every RL library must pass. Subclass it as ``Test...`` and set :attr:`library`."""

    task = "Isaac-Cartpole-Direct"
    """Task with an agent config for the library."""
    num_envs: int = 16
    """Number of envs."""
    optimiser: str = "optim"
    """Part of the key of the optimiser's state in a checkpoint; empty if checkpoints do not hold it."""
    samples: bool = True
    """Whether a policy samples its actions if ``deterministic`` is False; False for policies without noise."""
    lost: frozenset[str] = frozenset()
    """Parts of a training's state that its checkpoints do not hold, as the report of a resumed run names them."""

    @classmethod
    def train(cls, iterations: int, **arguments: Any) -> rlnb.Run:
        """Start a run; ``arguments`` are passed on to :func:`rlnb.train`."""
        return super().train(iterations, num_envs=cls.num_envs, device="cpu", **arguments)

    # -- registration

    def test_a_missing_requirement_is_named(self, root: Path, monkeypatch: Any) -> None:
        """A missing package is reported as one problem, with a pip command as its fix, before anything starts."""
        spec = plugins.library(self.library)
        assert spec.requires, "Library.requires must name the package, so that rlnb can report a missing one"
        package = spec.requires[0].split("[")[0].split("=")[0].split(">")[0].split("<")[0]
        card = rlnb.task(self.task).card()
        assert card.agents[self.library].missing == ()
        lacking = dataclasses.replace(card.agents[self.library], missing=(f"{package} (not installed)",))
        without = dataclasses.replace(card, agents={**card.agents, self.library: lacking})
        monkeypatch.setattr("rlnb.training.lookup.card_of", lambda *_: without)
        with pytest.raises(rlnb.CheckError, match=f"{package}.*\n.*pip install"):
            self.train(1)

    def test_an_unknown_agent_value_is_refused_with_the_closest_name(self, trained: rlnb.Run) -> None:
        """The names of agent config values are checked against the task's agent config."""
        field = next(iter(rlnb.task(self.task).card().agents[self.library].fields))
        with pytest.raises(rlnb.CheckError, match=f"{field}x.*{field}"):
            rlnb.train(self.task, library=self.library, agent={f"{field}x": 1}, device="cpu")

    def test_every_value_that_the_backend_changes_is_declared(self, trained: rlnb.Run) -> None:
        """``overruled`` and ``adapted`` name each value of the agent config that the backend has changed."""
        library = plugins.library(self.library)
        declared = [*library.overruled, *library.adapted]
        changes = trained.started.agent_changes if trained.started else {}
        silent = [path for path in changes if path not in declared]
        assert not silent, (
            "The backend has changed agent config values that are neither in Library.overruled nor in Library.adapted: "
            f"{', '.join(silent)}. Declare them there."
        )

    # -- training

    def test_the_env_has_the_requested_size(self, trained: rlnb.Run) -> None:
        """``ctx.started`` reports the number of envs over all ranks."""
        started = trained.started
        assert started is not None
        assert (started.num_envs, started.world_size) == (self.num_envs, self.nproc_per_node)

    def test_every_metric_of_the_schema_is_logged(self, trained: rlnb.Run) -> None:
        """The library's own tags map to the common names."""
        missing = ", ".join(sorted({*METRICS} - {*OFF_POLICY_METRICS} - {*trained.metrics.names} - self.unlogged))
        assert not missing, (
            f"These metrics are not logged in {self.iterations} iterations: {missing}. Map them in Library.metrics, "
            "set `iterations` higher if no episode ended, or list them in `unlogged`."
        )

    def test_the_logged_rate_agrees_with_the_wall_clock(self, trained: rlnb.Run) -> None:
        """The logged frames per second agree with the time between iterations."""
        fps, started = trained.metrics["fps"], trained.started
        assert started is not None
        seconds = np.diff(fps.wall_time_s)
        measured = started.horizon * started.num_envs / np.median(seconds)
        assert np.median(fps.values[1:]) == pytest.approx(measured, rel=RATE_TOLERANCE)

    def test_the_seed_reaches_the_env(self, trained: rlnb.Run, repeated: rlnb.Run, other: rlnb.Run) -> None:
        """The same seed gives the same first observations, and another seed gives others."""
        assert first_observations(repeated) == first_observations(trained), "same seed, different first observations"
        assert first_observations(other) != first_observations(trained), "different seed, same first observations"

    # -- use of a policy

    @classmethod
    def evaluate(cls, run: rlnb.Run, **arguments: Any) -> rlnb.results.Evaluation:
        """Evaluate a run in a few episodes; ``arguments`` are passed on to :meth:`rlnb.Run.evaluate`."""
        return super().evaluate(run, num_envs=EVALUATION_ENVS, **arguments)

    def test_whole_episodes_are_evaluated(self, trained: rlnb.Run, evaluated: rlnb.results.Evaluation) -> None:
        """Evaluations run whole episodes with the env's seed. A policy with noise samples unless ``deterministic``."""
        assert evaluated.episodes == EPISODES
        assert all(length > 0 for length in evaluated.lengths)
        elsewhere = self.evaluate(trained, seed=7)
        assert elsewhere.returns != pytest.approx(evaluated.returns, rel=1e-3), "different seed, same returns"
        sampled = self.evaluate(trained, deterministic=False)
        assert self.samples == (sampled.returns != pytest.approx(evaluated.returns, rel=1e-3)), (
            "A policy that samples has the returns of one that does not. Use `deterministic` in load_policy, or set "
            "`samples = False` if the library's policies have no noise."
            if self.samples
            else "The returns change with deterministic=False, although `samples = False`. Leave out `samples = False`."
        )

    @pytest.fixture(scope="class")
    @classmethod
    def recording(
        cls, trained: rlnb.Run, other: rlnb.Run, tmp_path_factory: pytest.TempPathFactory
    ) -> exports.Recording:
        """Provide the actions of three policies, and steps of the first: a checkpoint twice, and another run's."""
        last, foreign = trained.checkpoints[-1], other.checkpoints[-1]
        return exports.recorded(trained, tmp_path_factory.mktemp("recording"), (last, 1), (last, 2), (foreign, 1))

    def test_a_policy_has_the_weights_of_its_checkpoint(self, recording: exports.Recording) -> None:
        """A checkpoint gives the same actions for any seed of the env; another run's checkpoint gives others."""
        actions, repeat, different = recording.loads
        assert repeat == pytest.approx(actions, abs=LOAD_TOLERANCE), (
            "One checkpoint gives different actions, so its weights were not loaded. Load them in load_policy."
        )
        assert different != pytest.approx(actions, abs=LOAD_TOLERANCE), (
            "Two checkpoints give the same actions. Load the checkpoint that load_policy is given."
        )

    def test_acting_does_not_change_a_policy(self, recording: exports.Recording) -> None:
        """A policy that has acted and was reset gives the same actions as before."""
        assert recording.repeat == pytest.approx(recording.loads[0], abs=LOAD_TOLERANCE), (
            f"After {exports.STEPS} steps and policy.reset, the same observations give other actions. Act in eval "
            "mode, update no normaliser, and clear the recurrent state in reset."
        )

    def inputs(self, observations: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Return the inputs of an exported file for observations by group, by name and in the file's order.

        By default, the input ``obs`` is the group ``policy``. Override this for a policy that reads other groups too.
        """
        return {"obs": observations["policy"]}

    def test_exports_give_the_actions_of_the_policy(self, trained: rlnb.Run, recording: exports.Recording) -> None:
        """Every export is one file with the actions of the policy, in any batch size and over whole episodes."""
        formats = plugins.library(self.library).exports
        if not formats:
            with pytest.raises(rlnb.RlnbError, match="exports nothing"):
                trained.export()
            return
        exports = trained.export()
        expected = {f"{agent}/{name}".lstrip("/") for agent in recording.actions for name in formats}
        assert {*exports} == expected, f"The formats of the export are {sorted(exports)}, not {sorted(expected)}."
        assert {*(trained.path / "exports").rglob("*.*")} == {*exports.values()}, "a policy is one file"
        for name, path in exports.items():
            agent, _, export_format = name.rpartition("/")
            observations = recording.observations
            inputs = {"obs": observations[agent]} if agent else self.inputs(observations)
            assert_exported(export_format, path, inputs, recording.actions[agent], recording.ended)

    def test_a_checkpoint_with_code_in_it_is_refused(self, trained: rlnb.Run, tmp_path: Path) -> None:
        """A pickle that would run code is not loaded without ``trust=True``."""
        bad, trace = write_with_code(trained.checkpoints[-1], tmp_path)
        with pytest.raises(rlnb.RunError, match="trust=True"):
            trained.evaluate(episodes=1, checkpoint=bad)
        assert not trace.exists()

    # -- interruptions

    def assert_restored(self, run: rlnb.Run) -> None:
        """Assert that a resumed run has restored every part of its checkpoint, by the report of ``ctx.resumed``."""
        assert run.started is not None
        restored = run.started.restored
        assert restored, "No part of the checkpoint was compared. Call ctx.resumed(save) after loading ctx.checkpoint."
        assert self.optimiser in str(restored), (
            f"No part of the checkpoint has {self.optimiser!r} in its name: {dict(restored)}. Set `optimiser`."
        )
        lost = {part: report for part, report in restored.items() if report.split(":")[0] != "restored"}
        silent = {part: report for part, report in lost.items() if part not in self.lost}
        assert not silent, (
            f"The resumed training has not restored {silent}. Load these parts before ctx.resumed, or list in `lost` "
            "those that checkpoints do not hold."
        )
        idle = ", ".join(sorted(self.lost - {*lost}))
        assert not idle, f"`lost` lists {idle}, which the resumed training has not lost. Leave it out."

    def test_a_checkpoint_of_a_gpu_is_used_on_this_machine(self, trained: rlnb.Run, other: rlnb.Run) -> None:
        """A checkpoint from a GPU that this machine lacks is evaluated, and its run continues from it."""
        checkpoint = other.checkpoints[-1]
        write_as_on_gpu(checkpoint)
        assert trained.evaluate(episodes=1, num_envs=1, checkpoint=checkpoint).episodes == 1
        if not plugins.library(self.library).resumes:
            return
        other.resume(max_iterations=self.iterations + 1).wait(timeout_s=START_S)
        started = other.started
        assert started is not None
        assert started.first_iteration == self.iterations
        self.assert_restored(other)

    def test_a_run_from_other_weights_has_the_data_of_its_seed(self, trained: rlnb.Run, from_weights: rlnb.Run) -> None:
        """``init_from`` does not change the data of the first reset."""
        assert first_observations(from_weights) == first_observations(trained)

    # -- several ranks

    def test_ranks_learn_as_one(self, root: Path) -> None:
        """Ranks with different data end with equal parameters and statistics; unsynchronised ranks do not."""
        if not plugins.library(self.library).distributed:
            with pytest.raises(rlnb.CheckError, match="one process"):
                self.train(1, nproc_per_node=2)
            return
        count = max(2, self.nproc_per_node)
        proof = rlnb.studies.verify_sync(
            self.task,
            library=self.library,
            nproc_per_node=count,
            num_envs=count * self.num_envs,
            agent=self.agent,
            inputs=self.training_inputs() or None,
            device="cpu",
            timeout_s=START_S,
        )
        faults = faults_of(proof)
        assert not faults, " ".join(faults)
