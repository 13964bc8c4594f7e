"""The x axes of a curve."""

from __future__ import annotations

import dataclasses

from rlnb.metrics.series import Series, Span

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
