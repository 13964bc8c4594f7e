"""The checks that refuse a training run before anything is written; the echo library needs no simulator."""

from __future__ import annotations

import dataclasses
import getpass
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb import options
from rlnb.configs.card import AgentCard, ConfigField, TaskCard
from rlnb.contracts.libraries import Space
from rlnb.hooks import plugins
from rlnb.launchers import Launcher, LocalLauncher
from rlnb.machine.packages import install_line
from rlnb.plugin import Problem
from rlnb.spec import Json, Manifest, Resources, Task
from rlnb.training import checks, lookup
from rlnb.training.checks import problems_of_fit
from rlnb.training.lookup import Lookup

OTHER_USER = 65534
"""User id without root's privileges."""
CARD = TaskCard(
    task="Lift",
    workflow="direct",
    num_envs=64,
    fields={"sim.device": ConfigField(type="str", value="cuda:0")},
    agents={"rsl_rl": AgentCard(fields={"seed": ConfigField(type="int", value=42)})},
    versions={"rlnb": rlnb.__version__},
)


def echo(**arguments: Any) -> rlnb.Run:
    return rlnb.train("Echo", library="echo", **arguments)


def problems_of(call: Callable[[], object]) -> list[str]:
    with pytest.raises(rlnb.CheckError) as caught:
        call()
    return [problem.what for problem in caught.value.problems]


def find(manifest: rlnb.plugin.Manifest, launcher: Launcher | None = None) -> list[Problem]:
    """Return the problems of a run."""
    root = rlnb.options.folders
    of_run = lookup.look_up(manifest.task, manifest.library, root, manifest.python, manifest.asset_root)
    return checks.find_problems(manifest, launcher or LocalLauncher(), root, of_run)


def problems_of_card(monkeypatch: pytest.MonkeyPatch, card: TaskCard, **arguments: Any) -> list[str]:
    """Return the problems of a training run whose task has this card."""
    monkeypatch.setattr(lookup, "card_of", lambda *_, **__: card)
    arguments = {"task": rlnb.Task(id="Lift"), "library": "rsl_rl", **arguments}
    problems = find(rlnb.plugin.Manifest(run_id="x", created="", **arguments))
    return [f"{problem.what} {problem.fix}" for problem in problems]


def test_all_problems_are_reported_at_once_and_nothing_is_written(root: Path) -> None:
    bad: dict[str, Any] = {
        "library": "ecko",
        "max_iterations": 0,
        "num_envs": 2.5,
        "nproc_per_node": -1,
        "seed": -3,
        "device": "gpu",
        "agent": {"learning_rate": object()},
    }
    whats = problems_of(lambda: rlnb.train("Echo", **bad))
    assert len(whats) == len(bad)
    for word in ("max_iterations=0", "num_envs=2.5", "nproc_per_node=-1", "seed=-3", "device='gpu'", "'learning_rate'"):
        assert any(word in what for what in whats), word
    assert any("No RL library named 'ecko'" in what and "Did you mean 'echo'?" in what for what in whats)
    assert not root.exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_iterations", True),
        ("max_iterations", "10"),
        ("num_envs", 0),
        ("nproc_per_node", 0),
        ("seed", 1.5),
        ("seed", 2**32),
        ("deterministic", "yes"),
        ("tags", "abc"),
        ("tags", [1]),
        ("tags", ["a", " "]),
        ("init_from", 3),
        ("device", 0),
        ("device", "gpu:0"),
        ("agent", {"+a": {1, 2}}),
    ],
)
def test_one_bad_argument_is_one_problem(root: Path, name: str, value: Any) -> None:
    (what,) = problems_of(lambda: echo(**{name: value}))
    assert name.removesuffix("s") in what
    assert not root.exists()


def test_the_nodes_of_a_cluster_may_have_what_this_machine_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    card = dataclasses.replace(CARD, isaac_sim=("Isaac Sim PhysX physics (`PhysxCfg`)",), missing=("ovphysx",))
    monkeypatch.setattr(lookup, "card_of", lambda *_, **__: card)
    manifest = rlnb.plugin.Manifest(run_id="x", created="", task=rlnb.Task(id="Lift"), library="rsl_rl")
    launcher = plugins.make_launcher("slurm", {"walltime": "01:00:00", "container": "isaac.sif"})
    problems = find(manifest, launcher)
    assert not [problem for problem in problems if "Isaac Sim" in problem.what or "OvPhysX" in problem.what]


def test_a_task_that_the_library_cannot_train_is_a_problem(root: Path) -> None:
    (what,) = problems_of(lambda: rlnb.train("Ecko", library="echo"))
    assert "No task named 'Ecko'" in what
    assert "Did you mean 'Echo'?" in what


def test_several_nodes_on_this_machine_are_a_problem(root: Path) -> None:
    manifest = rlnb.plugin.Manifest(
        run_id="x", created="", task=rlnb.Task(id="Echo"), library="echo", resources=rlnb.launchers.Resources(nodes=2)
    )
    (what,) = (problem.what for problem in find(manifest))
    assert "nodes=2" in what


@pytest.mark.parametrize("below", ["", "deeper/still"])
def test_a_file_in_place_of_the_root_is_a_problem(root: Path, monkeypatch: pytest.MonkeyPatch, below: str) -> None:
    root.touch()
    monkeypatch.setattr(options, "root", root / below)
    (what,) = problems_of(echo)
    assert f"the run folder {root / below} cannot be written" in what
    assert root.read_bytes() == b""


def test_a_root_that_is_not_unicode_is_a_problem(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "root", root / "\udce6\udc95\udcb0")
    (what,) = problems_of(echo)
    assert what.endswith("is not Unicode.")
    assert not root.exists()


@pytest.mark.parametrize("mode", [0o555, 0o000])
def test_a_folder_that_this_user_cannot_write_to_is_a_problem(monkeypatch: pytest.MonkeyPatch, mode: int) -> None:
    with tempfile.TemporaryDirectory() as made:
        locked = Path(made) / "locked"
        locked.mkdir()
        os.chmod(made, 0o755)
        locked.chmod(mode)
        monkeypatch.setattr(options, "root", locked / "rlnb-runs")
        rlnb.check("Echo", library="echo")  # imports what the other user may not be able to read
        whats = as_other_user(lambda: problems_of(echo))
        locked.chmod(0o755)
    assert len(whats) == 1
    assert f"{locked / 'rlnb-runs'} cannot be written by this user" in whats[0]


def as_other_user(call: Callable[[], Any]) -> Any:
    """Return the result of a call made without root's privileges, because root can write to any folder."""
    if os.geteuid() != 0:
        return call()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        answer: Any = "the process could not change its user"
        try:
            os.setuid(OTHER_USER)
            answer = call()
        except BaseException as exc:
            answer = [f"{type(exc).__name__}: {exc}"]
        finally:
            os.write(writer, json.dumps(answer).encode())
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        answer = json.loads(answers.read())
    os.waitpid(pid, 0)
    return answer


def test_a_user_without_a_name_can_train(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root.touch()

    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found")  # as in a container whose uid is not in /etc/passwd

    monkeypatch.setattr(getpass, "getuser", nameless)
    assert len(problems_of(echo)) == 1


def test_a_simulator_task_is_refused_by_a_library_without_a_simulator(root: Path) -> None:
    with pytest.raises(rlnb.CheckError, match="without a simulator"):
        rlnb.train("Isaac-Cartpole-Direct", library="echo")
    assert not (root / "runs").exists()


@pytest.mark.parametrize("library", ["rl_gamez", "sklr", "sb4"])
def test_the_problem_of_an_unknown_library_lists_the_libraries_but_suggests_no_package(
    root: Path, library: str
) -> None:
    with pytest.raises(rlnb.CheckError) as caught:
        rlnb.train("Echo", library=library)
    (problem,) = caught.value.problems
    assert problem.what.startswith(
        f"No RL library named {library!r}. Installed: {', '.join(sorted(plugins.libraries()))}."
    )
    assert problem.fix == "`rlnb libraries` lists the installed libraries."


def test_arguments_that_match_the_task_card_have_no_problem(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert problems_of_card(monkeypatch, CARD) == []


def test_a_config_value_that_contradicts_an_argument_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = rlnb.Task(id="Lift", overrides={"sim.device": "cuda:1"})
    resources = rlnb.launchers.Resources(device="cpu")
    (seed, device) = sorted(problems_of_card(monkeypatch, CARD, task=task, resources=resources, agent={"+seed": 7}))
    assert seed.startswith("agent config of rsl_rl: seed is 7, but rlnb.train has seed=42.")
    assert device.startswith("override of Lift: sim.device is 'cuda:1', but rlnb.train has device='cpu'.")
    assert problems_of_card(monkeypatch, CARD, agent={"seed": 7}, seed=7) == []
    assert problems_of_card(monkeypatch, CARD, agent={"seed": 42}, seed=7) == [], "a default is not a request"


def test_missing_packages_of_the_worker_are_reported_with_a_pip_command(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = {"rsl_rl": AgentCard(missing=("rsl-rl-lib>=5 (not installed)",))}
    card = dataclasses.replace(CARD, agents=lacking, versions={"rlnb": "0.0.1"})
    package, version = problems_of_card(monkeypatch, card, python="/opt/python")
    assert "rsl_rl needs rsl-rl-lib>=5 (not installed) in the worker's interpreter /opt/python." in package
    assert "/opt/python -m pip install 'rsl-rl-lib" in package
    assert f"rlnb {rlnb.__version__}, but the worker's interpreter /opt/python has rlnb 0.0.1." in version
    assert version.endswith(install_line("rlnb", python="/opt/python"))
    beside = dataclasses.replace(CARD, versions={"rlnb": "0.0.1", "isaacsim": "6.2.0.0"})
    (version,) = problems_of_card(monkeypatch, beside, python="/opt/python")
    assert version.endswith(install_line("rlnb", python="/opt/python", isaacsim=True))


def test_a_missing_or_broken_agent_config_is_a_problem(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = dataclasses.replace(CARD, agents={"skrl": AgentCard(source="its module", error="ImportError: no jax")})
    text = "Lift has no agent config for rsl_rl. It has: skrl. Use library='skrl'."
    assert problems_of_card(monkeypatch, card)[0] == text
    assert problems_of_card(monkeypatch, card, library="skrl")[0].startswith(
        "the agent config of skrl (its module) does not load: ImportError"
    )


def test_envs_that_the_ranks_cannot_share_are_refused_with_a_number_that_fits(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (problem,) = problems_of_card(monkeypatch, CARD, resources=rlnb.launchers.Resources(nproc_per_node=3))
    assert problem == "64 envs cannot be shared by 3 ranks. num_envs=63"


def test_too_many_ranks_are_reported_even_if_the_task_does_not_resolve(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> TaskCard:
        raise rlnb.RlnbError("Lift does not resolve.")

    monkeypatch.setattr(lookup, "card_of", fail)
    resources = rlnb.launchers.Resources(nproc_per_node=2, device="cpu")
    manifest = rlnb.plugin.Manifest(
        run_id="x", created="", task=rlnb.Task(id="Lift"), library="sb3", resources=resources
    )
    whats = [problem.what for problem in find(manifest)]
    assert "sb3 trains in one process, not in 2." in whats
    assert "Lift does not resolve." in whats


# -- fits ------------------------------------------------------------------------------------------------------------


VECTOR, PICTURE = Space(kind="box", shape=(4,)), Space(kind="box", shape=(3, 64, 64))
MINIBATCHES = "algorithm.num_mini_batches"


def agent(values: dict[str, Json], **options: Any) -> AgentCard:
    return AgentCard(fields={path: ConfigField(type="any", value=value) for path, value in values.items()}, **options)


MLP = agent({"actor.class_name": "MLPModel"})
CNN = agent({"actor.class_name": "CNNModel"}, generic=True)
CONV = agent({"params.network.name": "actor_critic", "params.network.cnn.type": "conv2d"})
FLAT = agent({"params.network.name": "actor_critic"})
CATEGORICAL = agent({"models.policy.class": "CategoricalMixin"})


def fixes(
    card: TaskCard, *, chosen: AgentCard = MLP, ranks: int = 1, values: Any = None, overrides: Any = None
) -> list[str]:
    """Return the fixes for a training with RSL-RL."""
    lookup = Lookup(name="rsl_rl", library=plugins.library("rsl_rl"), card=card, agent=chosen)
    manifest = Manifest(
        run_id="r",
        created="",
        task=Task(id="Demo", overrides=overrides or {}),
        library="rsl_rl",
        agent=values or {},
        resources=Resources(nproc_per_node=ranks),
    )
    return [problem.fix for problem in problems_of_fit(manifest, lookup)]


@pytest.mark.parametrize(("ranks", "refused"), [(1, False), (2, True), (8, False)])
def test_sizes_are_checked_with_the_envs_of_a_rank(ranks: int, refused: bool) -> None:
    chosen = agent({MINIBATCHES: 4, "num_steps_per_env": 24})
    found = fixes(TaskCard(task="Demo", num_envs=6), chosen=chosen, ranks=ranks, values={"num_steps_per_env": 1})
    assert found == ([f"Use {MINIBATCHES}=3, or more envs."] if refused else [])  # 8 ranks have an error of their own


def card(observation: Space, actions: Space = VECTOR, **agents: AgentCard) -> TaskCard:
    return TaskCard(task="Demo", num_envs=6, observations={"policy": observation}, actions=actions, agents=agents)


def test_spaces_that_fit_are_no_problem() -> None:
    assert fixes(card(VECTOR)) == []
    assert fixes(TaskCard(task="Demo", num_envs=6)) == []  # several agents, whose spaces a card does not have


@pytest.mark.parametrize(
    ("agents", "fix"),
    [
        ({}, ""),
        ({"rl_games": FLAT}, ""),
        ({"rl_games": CONV}, "Use library='rl_games'."),
        ({"rl_games": CONV, "sb3": agent({"policy": "CnnPolicy"})}, "Use library='rl_games' or library='sb3'."),
        ({"rl_games": agent({}, error="ImportError")}, ""),
        ({"rl_games": agent({}, missing=("rl-games",))}, ""),
        ({"sb3": agent({"policy": "CnnPolicy"}, needs_choice=True)}, "Use library='sb3', agent='generic'."),
        ({"skrl": agent({"agent.class": "MAPPO"})}, ""),  # which another library trains
        (
            {"rl_games": CONV, "sb3": agent({}), "skrl": agent({}), "skrl_jax": agent({})},
            "Use library='rl_games' or library='sb3' or library='skrl'.",
        ),
    ],
)
def test_the_fix_names_the_libraries_whose_configs_fit(agents: dict[str, AgentCard], fix: str) -> None:
    assert fixes(card(PICTURE, **agents)) == [fix]


def test_the_fix_names_the_generic_config_first() -> None:
    plain = card(PICTURE, rl_games=CONV)
    with_generic = TaskCard(
        task="Demo",
        num_envs=6,
        observations=plain.observations,
        actions=plain.actions,
        agents=plain.agents,
        generic_agents={"rsl_rl": CNN},
    )
    assert fixes(with_generic) == ["Use agent='generic' or library='rl_games'."]
    broken = agent({"actor.class_name": "CNNModel"}, generic=True, error="ImportError")
    assert fixes(dataclasses.replace(with_generic, generic_agents={"rsl_rl": broken})) == ["Use library='rl_games'."]


def test_the_fix_of_the_library_comes_before_the_others() -> None:
    last = Space(kind="box", shape=(64, 64, 3))
    chosen = agent({"actor.class_name": "CNNModel", "actor.cnn_cfg.kernel_size": [5]})
    (fix,) = fixes(card(last, rl_games=CONV), chosen=chosen)
    assert fix.startswith("Return it from the env as image.permute(0, 3, 1, 2)")
    assert fix.endswith("and change its space. Or use library='rl_games'.")


@pytest.mark.parametrize(
    ("overrides", "refused"),
    [
        ({}, True),
        ({"observation_space": 4}, False),
        ({"observation_space": [3, 32, 32]}, True),
        ({"observation_space": {"a": 2}}, False),  # which only Isaac Lab itself can tell
        ({"action_space": 2}, True),
        ({"state_space": [3, 64, 64]}, True),
    ],
)
def test_an_override_of_a_space_is_what_counts(overrides: dict[str, Json], refused: bool) -> None:
    assert bool(fixes(card(PICTURE), overrides=overrides)) is refused


def test_an_action_space_that_an_override_hides_is_not_judged() -> None:
    discrete = card(VECTOR, Space(kind="discrete"), skrl=CATEGORICAL)
    assert fixes(discrete) == ["Use library='skrl'."]
    assert fixes(discrete, overrides={"action_space": "{3}"}) == []
