"""Reduce long curves to the number of points that a screen can show."""

import numpy as np

from rlnb.metrics.series import decimate

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
