"""The x axes of a curve, and fewer points."""

from __future__ import annotations

import dataclasses

import numpy as np

from rlnb.metrics.series import Series, Span, decimate

HORIZON, NUM_ENVS = 24, 4
FRAMES_PER_ITERATION = HORIZON * NUM_ENVS
BEGUN = 1e9


def span(start: float = BEGUN, frames_per_step: float = FRAMES_PER_ITERATION, steps_per_iteration: float = 1.0) -> Span:
    return Span(start_time=start, frames_per_step=frames_per_step, steps_per_iteration=steps_per_iteration)


def test_a_library_that_counts_timesteps_has_the_same_frames() -> None:
    per_timestep = dataclasses.replace(span(frames_per_step=NUM_ENVS, steps_per_iteration=HORIZON), logged_at_end=True)
    series = Series("reward", [(HORIZON * done, BEGUN + done, 0.0) for done in (1, 2, 3)], [per_timestep])
    assert series.frames == [FRAMES_PER_ITERATION * done for done in (1, 2, 3)]
    assert series.iterations == [0, 1, 2]


def test_a_library_that_logs_frames_at_the_start_of_an_iteration_has_the_same_frames() -> None:
    per_frame = span(frames_per_step=1.0, steps_per_iteration=FRAMES_PER_ITERATION)
    points = [(FRAMES_PER_ITERATION * done, BEGUN + done, 0.0) for done in (0, 1, 2)]
    series = Series("reward", points, [per_frame])
    assert series.frames == [FRAMES_PER_ITERATION * done for done in (1, 2, 3)]
    assert series.iterations == [0, 1, 2]


def test_points_after_a_clock_was_set_back_belong_to_the_same_job() -> None:
    points = [(0, BEGUN + 1, 0.0), (1, BEGUN + 11, 1.0), (2, BEGUN + 5, 2.0)]
    series = Series("reward", points, [span(), span(BEGUN + 10, frames_per_step=10.0)])
    assert series.frames == [FRAMES_PER_ITERATION, 20.0, 30.0]


# -- thinning --------------------------------------------------------------------------------------------------------


POINTS = 1000


def test_a_long_curve_is_decimated_and_keeps_its_extremes():
    xs, ys = np.arange(50_000.0), np.zeros(50_000)
    ys[31_415], ys[2_718] = 7.0, -3.0
    kept_x, kept_y = decimate(xs, ys, POINTS)
    assert len(kept_x) == POINTS
    assert kept_x[kept_y == 7.0] == [31_415.0]
    assert kept_x[kept_y == -3.0] == [2_718.0]


def test_a_short_curve_stays_as_it_is():
    xs, ys = np.arange(float(POINTS)), np.random.default_rng(0).normal(size=POINTS)
    same_x, same_y = decimate(xs, ys, POINTS)
    assert same_x is xs
    assert same_y is ys


def test_the_ends_are_kept_and_every_point_is_one_of_the_curve():
    xs, ys = np.cumsum(np.random.default_rng(0).uniform(1, 9, 20_000)), np.random.default_rng(1).normal(size=20_000)
    few_x, few_y = decimate(xs[::2], ys[::2], 100)  # a view that is not contiguous
    assert (few_x[0], few_x[-1]) == (xs[0], xs[-2])
    assert (np.diff(few_x) > 0).all()
    assert set(zip(few_x, few_y, strict=True)) <= set(zip(xs, ys, strict=True))
