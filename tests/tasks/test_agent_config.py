"""Agent config values, in every form that the user may pass."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlnb
from rlnb.tasks.agent_config import agent_values
from rlnb.training.checks import _check_overruled
from rlnb.training.plan import make_plan
from rlnb.training.request import TrainRequest

FLAT = {"algorithm.learning_rate": 5e-4, "actor.hidden_dims": [64, 64], "seed": None}
NESTED = {"algorithm": {"learning_rate": 5e-4, "empty": {}}, "actor": {"hidden_dims": [64, 64]}, "seed": None}
YAML = """\
algorithm:
  learning_rate: 5e-4  # a string in YAML 1.1
actor:
  hidden_dims: [64, 64]
seed: null
"""


def test_dotted_paths_and_nested_values_are_equal() -> None:
    assert agent_values(None) == {}
    assert agent_values(FLAT) == agent_values(NESTED) == FLAT


def test_a_plus_moves_to_the_beginning_of_the_path() -> None:
    assert agent_values({"agent": {"+kl": {"by": 0.01}}, "+seed": 1}) == {"+agent.kl.by": 0.01, "+seed": 1}
    assert agent_values({"+agent.kl": 1e-2, "agent.+rate": 2}) == {"+agent.kl": 1e-2, "+agent.rate": 2}


@pytest.mark.parametrize("as_text", [True, False])
def test_a_yaml_file_is_read(tmp_path: Path, as_text: bool) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(YAML)
    assert agent_values(str(path) if as_text else path) == FLAT


@pytest.mark.parametrize(
    ("text", "expected"),
    [("- 1\n- 2\n", "not a mapping"), ("a: [1\n", "not plain YAML"), ("a: !!python/tuple [1]\n", "not plain YAML")],
)
def test_a_file_of_another_kind_is_refused_with_the_reason(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(text)
    with pytest.raises(rlnb.RlnbError, match=f"agent.yaml .*{expected}"):
        agent_values(path)


def test_a_value_that_is_not_a_mapping_is_refused() -> None:
    with pytest.raises(rlnb.RlnbError, match=r"agent=\[.*is neither the path of a YAML file nor a mapping"):
        agent_values([("seed", 1)])  # type: ignore[arg-type]


@pytest.mark.parametrize("twice", [{"a.b": 1, "a": {"b": 2}}, {"a.b": 1, "+a.b": 2}, {"+a.b": 1, "a": {"b": 2}}])
def test_a_value_that_is_given_twice_is_refused(twice: dict[str, object]) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"a\.b' is given twice, as 1 and as 2"):
        agent_values(twice)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"none.yaml cannot be read.*No such file"):
        agent_values(tmp_path / "none.yaml")


def test_a_run_uses_the_values_of_a_file(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text("iteration_s: 1e-3\n")
    run = rlnb.train("Echo", library="echo", max_iterations=2, agent=path).wait(60)
    assert run.manifest.agent == {"iteration_s": 0.001}


def test_an_added_value_is_refused_if_an_argument_overrules_it(root: Path) -> None:
    manifest = make_plan(TrainRequest(task="Echo", library="echo")).manifest
    overruled = {"device": "device"}
    (problem,) = _check_overruled(manifest, {"+device": "cpu"}, {}, overruled, "agent config")
    assert problem.what == "agent config: device is 'cpu', but rlnb.train has device='auto'."
    assert not list(_check_overruled(manifest, {"device": "cpu"}, {}, overruled, "agent config")), "no such value"
