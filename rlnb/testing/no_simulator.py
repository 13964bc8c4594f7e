"""The contract of an RL library without a simulator, as tests that a plugin's author runs with pytest::

    from rlnb.testing import NoSimulatorConformance

    class TestMyLibrary(NoSimulatorConformance):
        library = "my_library"
        task = "MyTask"

The tests train on the CPU of this machine, and take about a minute for a library that starts fast.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import rlnb
from rlnb.configs import tree
from rlnb.contracts.libraries import Library
from rlnb.hooks import plugins
from rlnb.records.ranks import ranks_of
from rlnb.spec import METRICS
from rlnb.testing.exports import write_with_code
from rlnb.testing.runs import differences_of
from rlnb.testing.training import EPISODES, START_S, TrainingConformance


class NoSimulatorConformance(TrainingConformance):
    """Tests that every RL library without a simulator must pass. Subclass it as ``Test...``.

    Set :attr:`library` and :attr:`task`.
    """

    @classmethod
    def train(cls, iterations: int, **arguments: Any) -> rlnb.Run:
        """Start a run on the CPU; ``arguments`` are passed on to :func:`rlnb.train`."""
        return super().train(iterations, **{"device": "cpu", **arguments})

    @classmethod
    def registered(cls) -> Library:
        """Return the registration of the library."""
        return plugins.library(cls.library)

    # -- registration

    def test_every_metric_has_a_meaning(self) -> None:
        """A metric has a name of rlnb, or a meaning in ``metric_names``."""
        library = self.registered()
        unexplained = sorted(library.metrics.keys() - METRICS.keys() - library.metric_names.keys())
        assert not unexplained, f"Library.metric_names does not explain {', '.join(unexplained)}."

    def test_a_missing_requirement_is_named(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A missing package is reported as one problem, with a pip command as its fix, before anything starts."""
        requires = self.registered().requires
        assert requires, "Library.requires must name the library's package, so that rlnb can report a missing one."
        package = Requirement(requires[0]).name
        monkeypatch.setattr("rlnb.machine.packages.unmet", lambda _: (f"{package} (not installed)",))
        with pytest.raises(rlnb.CheckError, match=f"{package} .not installed.(.*\n.*)pip install"):
            self.train(1)

    def test_an_unknown_agent_value_is_refused_with_the_closest_name(self, root: Path) -> None:
        """The names of agent values are checked against the library's agent config."""
        library = self.registered()
        assert library.default_agent, "Library.default_agent must name the agent config, so that values can be checked."
        name = next(iter(tree.fields(plugins.agent_config(library.default_agent))))
        with pytest.raises(rlnb.CheckError, match=f"{name}x.*{name}"):
            rlnb.train(self.task, library=self.library, agent={f"{name}x": 1}, device="cpu")

    def test_settings_of_envs_are_refused(self, root: Path) -> None:
        """The number of envs, which the library does not have, is not ignored."""
        with pytest.raises(rlnb.CheckError, match="no use for num_envs=4"):
            self.train(1, num_envs=4)

    # -- training

    def test_device_and_versions_are_recorded(self, trained: rlnb.Run) -> None:
        """The record names the device, and the version of each required package."""
        started = trained.started
        assert started is not None
        assert started.devices == ("cpu",)
        packages = {Requirement(requirement).name for requirement in self.registered().requires}
        assert packages | {"rlnb", "python"} <= started.versions.keys()

    def test_every_value_that_the_backend_changes_is_declared(self, trained: rlnb.Run) -> None:
        """``overruled`` and ``adapted`` name each value of the agent config that the backend has changed."""
        library, started = self.registered(), trained.started
        changes = started.agent_changes if started else {}
        silent = sorted({*changes} - {*library.overruled} - {*library.adapted})
        assert not silent, (
            "The backend has changed agent config values that are neither in Library.overruled nor in Library.adapted: "
            f"{', '.join(silent)}. Declare them there."
        )

    def test_several_ranks_train_or_are_refused(self, root: Path) -> None:
        """Ranks of a library with ``distributed=True`` complete, with equal weights if it returns its modules."""
        if not self.registered().distributed:
            with pytest.raises(rlnb.CheckError, match="one process"):
                self.train(1, nproc_per_node=2)
            return
        count = max(2, self.nproc_per_node)
        run = self.train(self.iterations, nproc_per_node=count).wait(timeout_s=START_S)
        assert run.started is not None
        assert run.started.devices == ("cpu",) * count
        self.assert_axes(run)
        if (ranks := ranks_of(run.result)) is not None and not self.registered().roles:
            assert not (faults := [*differences_of(ranks, count)]), " ".join(faults)

    # -- use of a policy

    def test_an_evaluation_has_the_requested_size(self, evaluated: rlnb.results.Evaluation) -> None:
        """An evaluation has the requested number of episodes or none, and for each value as many samples or one."""
        assert evaluated.episodes in (0, EPISODES), f"{EPISODES} episodes were requested, not {evaluated.episodes}."
        sizes = {name: len(numbers) for name, numbers in evaluated.values.items() if len(numbers) not in (1, EPISODES)}
        assert not sizes, f"{EPISODES} samples were requested, and the values have {sizes}."
        assert evaluated.meanings.keys() == evaluated.values.keys()

    def test_a_checkpoint_with_code_in_it_is_refused(self, trained: rlnb.Run, tmp_path: Path) -> None:
        """A pickle that would run code is not loaded without ``trust=True``."""
        bad, trace = write_with_code(trained.checkpoints[-1], tmp_path)
        with pytest.raises(rlnb.RunError):
            trained.evaluate(episodes=1, checkpoint=bad)
        assert not trace.exists(), "Load checkpoints after rlnb.backend.vet_checkpoint(path, trust)."
