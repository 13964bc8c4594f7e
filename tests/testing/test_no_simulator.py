"""The kit of libraries without a simulator: the example GRPO passes it, and it finds faults."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.curves import figure
from rlnb.hooks import plugins
from rlnb.hooks.registry import manager, registry
from rlnb.plugin import Input, hookimpl
from rlnb.reports import sections
from rlnb.results import Evaluation
from rlnb.testing import NoSimulatorConformance

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "rlnb-grpo" / "src"
MEANINGS = {"accuracy": "share of prompts with the right answer, 0 to 1"}


@pytest.mark.slow
class TestGrpo(NoSimulatorConformance):
    library = "grpo"
    task = "Reverse"
    resume_iterations = 400
    cancel_iterations = 1_000_000

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def installed(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        """Install the example as its pyproject.toml does, for this process and for workers."""
        site = tmp_path_factory.mktemp("site")
        info = site / "rlnb_grpo-0.1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rlnb-grpo\nVersion: 0.1.0\n")
        (info / "entry_points.txt").write_text("[rlnb]\ngrpo = rlnb_grpo.plugin\n")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", os.pathsep.join([str(site), str(EXAMPLE), os.environ.get("PYTHONPATH", "")]))
            for folder in (site, EXAMPLE):
                patch.syspath_prepend(folder)
            importlib.invalidate_caches()
            registry.cache_clear()
            yield
        registry.cache_clear()

    def test_it_learns_and_its_own_names_are_shown_everywhere(self, root: Path) -> None:
        run = self.train(300).wait(timeout_s=300)
        first, last = run.evaluate(100, checkpoint=run.checkpoints[0]), run.evaluate(100)
        assert last.means["accuracy"] >= 0.9 > first.means["accuracy"]
        assert last.means["log_likelihood"] > first.means["log_likelihood"]
        assert f"accuracy: {MEANINGS['accuracy']}" in [name for name, _, _ in last.rows()]
        assert (last.episodes, last.successes) == (0, None)
        assert "kl" in run.metrics.names
        chart = figure.figure([run])
        assert "kl" in [note.text for note in chart.layout.annotations]
        assert figure.unit("kl") == "nats per token"
        page = sections.summary([run]) + sections.evaluations([run])
        assert ">kl</td>" in page
        assert MEANINGS["accuracy"] in page
        assert rlnb.check("Reverse", library="grpo", alerts=["kl > 3"]) == []


@pytest.fixture
def kit() -> Iterator[Callable[..., NoSimulatorConformance]]:
    """A function that returns the kit of a variant of the library echo."""

    def make(**changes: Any) -> NoSimulatorConformance:
        library = dataclasses.replace(plugins.library("echo"), name="variant", **changes)
        hook = staticmethod(hookimpl(lambda: [library], specname="rlnb_libraries"))
        rlnb.register(type("Variant", (), {"rlnb_libraries": hook}), "variant")
        return type("Kit", (NoSimulatorConformance,), {"library": "variant", "task": "Echo"})()  # type: ignore[no-any-return]

    yield make
    manager().unregister(name="variant")


def test_a_metric_without_a_meaning_is_found(kit: Callable[..., NoSimulatorConformance]) -> None:
    variant = kit(metrics={"kl": "a", "reward": "b", "odd": "c"}, metric_names={"kl": "divergence, in nats"})
    with pytest.raises(AssertionError, match="does not explain odd"):
        variant.test_every_metric_has_a_meaning()


def test_missing_requirements_and_agent_configs_are_found(
    kit: Callable[..., NoSimulatorConformance], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant = kit(requires=(), default_agent="")
    with pytest.raises(AssertionError, match=r"Library\.requires must name"):
        variant.test_a_missing_requirement_is_named(root, monkeypatch)
    with pytest.raises(AssertionError, match=r"Library\.default_agent must name"):
        variant.test_an_unknown_agent_value_is_refused_with_the_closest_name(root)


def test_an_undeclared_change_and_an_unresolved_device_are_found(
    kit: Callable[..., NoSimulatorConformance], root: Path
) -> None:
    variant = kit(requires=("pluggy",))
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(60)
    path = run.jobs[0].folder.started
    values = json.loads(path.read_text()) | {"agent_changes": {"goal": 3.0}, "devices": ["auto"]}
    path.unlink()
    path.write_text(json.dumps(values))
    run = rlnb.get_run(run.id)
    with pytest.raises(AssertionError, match=r"neither in Library\.overruled nor in Library\.adapted: goal"):
        variant.test_every_value_that_the_backend_changes_is_declared(run)
    with pytest.raises(AssertionError):
        variant.test_device_and_versions_are_recorded(run)


def test_the_runs_of_the_kit_get_the_inputs_that_its_author_names(
    kit: Callable[..., NoSimulatorConformance], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant = kit(inputs={"data": Input(kind="file")})
    with pytest.raises(rlnb.CheckError, match="variant needs the input 'data'"):
        variant.train(1)
    arguments: dict[str, Any] = {}
    monkeypatch.setattr(rlnb, "train", lambda *_, **values: arguments.update(values))
    monkeypatch.setattr(type(variant), "training_inputs", lambda: {"data": Path("data.bin")})
    variant.train(1, seed=7)
    assert (arguments["inputs"], arguments["seed"]) == ({"data": Path("data.bin")}, 7)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"returns": (1.0,) * 3}, "16 episodes were requested, not 3"),
        ({"values": {"kl": (0.5, 0.5)}, "meanings": {"kl": "in nats"}}, r"16 samples .* the values have {'kl': 2}"),
    ],
)
def test_an_evaluation_of_another_size_is_found(
    kit: Callable[..., NoSimulatorConformance], values: dict[str, Any], text: str
) -> None:
    evaluation = dataclasses.replace(Evaluation.invalid(""), **values)
    with pytest.raises(AssertionError, match=text):
        kit().test_an_evaluation_has_the_requested_size(evaluation)
    whole = dataclasses.replace(evaluation, returns=(0.0,) * 16, values={"kl": (math.pi,)})
    kit_of_echo = type("Kit", (NoSimulatorConformance,), {"library": "echo", "task": "Echo"})()
    kit_of_echo.test_an_evaluation_has_the_requested_size(dataclasses.replace(whole, meanings={"kl": "in nats"}))
