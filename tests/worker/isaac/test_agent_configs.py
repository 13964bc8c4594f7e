"""The agent configs of a registered task, of a task's own module, and of a plugin."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

import rlnb
from rlnb.contracts.libraries import Space
from rlnb.hooks import plugins
from rlnb.plugin import Library
from rlnb.spec import Task
from rlnb.worker.isaac import agent_configs
from rlnb.worker.isaac.isaaclab import Registered

SYMMETRY = "rsl_rl_with_symmetry_cfg_entry_point"


@pytest.fixture
def registered() -> Iterator[Registered]:
    """Provide a task that registers agent configs of RSL-RL and of robomimic, and whose module has one of RL-Games."""
    keys = {
        "env_cfg_entry_point": "m:Env",
        "rsl_rl_cfg_entry_point": "m:Ppo",
        SYMMETRY: "m:Symmetric",
        "robomimic_bc_cfg_entry_point": "m:bc.json",
        "default_agent": "rsl_rl",
    }
    gymnasium.register(id="rlnb-agents-test", entry_point="m:Env", kwargs=keys)
    yield Registered(
        gym_id="rlnb-agents-test",
        success=None,
        agents={"skrl": dict, "rl_games_small_cfg_entry_point": dict},
    )
    del gymnasium.registry["rlnb-agents-test"]


@pytest.mark.parametrize(
    ("library", "name", "origin"),
    [
        ("rsl_rl", None, ("registered", "rsl_rl_cfg_entry_point")),
        ("rsl_rl", SYMMETRY, ("registered", SYMMETRY)),
        ("rsl_rl", "generic", ("generic", "rlnb_rsl_rl.agent:ppo")),
        ("rsl_rl", "rsl_rl_recurrent_cfg_entry_point", None),
        ("skrl", None, ("module", "skrl")),
        ("skrl_jax", None, ("module", "skrl")),
        ("sb3", None, ("generic", "rlnb_sb3:ppo.yaml")),
        ("rl_games", "rl_games_small_cfg_entry_point", ("module", "rl_games_small_cfg_entry_point")),
    ],
)
def test_the_origin_of_a_config_is_known(
    registered: Registered, library: str, name: str | None, origin: tuple[str, str] | None
) -> None:
    result = agent_configs.origin_of(registered, plugins.library(library), name)
    assert result == (agent_configs.AgentOrigin(kind=origin[0], name=origin[1]) if origin else None)  # type: ignore[arg-type]


def test_a_generic_config_that_is_the_usual_one_is_no_second_config(registered: Registered) -> None:
    spaces = ({"policy": Space(kind="box", shape=(3, 64, 64))}, Space(kind="box", shape=(1,)))
    usual, generic = (
        agent_configs.origin_of(registered, plugins.library("sb3"), name, spaces) for name in (None, "generic")
    )
    assert usual == generic
    assert usual is not None
    assert usual.fitted is not None
    config = agent_configs.load(Task(id="Demo"), registered, usual)
    assert config["policy"] == "CnnPolicy"
    assert str(usual).endswith(", fitted to 'policy', a picture of the shape (3, 64, 64)")
    plain = agent_configs.origin_of(registered, plugins.library("sb3"))
    assert plain is not None
    assert "fitted" not in str(plain)
    assert agent_configs.load(Task(id="Demo"), registered, plain)["policy"] == "MlpPolicy"


def test_libraries_without_an_agent_key_share_no_config(registered: Registered) -> None:
    registered = dataclasses.replace(registered, agents={"echo": dict})
    library = Library(name="keyless", backend="m:Backend", default_agent="m:config")
    assert plugins.library("echo").agent_key == ""
    assert agent_configs.origin_of(registered, library) == agent_configs.AgentOrigin(kind="generic", name="m:config")


@pytest.mark.parametrize("key", ["rl_games", "rl_games_cfg_entry_point"])
def test_a_module_may_name_a_config_by_library_or_by_entry_point(registered: Registered, key: str) -> None:
    module = dataclasses.replace(registered, agents={key: dict})
    origin = agent_configs.origin_of(module, plugins.library("rl_games"))
    assert origin == agent_configs.AgentOrigin(kind="module", name=key)


def test_a_config_of_a_module_is_not_changed_by_the_runs_of_its_process() -> None:
    config = {"actor": {"hidden": [32]}}
    module = Registered(gym_id="", success=None, agents={"skrl": config})
    origin = agent_configs.AgentOrigin(kind="module", name="skrl")
    agent_configs.load(Task(id="T"), module, origin)["actor"]["hidden"].append(8)
    assert agent_configs.load(Task(id="T"), module, origin) == {"actor": {"hidden": [32]}}


def test_a_registration_tells_its_configs_and_its_default_library(registered: Registered) -> None:
    assert agent_configs.all_names(registered) == [
        "rl_games_small_cfg_entry_point",
        "robomimic_bc_cfg_entry_point",
        "rsl_rl_cfg_entry_point",
        SYMMETRY,
        "skrl",
    ]
    assert list(agent_configs.named_choices(registered)) == ["rl_games_small_cfg_entry_point", SYMMETRY], (
        "those beside the usual ones"
    )
    kwargs = gymnasium.spec(registered.gym_id).kwargs
    for default, library in (("skrl", "skrl"), ("torchrl", "rsl_rl"), (None, "rsl_rl")):
        kwargs["default_agent"] = default
        assert agent_configs.default_library(registered) == library


@pytest.mark.parametrize(
    ("library", "needs"),
    [("rsl_rl", False), ("skrl", False), ("sb3", False), ("rl_games", True)],
    ids=["registered", "of the module", "no task has a config for it", "generic"],
)
def test_a_generic_config_needs_a_choice_if_other_tasks_bring_one(
    registered: Registered, library: str, needs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = gymnasium.spec(registered.gym_id)
    rl_games = {**other.kwargs, "rl_games_cfg_entry_point": "m:Ppo"}
    registry = {registered.gym_id: other, "other": dataclasses.replace(other, kwargs=rl_games)}
    monkeypatch.setattr(gymnasium, "registry", registry)
    spec = plugins.library(library)
    origin = agent_configs.origin_of(registered, spec)
    assert origin is not None
    assert agent_configs.needs_choice(registered, spec, origin) is needs


def test_a_name_without_a_config_is_refused_with_the_closest_one(registered: Registered) -> None:
    with pytest.raises(rlnb.NotFoundError, match=f"T has: .*{SYMMETRY}. Did you mean {SYMMETRY!r}"):
        agent_configs.resolve(
            Task(id="T"), registered, plugins.library("rsl_rl"), "rsl_rl_with_symmetri_cfg_entry_point"
        )


@pytest.mark.isaaclab
def test_a_run_trains_and_acts_with_the_named_config_and_says_so(folder: Path) -> None:
    """The run's copy of the agent config has the values of the named one, with the user's changes."""
    run = rlnb.train(
        "Isaac-Cartpole", agent=[SYMMETRY, {"algorithm.gamma": 0.98}], num_envs=4, max_iterations=1, device="cpu"
    ).wait(300)
    assert run.manifest.agent_source == f"{SYMMETRY} of the task"
    text = (run.path / "logs" / "params" / "agent.yaml").read_text()
    assert "compute_symmetric_states" in text
    assert "gamma: 0.98" in text
    assert run.evaluate(episodes=4, num_envs=4).episodes == 4
    assert run.started is not None
    assert run.started.agent_changes["max_iterations"] == 1, "the argument's value"
    assert "algorithm.gamma" not in run.started.agent_changes, "the user's value is kept"


@pytest.mark.isaaclab
def test_the_default_library_of_a_registration_is_used_and_others_need_a_config(folder: Path) -> None:
    task = "IsaacContrib-Humanoid-AMP-Walk-Direct"
    assert rlnb.task(task).agent().library == "skrl"
    assert rlnb.task(task).agent().others == ("skrl_amp_cfg_entry_point", "generic")
    (problem,) = [problem for problem in rlnb.check(task, library="rsl_rl") if "agent config" in problem.what]
    assert problem.what.startswith(f"{task} brings no agent config for rsl_rl, only skrl_amp_cfg_entry_point, skrl_cfg")
    assert problem.fix.startswith("Use library='skrl' or library='skrl_jax' or agent='generic'.")


@pytest.mark.isaaclab
def test_the_form_in_jupyterlab_names_the_agent_config(folder: Path) -> None:
    from rlnb_jupyterlab.check import agent

    form = agent({"task": "Isaac-Cartpole", "library": "", "agent_config": ""})
    assert form.source == "rsl_rl_cfg_entry_point of the task"
    assert form.names == (SYMMETRY, "generic")
