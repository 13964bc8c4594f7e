"""Tests of rlnb.curves.figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

import rlnb
from rlnb.curves import figure, live, stream
from rlnb.curves.figure import MEAN_POINTS, bands_figure, mean_curve
from rlnb.hooks.registry import manager
from rlnb.plugin import Library, hookimpl
from rlnb.reports import sections
from rlnb.spec import METRICS, OFF_POLICY_METRICS

ITERATIONS = 12
FRAMES_PER_ITERATION = 64
SEEDS = (1, 2)


@pytest.fixture(scope="module")
def runs(echo_root):
    return [rlnb.train("Echo", library="echo", max_iterations=ITERATIONS, seed=seed).wait() for seed in SEEDS]


def test_the_default_is_one_subplot_for_each_usual_metric_that_was_logged(runs):
    shown = figure.figure(runs)
    assert [note.text for note in shown.layout.annotations] == ["reward", "episode length", "success rate", "fps"]
    assert len(shown.data) == 4 * len(SEEDS)


def test_a_tag_without_a_name_has_a_title():
    chart = figure.panels(["", "reward"], "frames")
    assert [note.text for note in chart.layout.annotations] == ["(no name)", "reward"]


def test_a_curve_shows_the_logged_values_over_frames(runs):
    trace = figure.figure(runs[:1], ["reward"]).data[0]
    assert list(trace.x) == [FRAMES_PER_ITERATION * (n + 1) for n in range(ITERATIONS)]
    assert list(trace.y) == pytest.approx(runs[0].metrics["reward"].values, rel=1e-6)


def test_x_is_iterations_or_seconds_since_the_start_of_the_run(runs):
    assert list(figure.figure(runs, ["reward"], x="iterations").data[0].x) == list(range(ITERATIONS))
    shown = figure.figure(runs, ["reward"], x="wall_time")
    assert 0.0 <= shown.data[0].x[0] < 60.0
    assert shown.layout.xaxis.title.text == "wall time (s)"


def test_long_wall_times_are_shown_in_hours():
    assert figure._x_scale("wall_time", [(np.array([0.0, 9000.0]), np.zeros(2))]) == (3600.0, "wall time (h)")


def test_each_run_has_one_colour_and_one_legend_entry_that_names_the_difference(runs):
    shown = figure.figure(runs)
    assert {(trace.name, trace.line.color) for trace in shown.data} == {
        ("seed 1", figure.PALETTE[0]),
        ("seed 2", figure.PALETTE[1]),
    }
    assert [trace.name for trace in shown.data if trace.showlegend] == ["seed 1", "seed 2"]


def test_runs_without_differences_are_labelled_by_their_ids(runs):
    same = [runs[0], runs[0]]
    assert figure.labels(same) == [runs[0].id, runs[0].id]


def test_axes_have_units_and_titles_explain_the_metric_on_hover(runs):
    shown = figure.figure(runs, ["fps"])
    assert (shown.layout.xaxis.title.text, shown.layout.yaxis.title.text) == ("frames", "frames/s")
    assert shown.layout.annotations[0].hovertext == METRICS["fps"]


def test_the_metrics_of_off_policy_algorithms_have_units():
    assert [figure.unit(name) for name in OFF_POLICY_METRICS] == ["loss", "value", "transitions"]


def test_a_metric_name_of_a_library_is_shown_like_those_of_rlnb(runs, monkeypatch: pytest.MonkeyPatch) -> None:
    meaning = "divergence from the reference policy, in nats per token"
    library = Library(name="own", backend="a:B", metric_names={"kl_to_reference": meaning})
    plugin = type("Own", (), {"rlnb_libraries": staticmethod(hookimpl(lambda: [library]))})
    rlnb.register(plugin, "own")
    try:
        name = "kl_to_reference"
        assert (figure.title(name), figure.unit(name)) == ("kl to reference", "nats per token")
        assert figure.explanation(name) == meaning
        monkeypatch.setattr(type(runs[0].metrics), "names", ["zeta", name, "fps", "reward"])
        assert figure.select(runs[:1], None) == ["reward", "fps", name], "after the usual metrics"
        with pytest.raises(rlnb.NotFoundError, match=r"Did you mean 'kl_to_reference'\?"):
            figure.select(runs, ["kl_to_referenc"])
    finally:
        manager().unregister(name="own")
    assert figure.title("kl_to_reference") == "kl_to_reference"
    assert [figure.unit(name) for name in ("entropy", "episode_length")] == ["nats", "env steps"]


def test_a_raw_tag_can_be_drawn(runs):
    assert len(figure.figure(runs, ["Perf/total_fps"]).data[0].x) == ITERATIONS


def test_the_error_for_an_unknown_metric_names_the_closest_one(runs):
    with pytest.raises(rlnb.NotFoundError, match=r"No metric named 'rewrd'.*Did you mean 'reward'\?"):
        figure.figure(runs, ["rewrd"])


def test_the_error_for_an_unknown_axis_names_the_closest_one(runs):
    with pytest.raises(rlnb.NotFoundError, match=r"No x axis named 'frame'.*Did you mean 'frames'\?"):
        figure.figure(runs, x="frame")


def test_tags_are_escaped_in_the_legend(runs):
    plain, tagged = (
        rlnb.train("Echo", library="echo", max_iterations=2, tags=tags).wait() for tags in ([], ["<b>_$x$"])
    )
    shown = figure.figure([plain, tagged], ["reward"])
    assert "&lt;b&gt;" in shown.data[1].name


def test_labels_use_tags_only_as_a_last_resort_and_ids_for_many_differences(runs):
    first = rlnb.train("Echo", library="echo", max_iterations=2, tags=["a"], agent={"goal": 0.5}).wait()
    assert "tags" not in figure.labels([runs[0], first])[1]
    odd = {"iteration_s": 0.0, "+note": "x", "goal": 0.2, "peak": 9}
    other = rlnb.train("Echo", library="echo", max_iterations=3, seed=9, agent=odd).wait()
    assert figure.labels([first, other]) == [first.id, other.id]


def test_metrics_of_the_task_follow_the_usual_ones(root, monkeypatch: pytest.MonkeyPatch) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=2).wait(60)
    usual = figure.select([run], None)
    own = [f"Metrics/error{number}" for number in range(9)]
    monkeypatch.setattr(type(run.metrics), "of_task", own)
    assert figure.select([run], None) == [*usual, *own[: figure.MOST_OF_TASK]]


@pytest.mark.parametrize("count", range(1, 8))
def test_there_are_as_many_axes_as_metrics(count):
    names = [f"metric {number}" for number in range(count)]
    layout = figure.panels(names, "frames").layout
    assert len([name for name in layout if name.startswith("xaxis")]) == count
    assert len([name for name in layout if name.startswith("yaxis")]) == count
    assert [note.text for note in layout.annotations] == names


def test_a_usual_metric_without_a_finite_value_has_no_axes(root):
    from rlnb_echo.event_file import EventFile

    run = rlnb.train("Echo", library="echo", max_iterations=3).wait()
    for path in run.record.folder.event_files():
        path.unlink()
    events = EventFile(run.path / "logs")
    events.add(0, {"Train/mean_reward": float("nan"), "Perf/total_fps": 10.0})
    events.close()
    shown = figure.figure([rlnb.get_run(run.id)])
    assert [note.text for note in shown.layout.annotations] == ["fps"]


# -- bands -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def seeds(echo_root: Path) -> list[rlnb.Run]:
    """Three runs that differ only in their seed."""
    runs = [rlnb.train("Echo", library="echo", max_iterations=8, seed=seed) for seed in range(3)]
    return [run.wait(timeout_s=30) for run in runs]


def test_the_band_is_the_interval_of_the_mean_over_seeds(seeds: list[rlnb.Run]) -> None:
    frames, mean, half = mean_curve(seeds, "reward")
    last = [run.metrics["reward"].last for run in seeds]
    assert frames.shape == mean.shape == half.shape == (MEAN_POINTS,)
    assert frames[-1] == seeds[0].metrics["reward"].frames[-1]
    assert mean[-1] == pytest.approx(np.mean(last))
    # Student's t for two degrees of freedom, 97.5 %: 4.303 in any table.
    assert half[-1] == pytest.approx(4.303 * np.std(last, ddof=1) / np.sqrt(3), rel=1e-3)


def test_one_seed_has_no_band_and_no_data_no_curve(seeds: list[rlnb.Run]) -> None:
    assert not mean_curve(seeds[:1], "reward")[2].any()
    assert len(mean_curve(seeds, "value_loss")[0]) == 0


def test_each_group_is_one_colour_named_once_with_its_seeds(seeds: list[rlnb.Run]) -> None:
    shown = bands_figure({"one": seeds, "<b>two": seeds[:1]}, ["reward", "episode_length"])
    named = [trace.name for trace in shown.data if trace.showlegend]
    assert named == ["one (3 seeds)", "&lt;b&gt;two (1 seed)"]
    assert len({trace.line.color for trace in shown.data if trace.legendgroup == "one"}) == 1


def test_the_picture_of_a_band_is_faint_and_has_no_edges(seeds: list[rlnb.Run]) -> None:
    from io import BytesIO

    from PIL import Image

    from rlnb.curves.figure import colour
    from rlnb.display.figures import png

    shown = np.asarray(Image.open(BytesIO(png(bands_figure({"one": seeds}, ["reward"])))).convert("RGB")).reshape(-1, 3)
    full = np.array([int(colour(0)[at : at + 2], 16) for at in (1, 3, 5)])
    faint = np.round(255 - 0.2 * (255 - full))
    strong, band = (np.abs(shown - wanted).max(axis=1) <= 3 for wanted in (full, faint))
    assert band.sum() > strong.sum() > 0


# -- groups of metrics -----------------------------------------------------------------------------------------------


def test_a_group_of_metrics_stands_for_its_members(root, monkeypatch: pytest.MonkeyPatch) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=2).wait(60)
    with_terms(run, ["Episode_Reward/reach", "Episode_Reward/alive", "Loss/extra"])
    terms = ["Episode_Reward/alive", "Episode_Reward/reach"]
    assert run.metrics.groups == {"Episode_Reward": terms, "Loss": ["Loss/extra"]}
    for name in ("Episode_Reward", "Episode_Reward/", "Episode_Reward/*"):
        assert figure.select([run], ["reward", name]) == ["reward", *terms]
    assert "in .groups: Episode_Reward (2), Loss (1)" in repr(run.metrics)
    with pytest.raises(rlnb.NotFoundError, match="No metric named 'Episode_Rewards'"):
        figure.select([run], "Episode_Rewards")
    assert rlnb.compare([run], "Episode_Reward").metrics == tuple(terms)


def test_the_layout_of_a_dashboard_and_a_report_have_the_groups(root) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=2).wait(60)
    with_terms(run, ["Episode_Reward/<b>"])
    assert stream.layout([run], ["reward"], "frames", None).groups == [("Episode_Reward", ["Episode_Reward/<b>"])]
    folded = sections.further_curves([run])
    assert folded.startswith("<details><summary>Episode_Reward: 1 metric</summary><img ")
    assert "<b>" not in folded
    assert live.further([run]) == "<small>Further metrics: <code>watch(&#x27;Episode_Reward&#x27;)</code> (1)</small>"


def with_terms(run: rlnb.Run, names: list[str]) -> None:
    """Log further metrics of a run."""
    writer = EventFileWriter(str(run.path / "logs"), filename_suffix=".further")
    assert run.started is not None
    for step in range(2):
        values = [Summary.Value(tag=name, simple_value=float(step)) for name in names]
        writer.add_event(Event(wall_time=run.started.time_s + step, step=step, summary=Summary(value=values)))
    writer.close()
