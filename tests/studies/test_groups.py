"""Groups of runs."""

import numpy as np
import pytest

import rlnb

FAST = {"library": "echo", "max_iterations": 12}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLNB_QUEUE", str(tmp_path_factory.mktemp("queue")))
        patch.setattr(rlnb.options, "root", tmp_path_factory.mktemp("root"))
        patch.setattr(rlnb.options, "warm", False)
        yield [
            rlnb.train("Echo", **FAST, seed=seed, agent={"iteration_s": rate}, tags=[f"t{seed}"]).wait()
            for rate in (0.01, 0.02)
            for seed in range(3)
        ]


def test_runs_that_differ_only_in_their_seed_are_one_group(runs):
    assert {name: len(found) for name, found in rlnb.compare(runs).items()} == {
        "agent.iteration_s 0.01": 3,
        "agent.iteration_s 0.02": 3,
    }


def test_seeds_that_start_from_runs_of_their_own_are_one_group_and_others_from_scratch_another(runs):
    first, second = runs[:2]
    seeds = [rlnb.train("Echo", library="echo", max_iterations=2, seed=seed) for seed in (1, 2)]
    later = [
        rlnb.train("Echo", library="echo", max_iterations=2, seed=seed, init_from=run)
        for seed, run in enumerate((first, second), 1)
    ]
    groups = rlnb.compare([run.wait() for run in (*seeds, *later)])
    assert sorted(map(len, groups.values())) == [2, 2]
    assert len(rlnb.compare(later, by="parent")) == 2


def test_runs_are_grouped_by_one_name_several_names_or_a_function(runs):
    assert list(rlnb.compare(runs, by="library")) == ["echo"]
    assert len(rlnb.compare(runs, by=["seed", "agent.iteration_s"])) == 6
    assert set(rlnb.compare(runs, by=lambda run: run.manifest.seed % 2)) == {"0", "1"}


def test_a_row_has_the_mean_of_the_last_values_with_its_interval(runs):
    row = rlnb.compare(runs, ["reward", "fps"], by="library").table().iloc[0]
    last = [run.metrics["reward"].last for run in runs]
    assert row["reward"] == pytest.approx(sum(last) / 6)
    assert row["reward_low"] < row["reward"] < row["reward_high"]
    assert row["runs"] == 6


def test_a_group_of_one_run_has_no_interval(runs):
    groups = rlnb.compare(runs[:1])
    row = groups.table().iloc[0]
    assert row["reward"] == runs[0].metrics["reward"].last
    assert np.isnan(row["reward_low"])
    assert np.isnan(row["reward_high"])
    assert repr(groups) == "Groups(Echo: 1 run)"
    assert [trace.name for trace in groups.plot().data] == ["Echo (1 seed)"]


def test_each_group_is_a_curve_with_a_band(runs):
    figure = rlnb.compare(runs).plot()
    assert [trace.name for trace in figure.data if trace.showlegend] == [
        "agent.iteration_s 0.01 (3 seeds)",
        "agent.iteration_s 0.02 (3 seeds)",
    ]
    assert len([trace for trace in figure.data if trace.fill == "tonexty"]) == 2


def test_a_notebook_gets_plotly_and_a_picture(runs):
    shown = rlnb.compare(runs)._repr_mimebundle_()
    assert {"application/vnd.plotly.v1+json", "image/png", "text/plain"} == set(shown)


def test_unknown_names_are_refused(runs):
    with pytest.raises(rlnb.NotFoundError, match="Did you mean 'library'"):
        rlnb.compare(runs, by="libary")
    with pytest.raises(rlnb.NotFoundError, match="Did you mean 'reward'"):
        rlnb.compare(runs, "rewrd")
    with pytest.raises(rlnb.RlnbError, match=r"rlnb\.train"):
        rlnb.compare([])


def test_a_run_whose_last_value_is_not_finite_is_not_left_out_of_the_mean(copied, runs):
    from rlnb_echo.event_file import EventFile

    mine = copied(runs[:2])
    events = EventFile(mine[1].path / "logs")
    events.add(12, {"Train/mean_reward": float("nan")})
    events.close()
    row = rlnb.compare(mine, by="library").table().iloc[0]
    assert np.isnan(mine[1].metrics["reward"].last)
    assert np.isnan([row["reward"], row["reward_low"], row["reward_high"]]).all()
    assert [run.id for run in rlnb.runs().sorted("reward", descending=False)] == [run.id for run in mine]
