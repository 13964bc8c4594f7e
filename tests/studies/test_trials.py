"""The driver of a sweep's trials, without its thread."""

import time
from types import SimpleNamespace

import pytest

import rlnb
from rlnb.studies import trials
from rlnb.studies.trials import Driver, Search, runs_of

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
    fields = {"n_trials": 2, "at_once": 2, "metric": "reward", "objective": None, "start": start}
    return Search(space=space, **{**fields, **changes})


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


def test_many_trials_are_looked_at_less_often(root, tmp_path, study, monkeypatch):
    pauses_s = []
    real_sleep = time.sleep
    monkeypatch.setattr(trials, "LOOKS_PER_S", 4)
    monkeypatch.setattr(trials, "time", SimpleNamespace(sleep=lambda s: pauses_s.append(s) or real_sleep(s)))
    drive(study, tmp_path, n_trials=3, at_once=3)
    assert pauses_s[0] == 0.75
    assert min(pauses_s) >= trials.POLL_S
