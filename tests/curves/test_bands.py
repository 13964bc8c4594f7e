"""Mean curves over seeds, with their intervals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rlnb
from rlnb.curves.figure import GRID, bands_figure, mean_curve


@pytest.fixture(scope="module")
def seeds(echo_root: Path) -> list[rlnb.Run]:
    """Three runs that differ only in their seed."""
    runs = [rlnb.train("Echo", library="echo", max_iterations=8, seed=seed) for seed in range(3)]
    return [run.wait(timeout_s=30) for run in runs]


def test_the_band_is_the_interval_of_the_mean_over_seeds(seeds: list[rlnb.Run]) -> None:
    frames, mean, half = mean_curve(seeds, "reward")
    last = [run.metrics["reward"].last for run in seeds]
    assert frames.shape == mean.shape == half.shape == (GRID,)
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
