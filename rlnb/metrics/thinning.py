"""Reduce long curves to the number of points that a screen can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def decimate(xs: np.ndarray, ys: np.ndarray, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return at most ``points`` points that keep the curve's extremes and shape (MinMaxLTTB).

    Source: Van Der Donckt et al., MinMaxLTTB: Leveraging MinMax-Preselection to Scale LTTB
    (2023), as implemented by tsdownsample.
    """
    if len(xs) <= points:
        return xs, ys
    import numpy as np
    from tsdownsample import MinMaxLTTBDownsampler

    places = MinMaxLTTBDownsampler().downsample(np.ascontiguousarray(xs), np.ascontiguousarray(ys), n_out=points)
    return xs[places], ys[places]
