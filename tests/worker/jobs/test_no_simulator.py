"""The agent config, device, versions and evaluation of a library without a simulator."""

from __future__ import annotations

import dataclasses
import sys
from importlib import metadata
from typing import Any

import numpy as np
import pytest

import rlnb
from rlnb.backend import EvaluationResult
from rlnb.hooks import plugins
from rlnb.hooks.registry import manager
from rlnb.plugin import Manifest, hookimpl
from rlnb.records.evaluation import EvaluateOptions
from rlnb.spec import METRICS
from rlnb.worker.jobs import no_simulator

OPTIONS = EvaluateOptions(episodes=2, num_envs=2, seed=9, checkpoint="logs/model_4.json")
ECHO = plugins.library("echo")
BEGIN = "The library 'echo' of the plugin 'echo' (rlnb-echo 0.1.0): evaluate() returned "
NOT_VALID = "an EvaluationResult that is not valid"
END = ". Update or uninstall rlnb-echo."


def manifest(**values: Any) -> Manifest:
    return Manifest(run_id="r", created="", task=rlnb.Task(id="Echo"), library="echo", **values)


def test_the_agent_config_is_that_of_the_library_with_the_values_of_the_user() -> None:
    agent = no_simulator.agent_config_of(manifest(agent={"goal": 2, "+note": "x"}), ECHO)
    assert (agent["goal"], agent["note"], agent["iteration_s"]) == (2.0, "x", 0.0)
    without = dataclasses.replace(ECHO, default_agent="")
    assert no_simulator.agent_config_of(manifest(agent={"goal": 2, "+a.b": "x"}), without) == {"goal": 2, "a.b": "x"}


def test_auto_is_the_cpu_without_a_gpu_that_torch_could_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(no_simulator, "has_driver", lambda: False)
    assert [no_simulator.device_of(name) for name in ("auto", "cpu", "cuda:1")] == ["cpu", "cpu", "cuda:1"]
    monkeypatch.setattr(no_simulator, "has_driver", lambda: True)
    monkeypatch.setattr(no_simulator, "torch_device", lambda name, index: f"torch decides on {name}")
    assert no_simulator.device_of("auto") == "torch decides on auto"


def test_the_versions_are_those_of_the_packages_that_the_library_requires() -> None:
    versions = no_simulator.versions_of(dataclasses.replace(ECHO, requires=("numpy>=1", "no-such-package")))
    rlnb_itself = {"python": sys.version.split()[0], "rlnb": rlnb.__version__}
    assert versions == {**rlnb_itself, "rlnb-echo": metadata.version("rlnb-echo"), "numpy": np.__version__}
    assert {"rlnb-echo", "tensorboard"} < no_simulator.versions_of(ECHO).keys()


def test_the_result_of_an_evaluation_becomes_its_record() -> None:
    result = EvaluationResult(
        returns=np.array([1.0, 2.0], np.float32),  # type: ignore[arg-type]
        lengths=(np.int64(3), 4),
        successes=[True, 0.5],
        success_source="exact match",
        values={"entropy": [0.5, 1], "success_rate": [True]},
    )
    record = no_simulator.record_of(result, ECHO, OPTIONS)
    assert (record.returns, record.lengths, record.timeouts, record.successes) == ((1.0, 2.0), (3, 4), (), (True, 0.5))
    assert (record.checkpoint, record.seed, record.num_envs, record.episodes) == ("logs/model_4.json", 9, 0, 2)
    assert record.values == {"entropy": (0.5, 1), "success_rate": (1.0,)}
    assert record.meanings == {name: METRICS[name] for name in record.values}


@pytest.mark.parametrize(
    ("result", "fault"),
    [
        (None, "None, which is not an rlnb.backend.EvaluationResult"),
        ({"returns": [1.0]}, "dict, which is not an rlnb.backend.EvaluationResult"),
        (
            EvaluationResult(returns="x", lengths=[1.5]),  # type: ignore[list-item]
            "an EvaluationResult in which returns='x' is not Sequence[float] and lengths=[1.5] is not Sequence[int] | "
            "None",
        ),
        (EvaluationResult(), f"{NOT_VALID}: it has neither episodes nor values"),
        (
            EvaluationResult(returns=[1.0, 2.0], lengths=[3], successes=[1, 2]),
            f"{NOT_VALID}: lengths has 1 number for 2 episodes and successes has a number that is not from 0 to 1",
        ),
        (
            EvaluationResult(values={"kl": [0.5]}),
            "the values 'kl', whose meaning is not in Library.metric_names",
        ),
        (
            EvaluationResult(values={"reward": []}),
            f"{NOT_VALID}: the value 'reward' has no number",
        ),
    ],
)
def test_an_invalid_result_is_refused_with_library_plugin_and_version(result: object, fault: str) -> None:
    with pytest.raises(rlnb.RlnbError) as raised:
        no_simulator.record_of(result, ECHO, OPTIONS)
    assert str(raised.value) == BEGIN + fault + END


def test_a_value_has_the_meaning_that_its_own_library_gives_it() -> None:
    result = EvaluationResult(values={"kl": [0.5]})
    theirs = dataclasses.replace(ECHO, name="theirs", metric_names={"kl": "another divergence"})
    hook = staticmethod(hookimpl(lambda: [theirs], specname="rlnb_libraries"))
    rlnb.register(type("Theirs", (), {"rlnb_libraries": hook}), "theirs")
    try:
        ours = dataclasses.replace(ECHO, metric_names={"kl": "divergence, in nats"})
        assert no_simulator.record_of(result, ours, OPTIONS).meanings == {"kl": "divergence, in nats"}
        with pytest.raises(rlnb.RlnbError, match=r"the values 'kl', whose meaning is not in Library.metric_names"):
            no_simulator.record_of(result, ECHO, OPTIONS)
    finally:
        manager().unregister(name="theirs")


def test_a_backend_that_cannot_evaluate_is_named() -> None:
    library = dataclasses.replace(ECHO, backend="builtins:object")
    with pytest.raises(rlnb.RlnbError, match=r"its backend builtins:object has no method evaluate"):
        no_simulator.evaluate(manifest(), library, OPTIONS, plugins.load("pathlib:Path")())
