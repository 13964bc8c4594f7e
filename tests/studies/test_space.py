"""The search space of a sweep, and the check of its ends."""

import json

import pytest

import rlnb
from rlnb.hooks import plugins
from rlnb.launchers import LocalLauncher
from rlnb.studies import space
from rlnb.studies.space import _OF_REWARD, Trainings, check, grid_size

optuna = pytest.importorskip("optuna")


@pytest.fixture
def trainings(root):
    task = rlnb.Task(id="Echo")
    return Trainings(task, "echo", LocalLauncher(), max_iterations=2, tags=["mine"], agent={"iteration_s": 0.0})


def test_ranges():
    kinds = {"a": (1, 8), "b": (1e-5, 1e-2, "log"), "c": [1, "two"], "d": optuna.distributions.FloatDistribution(0, 1)}
    distributions = {name: space.distribution(name, domain) for name, domain in kinds.items()}
    assert distributions["a"] == optuna.distributions.IntDistribution(1, 8)
    assert distributions["b"] == optuna.distributions.FloatDistribution(1e-5, 1e-2, log=True)
    assert distributions["c"] == optuna.distributions.CategoricalDistribution([1, "two"])
    assert distributions["d"] is kinds["d"]
    with pytest.raises(rlnb.RlnbError, match=r"space\['e'\]"):
        space.distribution("e", (2.0, 1.0))


def test_values_are_sorted_by_their_names():
    parameters = space.split({"agent.algorithm.learning_rate": 1e-3, "num_envs": 64, "sim.dt": 0.01})
    assert parameters.agent == {"algorithm.learning_rate": 1e-3}
    assert parameters.arguments == {"num_envs": 64}
    assert parameters.overrides == {"sim.dt": 0.01}


def test_a_training_has_the_values_of_its_trial_and_the_common_ones(trainings):
    values = {"agent.goal": 0.5, "seed": 3, "max_iterations": 4}
    manifest = trainings.start(values, tags=["trial:0"]).wait(60).manifest
    assert manifest.agent == {"iteration_s": 0.0, "goal": 0.5}
    assert (manifest.seed, manifest.max_iterations) == (3, 4)
    assert manifest.tags == ("mine", "trial:0")


def test_the_overrides_of_a_trial_are_added_to_those_of_the_task():
    task = rlnb.Task(id="Echo", overrides={"sim.dt": 0.01, "seed": 1})
    trainings = Trainings(task, "echo", LocalLauncher())
    assert trainings._task({"sim.dt": 0.02, "decimation": 2}).overrides == {"sim.dt": 0.02, "seed": 1, "decimation": 2}


def test_each_end_and_each_choice_is_checked(trainings):
    with pytest.raises(rlnb.CheckError) as raised:
        space.check(trainings, {"max_iterations": (0, 5), "num_envs": [1, -2]}, n_trials=1)
    assert "max_iterations=0" in str(raised.value)
    assert "num_envs=-2" in str(raised.value)
    assert "max_iterations=5" not in str(raised.value)
    distributions = space.check(trainings, {"max_iterations": (1, 5)}, n_trials=1)
    assert distributions == {"max_iterations": optuna.distributions.IntDistribution(1, 5)}


def test_the_config_of_a_whole_run_is_that_of_each_trial_without_its_seed(root, tmp_path):
    config = plugins.agent_config(plugins.library("echo").default_agent)
    path = tmp_path / "agent.yaml"
    path.write_text(json.dumps({**config, "goal": 3.0, "iteration_s": 0.0, "seed": 7}))
    trainings = Trainings(rlnb.Task(id="Echo"), "echo", LocalLauncher(), max_iterations=2, agent=path)
    assert trainings.check({"seed": 3}) == []
    manifest = trainings.start({"seed": 3, "agent.iteration_s": 0.001}, tags=[]).wait(60).manifest
    assert (manifest.seed, manifest.agent["goal"], manifest.agent["iteration_s"]) == (3, 3.0, 0.001)
    assert "seed" not in manifest.agent


def test_an_empty_space_is_refused(trainings):
    with pytest.raises(rlnb.CheckError, match="space is empty"):
        space.check(trainings, {}, n_trials=1)


@pytest.mark.parametrize("name", ["rewards.reach.weight", "rew_scale_alive", "cfg.reward_scale", "reward.alive"])
def test_a_space_that_changes_the_reward_is_not_judged_by_it(trainings, name):
    choices = {name: [0.5, 1.0]}
    with pytest.raises(rlnb.CheckError, match=f"The space changes the reward \\({name}\\)") as error:
        check(trainings, choices, 2, value="reward")
    assert 'metric="success_rate"' in str(error.value)
    for value in ("success_rate", ""):
        with pytest.raises(rlnb.CheckError) as error:  # Echo has no such config value
            check(trainings, choices, 2, value=value)
        assert "changes the reward" not in str(error.value)


@pytest.mark.parametrize("name", ["agent.iteration_s", "num_envs", "scene.crew.size", "agent.algorithm.rewind"])
def test_other_names_do_not_change_the_reward(name):
    assert not _OF_REWARD.search(name)


def test_without_a_number_of_trials_a_space_of_choices_is_a_grid(trainings):
    distributions = check(trainings, {"seed": [1, 2, 3], "agent.iteration_s": [0.0, 0.001]}, None)
    assert grid_size(distributions) == 6
    with pytest.raises(rlnb.CheckError, match=r"agent.iteration_s is a range.*\n.*n_trials=20"):
        check(trainings, {"seed": [1, 2], "agent.iteration_s": (0.0, 0.001)}, None)


def test_a_list_of_seeds_is_no_argument_of_a_trial(root):
    with pytest.raises(rlnb.CheckError, match=r"seed=\[1, 2\] starts several runs") as error:
        rlnb.sweep("Echo", "echo", space={"agent.iteration_s": [0.0]}, n_trials=1, seed=[1, 2])
    assert 'space={"seed": [1, 2], ...}' in str(error.value)
