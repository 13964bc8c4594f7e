"""The driver of a sweep's trials, without its thread."""

import time
from types import SimpleNamespace

import pytest

import rlnb
from rlnb.studies import trials
from rlnb.studies.trials import Driver, Search, at_once_sampler, runs_of

optuna = pytest.importorskip("optuna")


@pytest.fixture
def study():
    return optuna.create_study(study_name="one", direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))


def start(values, number):
    return rlnb.train(
        "Echo", library="echo", max_iterations=20, agent=dict(values), tags=["sweep:one", f"trial:{number}"]
    )


def search(**changes):
    space = {"goal": optuna.distributions.FloatDistribution(0.0, 1.0)}
    fields = {"space": space, "n_trials": 2, "at_once": 2, "metric": "reward", "objective": None, "start": start}
    return Search(**{**fields, **changes})


def drive(study, tmp_path, **changes):
    with open(tmp_path / "lock", "w") as lock:
        driver = Driver(study, search(**changes), lock)
        driver.drive()
    return driver


def test_the_value_of_a_trial_is_the_mean_of_the_metric_at_the_end_of_its_run(root, tmp_path, study):
    assert drive(study, tmp_path).error is None
    runs = runs_of("one")
    assert sorted(runs) == [0, 1]
    for trial in study.trials:
        run = runs[trial.number]
        assert trial.user_attrs["run"] == run.id
        assert run.manifest.agent == trial.params
        assert trial.value == pytest.approx(sum(run.metrics["reward"].values[-2:]) / 2)
        assert len(trial.intermediate_values) == 20, "with few iterations, each one is reported"


def test_a_trial_that_cannot_start_fails_and_ends_the_search(root, tmp_path, study):
    def refuse(values, number):
        raise rlnb.RlnbError("the queue is closed")

    driver = drive(study, tmp_path, start=refuse)
    assert str(driver.error) == "the queue is closed"
    assert [trial.state.name for trial in study.trials] == ["FAIL"]


def test_a_trial_without_the_metric_fails(root, tmp_path, study):
    driver = drive(study, tmp_path, n_trials=1, metric="Train/nothing")
    assert isinstance(driver.error, rlnb.NotFoundError)
    assert [trial.state.name for trial in study.trials] == ["FAIL"]


def test_runs_of_other_sweeps_or_without_a_trial_number_are_not_trials_of_the_sweep(root):
    rlnb.train("Echo", library="echo", max_iterations=1, tags=["sweep:other", "trial:0"]).wait(60)
    rlnb.train("Echo", library="echo", max_iterations=1, tags=["sweep:one", "trial:x"]).wait(60)
    assert runs_of("one") == {}


def test_a_trial_whose_kernel_died_before_it_made_the_run_is_tried_again(root, tmp_path, study):
    lost = study.ask({"goal": optuna.distributions.FloatDistribution(0.0, 1.0)})
    assert drive(study, tmp_path).error is None
    assert [trial.state.name for trial in study.trials] == ["FAIL", "COMPLETE", "COMPLETE"]
    assert study.trials[1].params == lost.params
    assert sorted(runs_of("one")) == [1, 2]


CHOICES = [0.1, 0.5, 1.0]
GRID = {"goal": optuna.distributions.CategoricalDistribution(CHOICES)}


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_grid_that_is_used_up_ends_the_search_without_an_error(root, tmp_path, monkeypatch):
    monkeypatch.setattr(trials, "POLL_S", 0.01)
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(60)
    each = {"n_trials": 5, "at_once": 1, "start": lambda values, number: run}
    array = {"n_trials": 3, "start_array": lambda values: [run for _ in values]}
    for sampler, how in (
        (at_once_sampler(GRID), array),
        (optuna.samplers.GridSampler({"goal": CHOICES}), each),
        (optuna.samplers.BruteForceSampler(), each),
    ):
        study = optuna.create_study(study_name="one", sampler=sampler, pruner=optuna.pruners.HyperbandPruner())
        assert drive(study, tmp_path, space=GRID, **how).error is None
        assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 3
        assert sorted(trial.params["goal"] for trial in study.trials) == CHOICES
    for lost in (1, 3):  # trials of a kernel that died before it made their runs
        study = optuna.create_study(study_name="one", sampler=at_once_sampler(GRID))
        for _ in range(lost):
            study.ask(GRID)
        assert drive(study, tmp_path, space=GRID, **{**each, "n_trials": 3}).error is None
        complete = study.get_trials(states=[optuna.trial.TrialState.COMPLETE])
        assert sorted(trial.params["goal"] for trial in complete) == CHOICES
        assert len(study.trials) == 3 + lost


def test_many_trials_are_looked_at_less_often(root, tmp_path, study, monkeypatch):
    pauses_s = []
    real_sleep = time.sleep
    monkeypatch.setattr(trials, "LOOKS_PER_S", 4)
    monkeypatch.setattr(trials, "time", SimpleNamespace(sleep=lambda s: pauses_s.append(s) or real_sleep(s)))
    drive(study, tmp_path, n_trials=3, at_once=3)
    assert pauses_s[0] == 0.75
    assert min(pauses_s) >= trials.POLL_S
