"""The argument ``agent``, in every form that the user may pass."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlnb
from rlnb.configs.agent import (
    AgentChoice,
    agent_choice,
    choice_of,
    horizon_of,
    libraries_of,
    without_ruled,
)
from rlnb.configs.card import AgentCard, ConfigField
from rlnb.hooks import plugins
from rlnb.plugin import Library
from rlnb.spec import Manifest, Task

FLAT = {"algorithm.learning_rate": 5e-4, "actor.hidden_dims": [64, 64], "seed": None}
NESTED = {"algorithm": {"learning_rate": 5e-4, "empty": {}}, "actor": {"hidden_dims": [64, 64]}, "seed": None}
YAML = """\
algorithm:
  learning_rate: 5e-4  # a string in YAML 1.1
actor:
  hidden_dims: [64, 64]
seed: null
"""


def agent_values(agent: object) -> object:
    """Return the values of an argument that has no name."""
    choice = agent_choice(agent)  # type: ignore[arg-type]
    assert choice.name is None
    return choice.values


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
    [
        ("- 1\n- 2\n", "not a mapping"),
        ("a: [1\n", "not plain YAML"),
        ("a: !!python/name:os.system\n", "not plain YAML"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_the_reason(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(text)
    with pytest.raises(rlnb.RlnbError, match=f"agent.yaml .*{expected}"):
        agent_values(path)


def test_the_tuples_in_the_config_of_a_run_are_read_as_lists(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text("std_range: !!python/tuple\n- 1.0\n- !!python/tuple [2, x]\n")
    assert agent_values(path) == {"std_range": [1.0, [2, "x"]]}


def test_what_rlnb_sets_does_not_count_in_the_config_of_a_whole_run(tmp_path: Path) -> None:
    library = Library(
        name="demo", backend="", overruled={"seed": "seed", "steps": "max_iterations", "logger": "", "gone": ""}
    )
    fields = {name: ConfigField(type="any") for name in ("seed", "steps", "logger", "rate", "gamma")}
    card = AgentCard(fields=fields, takes_more=("",))
    whole, part = tmp_path / "agent.yaml", tmp_path / "mine.yaml"
    whole.write_text("seed: 7\nsteps: 300\nlogger: {name: x}\ngone: 1\nrate: 0.1\ngamma: 0.9\nmore: 1\n")
    part.write_text("seed: 7\nrate: 0.1\n")
    arguments = {"seed": 42, "max_iterations": None}

    def kept(*agent: object) -> dict[str, object]:
        choice, ruled = without_ruled(agent_choice(list(agent)), library, card, arguments)  # type: ignore[arg-type]
        assert not {*ruled} & choice.values.keys()
        return dict(choice.values)

    rest = {"steps": 300, "rate": 0.1, "gamma": 0.9, "+more": 1}
    assert kept(whole) == rest, "no argument says the number of steps, and the run has added a value"
    assert kept(part) == {"seed": 7, "rate": 0.1}, "a request, which may be refused"
    assert kept(whole, {"seed": 8, "rate": 0.2}) == {**rest, "seed": 8, "rate": 0.2}
    assert kept({"seed": 8}, str(whole)) == rest


def test_a_value_that_is_not_a_mapping_is_refused() -> None:
    with pytest.raises(rlnb.RlnbError, match=r"agent=3 is not a mapping, the path of a YAML file or the name"):
        agent_values([{"seed": 1}, 3])


@pytest.mark.parametrize("twice", [{"a.b": 1, "a": {"b": 2}}, {"a.b": 1, "+a.b": 2}, {"+a.b": 1, "a": {"b": 2}}])
def test_a_value_that_is_given_twice_is_refused(twice: dict[str, object]) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"a\.b' is given twice, as 1 and as 2"):
        agent_values(twice)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"none.yaml cannot be read.*No such file"):
        agent_values(tmp_path / "none.yaml")


def test_a_name_without_its_end_is_answered_with_the_form_of_names() -> None:
    with pytest.raises(
        rlnb.RlnbError, match="agent='rsl_rl_with_symmetry' is not a file or the name of an agent config"
    ):
        agent_values("rsl_rl_with_symmetry")


def test_a_run_uses_the_values_of_a_file(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text("iteration_s: 1e-3\n")
    run = rlnb.train("Echo", library="echo", max_iterations=2, agent=path).wait(60)
    assert run.manifest.agent == {"iteration_s": 0.001}


SYMMETRY = "rsl_rl_with_symmetry_cfg_entry_point"


def test_a_name_and_values_are_combined_in_a_list(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text("gamma: 0.9\nlam: 0.95\n")
    choice = agent_choice([SYMMETRY, path, {"+gamma": 0.98}])
    assert choice == AgentChoice(name=SYMMETRY, values={"lam": 0.95, "+gamma": 0.98}), (
        "later values replace earlier ones"
    )
    assert agent_choice(SYMMETRY) == AgentChoice(name=SYMMETRY)
    assert agent_choice("generic") == AgentChoice(name="generic")
    with pytest.raises(rlnb.RlnbError, match=f"agent has the names '{SYMMETRY}', 'generic'. Use one of them"):
        agent_choice([SYMMETRY, "generic"])


@pytest.mark.parametrize("agent", [None, SYMMETRY, {"gamma": 0.9}, [SYMMETRY, {"gamma": 0.9}]])
def test_a_choice_gives_the_argument_that_makes_it(agent: object) -> None:
    choice = agent_choice(agent)  # type: ignore[arg-type]
    assert choice.argument == agent
    assert agent_choice(choice) == choice
    manifest = Manifest(
        run_id="r", created="", task=Task(id="T"), library="x", agent=choice.values, agent_name=choice.name
    )
    assert choice_of(manifest) == choice


@pytest.mark.parametrize(
    ("name", "libraries"),
    [
        (SYMMETRY, ("rsl_rl",)),
        ("skrl_amp_cfg_entry_point", ("skrl", "skrl_jax")),
        ("skrl_mappo_cfg_entry_point", ("skrl_mappo",)),
        ("robomimic_bc_cfg_entry_point", ()),
    ],
)
def test_a_name_tells_its_libraries(name: str, libraries: tuple[str, ...]) -> None:
    assert libraries_of(name, plugins.libraries()) == libraries


def test_the_horizon_is_found_by_the_name_that_the_library_gives_it() -> None:
    library = Library(name="x", backend="m:B", horizon_key="rollouts")
    assert horizon_of({"agent.rollouts": 16, "trainer.timesteps": 100}, library) == 16
    assert horizon_of({"agent.rollouts": 16, "+agent.rollouts": 32.0}, library) == 32, "the value of the user"
    assert horizon_of({"agent.rollouts.first": 16, "rollouts": None}, library) is None
