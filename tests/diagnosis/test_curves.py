"""Tests of rlnb.diagnosis.symptoms."""

from __future__ import annotations

import numpy as np
import pytest

from rlnb.diagnosis.symptoms import Curve


def test_values_that_are_not_finite_are_counted_and_left_out() -> None:
    curve = Curve(np.array([1.0, np.nan, 2.0, np.inf]))
    assert (len(curve), curve.lost) == (2, 2)
    assert curve.values.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("count", [1, 2, 7, 30, 1000])
def test_parts_are_never_empty_and_cover_the_training(count: int) -> None:
    curve = Curve(np.arange(float(count)))
    assert curve.part(0.0, 1.0).tolist() == curve.values.tolist()
    assert all(len(curve.part(begin / 10, begin / 10 + 0.1)) >= 1 for begin in range(10))
    assert curve.first <= curve.last
    assert len(curve.smooth()) == min(count, 20)


def test_a_single_outlier_changes_no_statistic() -> None:
    values = np.linspace(0.0, 1.0, 100)
    plain, spiked = Curve(values), Curve(np.where(np.arange(100) == 95, 1e6, values))
    assert spiked.last == pytest.approx(plain.last, abs=0.02)
    assert spiked.noise == pytest.approx(plain.noise, rel=0.1)


def test_the_noise_is_a_standard_deviation_and_not_the_trend() -> None:
    noise = np.random.default_rng(0).normal(0.0, 0.5, 5000)
    assert Curve(noise + np.linspace(0.0, 100.0, 5000)).noise == pytest.approx(0.5, rel=0.1)
