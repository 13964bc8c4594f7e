"""Sweeps: trials are runs, Optuna chooses their values, and a killed kernel loses nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rlnb
from rlnb.studies import get_sweep, trials

sys.path.insert(0, str(Path(__file__).parents[1] / "rig"))

from other_user import OTHER_UID
from other_user import answer as asked_by

optuna = pytest.importorskip("optuna")

GOALS = {"agent.goal": (0.0, 1.0)}
FAST = {"max_iterations": 20}
SIX_S = {"max_iterations": 60, "agent": {"iteration_s": 0.1}}
SLOW = {**SIX_S, "max_iterations": 600}
"""Arguments of trials that the test cancels."""


def states(sweep):
    return [trial.state.name for trial in sweep.study.trials]


def end(sweep):
    """Cancel the runs of a sweep until its thread ends, since the thread may be starting a trial."""
    sweep.stop()
    deadline = time.monotonic() + 30
    while sweep.driven_here:
        assert time.monotonic() < deadline, "the sweep still runs"
        for run in sweep.runs:
            run.cancel()
        time.sleep(0.2)
    sweep.wait()


def test_trials_are_runs_and_the_best_is_the_one_with_the_best_value(root):
    sweep = rlnb.sweep("Echo", "echo", space=GOALS, n_trials=6, name="goals", **FAST).wait(120)
    assert len(sweep.runs) == 6
    assert set(states(sweep)) <= {"COMPLETE", "PRUNED"}
    goals = {run.id: run.manifest.agent["goal"] for run in sweep.runs}
    complete = sweep.table().query("state == 'complete'")
    assert goals[sweep.best.id] == max(goals[id] for id in complete["run"])
    assert sweep.best.tags >= {"sweep:goals"}


def test_the_value_is_the_mean_of_the_last_tenth_or_that_of_the_objective(root):
    one = rlnb.sweep("Echo", "echo", space=GOALS, n_trials=1, name="mean", **FAST).wait(60)
    last = one.best.metrics["reward"].values[-2:]
    assert one.study.best_value == pytest.approx(sum(last) / 2)
    other = rlnb.sweep(
        "Echo",
        "echo",
        space=GOALS,
        n_trials=1,
        name="own",
        objective=lambda run: run.manifest.agent["goal"] * 7,
        **FAST,
    ).wait(60)
    assert other.study.best_value == pytest.approx(7 * other.best.manifest.agent["goal"])


def test_a_pruned_trial_is_cancelled(root):
    pruner = optuna.pruners.ThresholdPruner(lower=0.4, n_warmup_steps=20)
    choices = {"agent.goal": [0.1]}
    sweep = rlnb.sweep("Echo", "echo", space=choices, n_trials=1, pruner=pruner, name="poor", **SLOW).wait(60)
    assert states(sweep) == ["PRUNED"]
    run = sweep.runs[0]
    assert run.state == "cancelled"
    assert run.progress[0] < SLOW["max_iterations"]


def test_several_trials_run_at_once(root):
    sweep = rlnb.sweep("Echo", "echo", space=GOALS, n_trials=3, parallel=3, name="side", **SLOW)
    deadline = time.monotonic() + 30
    while [run.state for run in sweep.runs].count("running") < 3 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert [run.state for run in sweep.runs] == ["running"] * 3
    end(sweep)


@pytest.mark.slow
def test_after_a_kill_of_the_kernel_the_same_call_continues(root):
    arguments = "'Echo', 'echo', space={'agent.goal': (0.0, 1.0)}, n_trials=3, name='on'"
    slow = "max_iterations=60, agent={'iteration_s': 0.1}, pruner=optuna.pruners.NopPruner()"
    code = f"import optuna, rlnb\nsweep = rlnb.sweep({arguments}, {slow})\nprint('going', flush=True)\nsweep.wait()"
    kernel = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=dict(os.environ))
    assert kernel.stdout.readline() == b"going\n"
    while not [run for run in rlnb.runs(tag="sweep:on") if run.state == "running"]:
        time.sleep(0.1)
    kernel.send_signal(signal.SIGKILL)
    kernel.wait()
    assert get_sweep("on").study.trials[0].state.name == "RUNNING"
    sweep = rlnb.sweep(
        "Echo", "echo", space=GOALS, n_trials=3, name="on", pruner=optuna.pruners.NopPruner(), **SIX_S
    ).wait(120)
    assert states(sweep) == ["COMPLETE"] * 3
    assert len(sweep.runs) == 3, "the trial that ran meanwhile is not started again"


def test_one_kernel_drives_a_sweep(root, caplog):
    sweep = rlnb.sweep("Echo", "echo", space=GOALS, n_trials=1, name="mine", **SLOW)
    assert rlnb.sweep("Echo", "echo", space=GOALS, n_trials=1, name="mine", **SLOW) is sweep, "the cell may run again"
    assert "no effect" not in caplog.text
    assert rlnb.sweep("Echo", "echo", space=GOALS, n_trials=5, name="mine", **SLOW) is sweep
    assert "mine is already running here. To change n_trials, call .stop() and .wait()" in caplog.text
    assert "parallel" not in caplog.text
    sweep.stop()
    assert rlnb.sweep("Echo", "echo", space=GOALS, n_trials=5, name="mine", **SLOW) is sweep
    assert "mine was stopped, and its last trials are running. Call .wait() on it first" in caplog.text
    code = "import rlnb\nrlnb.sweep('Echo', 'echo', space={'agent.goal': (0.0, 1.0)}, n_trials=1, name='mine')"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ))
    assert "rlnb.studies.get_sweep('mine')" in other.stderr
    end(sweep)


def test_a_refused_call_releases_the_lock(root):
    rlnb.sweep("Echo", "echo", space=GOALS, n_trials=1, name="free", **FAST).wait(60)
    for _ in range(2):
        with pytest.raises(rlnb.RlnbError, match="has metric='reward'"):
            rlnb.sweep("Echo", "echo", space=GOALS, n_trials=1, name="free", metric="fps", **FAST)
    rlnb.sweep("Echo", "echo", space=GOALS, n_trials=2, name="free", **FAST).wait(60)


def test_a_continued_sweep_does_not_repeat_values(root):
    for number in (2, 4):
        sweep = rlnb.sweep("Echo", "echo", space=GOALS, n_trials=number, name="more", **FAST).wait(60)
    assert len({trial.params["agent.goal"] for trial in sweep.study.trials}) == 4


def test_a_failing_objective_ends_the_sweep_but_running_trials_are_watched(root):
    def objective(run):
        raise ZeroDivisionError("my mistake")

    sweep = rlnb.sweep("Echo", "echo", space=GOALS, n_trials=3, name="bad", objective=objective, parallel=2, **FAST)
    with pytest.raises(ZeroDivisionError, match="my mistake"):
        sweep.wait(60)
    assert set(states(sweep)) == {"FAIL"}
    assert len(states(sweep)) < 3, "no further trial is started"


def test_two_sweeps_of_one_task_may_begin_at_the_same_second(root):
    """Two users of a root cannot agree on the second."""
    sweeps = [rlnb.sweep("Echo", "echo", space=GOALS, n_trials=1, **FAST) for _ in range(2)]
    assert [len(sweep.wait(60).runs) for sweep in sweeps] == [1, 1]
    assert sweeps[0].name != sweeps[1].name


def test_an_archived_trial_still_belongs_to_the_sweep(root):
    sweep = rlnb.sweep("Echo", "echo", space=GOALS, n_trials=2, name="old", **FAST).wait(60)
    sweep.runs.archive().apply()
    assert len(sweep.runs) == 2
    assert sweep.best.id in {run.id for run in sweep.runs}


def test_the_name_of_another_search_is_refused(root):
    rlnb.sweep("Echo", "echo", space=GOALS, n_trials=1, name="taken", **FAST).wait(60)
    with pytest.raises(rlnb.RlnbError, match="has metric='reward', not 'fps'"):
        rlnb.sweep("Echo", "echo", space=GOALS, n_trials=1, name="taken", metric="fps", **FAST)


def test_importances_and_parallel_coordinates(root):
    two = {"agent.goal": (0.0, 1.0), "seed": (1, 9)}
    pruner = optuna.pruners.NopPruner()
    sweep = rlnb.sweep("Echo", "echo", space=two, n_trials=12, name="two", pruner=pruner, **FAST).wait(200)
    found = sweep.importances()
    assert found["agent.goal"] > found["seed"]
    assert "agent.goal" in sweep.plot().to_json()
    assert sweep.plot_importances().data[0].type == "bar"
    assert "<td" in sweep._repr_html_()


def test_without_a_complete_trial_there_is_no_best_run(root):
    sweep = rlnb.sweep("Echo", "echo", space=GOALS, n_trials=1, name="early", **SLOW)
    with pytest.raises(rlnb.RlnbError, match="No trial of early is complete yet"):
        sweep.best  # noqa: B018
    with pytest.raises(rlnb.RlnbError, match="Importances need 4 complete trials"):
        sweep.importances()
    end(sweep)


def test_all_problems_are_reported_at_once_and_nothing_is_started(root):
    wrong = {"agent.goal": "all of it", "max_iterations": (0, 5)}
    with pytest.raises(rlnb.CheckError) as caught:
        rlnb.sweep("Echo", "echo", space=wrong, n_trials=0, max_iteration=3)
    text = str(caught.value)
    assert "n_trials=0" in text
    assert "space['agent.goal'] = 'all of it' is not a range" in text
    assert "Did you mean 'max_iterations'" in text
    assert "max_iterations=0" in text
    assert not (root / "sweeps").exists()
    assert not rlnb.runs()


def test_an_unknown_sweep_is_refused_with_the_closest_name(root):
    rlnb.sweep("Echo", "echo", space=GOALS, n_trials=1, name="known", **FAST).wait(60)
    with pytest.raises(rlnb.NotFoundError, match="Did you mean 'known'"):
        get_sweep("knwon")


def test_the_dashboard_answers_on_loopback(root):
    import urllib.request

    pytest.importorskip("optuna_dashboard")
    sweep = rlnb.sweep("Echo", "echo", space=GOALS, n_trials=1, name="shown", **FAST).wait(60)
    server = sweep.dashboard()
    with urllib.request.urlopen(f"{server.url}api/studies", timeout=10) as answer:
        assert b"shown" in answer.read()
    if os.geteuid() == 0:
        assert asked_by(server.port, OTHER_UID) == "", "another user gets no answer"
    server.close()
    assert not server.alive


def test_hostile_text_is_escaped_in_the_table(root):
    hostile = "<script>alert(1)</script>"
    path = rlnb.options.folders.sweeps / "odd.journal"
    path.parent.mkdir(parents=True)
    study = optuna.create_study(study_name="odd", storage=trials.storage(path))
    distribution = optuna.distributions.CategoricalDistribution([hostile])
    study.add_trial(
        optuna.trial.create_trial(
            value=1.0,
            params={hostile: hostile},
            distributions={hostile: distribution},
            user_attrs={"run": hostile},
        )
    )
    html = get_sweep("odd")._repr_html_()
    assert html.count("&lt;script&gt;") == 3
    assert "<script" not in html


def test_another_search_under_the_same_name_is_refused(root):
    call = {"space": GOALS, "n_trials": 1, "name": "one", **FAST}
    rlnb.sweep("Echo", "echo", **call).wait(60)
    for changed, expected in (
        ({"space": {"agent.goal": (0.5, 3.0)}}, "space='agent.goal"),
        ({"max_iterations": 12}, "arguments='.*20"),
        ({"direction": "minimize"}, "direction='maximize'"),
    ):
        with pytest.raises(rlnb.RlnbError, match=f"has {expected}"):
            rlnb.sweep("Echo", "echo", **{**call, "n_trials": 2, **changed})
    assert len(states(get_sweep("one"))) == 1
    slow = {**call, "name": "two", **SLOW}
    going = rlnb.sweep("Echo", "echo", **slow)
    with pytest.raises(rlnb.RlnbError, match=r"Use another name\."):
        rlnb.sweep("Echo", "echo", **{**slow, "space": {"agent.goal": (0.5, 3.0)}})
    end(going)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"metric": "rewrd"}, "Did you mean 'reward'"),
        ({"direction": "maximise"}, "Did you mean 'maximize'"),
        ({"parallel": 0}, "parallel=0"),
    ],
)
def test_invalid_arguments_are_refused_before_anything_is_written(root, arguments, expected):
    with pytest.raises(rlnb.RlnbError, match=expected):
        rlnb.sweep("Echo", "echo", space=GOALS, n_trials=1, name="none", **arguments)
    assert not rlnb.options.folders.sweeps.exists()


def test_the_figures_include_a_static_picture(root):
    sweep = rlnb.sweep("Echo", "echo", space=GOALS, n_trials=5, pruner=optuna.pruners.NopPruner(), name="drawn", **FAST)
    sweep.wait(120)
    for figure in (sweep.plot(), sweep.plot_importances()):
        assert set(figure._repr_mimebundle_()) == {"application/vnd.plotly.v1+json", "image/png", "text/plain"}


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_trial_whose_value_is_not_finite_has_failed_and_is_never_the_best(root, direction):
    def objective(run):
        number = next(int(tag.removeprefix("trial:")) for tag in run.tags if tag.startswith("trial:"))
        if number < 3:
            return (float("nan"), float("inf"), float("-inf"))[number]
        if number == 3:
            for path in run.checkpoints:
                path.write_text('{"iteration": 0, "level": NaN}')
            return run.evaluate(4).success_rate  # raises an error
        return 0.5

    sweep = rlnb.sweep(
        "Echo",
        "echo",
        space=GOALS,
        n_trials=5,
        objective=objective,
        pruner=optuna.pruners.NopPruner(),
        direction=direction,
        name=f"odd-{direction}",
        max_iterations=1,
    ).wait(120)
    assert states(sweep) == ["FAIL", "FAIL", "FAIL", "FAIL", "COMPLETE"]
    assert "trial:4" in sweep.best.tags
    infinite = optuna.trial.create_trial(value=float("inf" if direction == "maximize" else "-inf"))
    sweep.study.add_trial(infinite)  # as older versions of rlnb took it
    assert "trial:4" in sweep.best.tags


def test_a_grid_has_one_trial_for_each_combination(root):
    space = {"seed": [1, 2], "agent.goal": [0.5, 1.0]}
    sweep = rlnb.sweep("Echo", "echo", space=space, max_iterations=2, parallel=2).wait()
    pairs = {(run.manifest.seed, run.manifest.agent["goal"]) for run in sweep.runs}
    assert pairs == {(seed, goal) for seed in (1, 2) for goal in (0.5, 1.0)}
    assert len(sweep.runs) == 4
