"""The figures of a sweep: full names, logarithmic axes, and colours that show on light and dark pages."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rlnb.display.figures import drawable, png
from rlnb.display.pictures import red_green_blue
from rlnb.studies.sweep_figures import colour, importance_bars, parallel_coordinates

optuna = pytest.importorskip("optuna")

RATE, UNITS = "agent.algorithm.learning_rate", "agent.actor.activation"
LEAST_CONTRAST = 3.0
"""Contrast of graphical objects by WCAG 2.1, success criterion 1.4.11."""
DARK, LIGHT = "#111111", "#ffffff"
"""Background of JupyterLab's dark and light themes."""


def trials() -> list[Any]:
    """Return five trials whose value grows with the learning rate."""
    distributions = optuna.distributions
    space = {
        RATE: distributions.FloatDistribution(1e-5, 1e-1, log=True),
        "num_envs": distributions.IntDistribution(64, 512),
        UNITS: distributions.CategoricalDistribution(["elu", "<b>relu"]),
    }
    values = [(1e-5, 64, "elu"), (1e-4, 512, "elu"), (1e-3, 288, "<b>relu"), (1e-2, 64, "elu"), (1e-1, 64, "elu")]
    made = [
        optuna.trial.create_trial(value=float(number), params=dict(zip(space, row, strict=True)), distributions=space)
        for number, row in enumerate(values)
    ]
    for number, trial in enumerate(made):
        trial.number = number
    return made


def lines(figure: Any) -> list[Any]:
    """Return the lines of the trials, from the first drawn one to the last."""
    return [trace for trace in figure.data if trace.hoverinfo != "skip"]


def texts(figure: Any) -> list[str]:
    return [text for trace in figure.data if trace.mode == "text" for text in trace.text]


def test_the_names_of_parameters_are_whole_and_escaped() -> None:
    shown = [text.replace("<br>", "") for text in texts(parallel_coordinates(trials(), "reward"))]
    assert {"<b>reward</b>", f"<b>{RATE}</b>", f"<b>{UNITS}</b>", "<b>num_envs</b>"} <= set(shown)
    assert "&lt;b&gt;relu" in shown
    assert "..." not in "".join(shown)


def test_a_logarithmic_range_has_a_logarithmic_axis_with_powers_of_ten() -> None:
    figure = parallel_coordinates(trials(), "reward")
    column = 2  # after the value and the activation
    assert [line.y[column] for line in lines(figure)] == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0])
    assert {"1e-05", "0.0001", "0.001", "0.01", "0.1"} <= set(texts(figure))


def test_a_linear_axis_covers_the_range_and_counts_in_whole_numbers() -> None:
    figure = parallel_coordinates(trials(), "reward")
    assert [line.y[3] for line in lines(figure)] == pytest.approx([0.0, 1.0, 0.5, 0.0, 0.0])
    assert {"64", "176", "288", "400", "512"} <= set(texts(figure))


@pytest.mark.parametrize("maximize", [True, False])
def test_the_best_trial_is_drawn_last_and_wider(maximize: bool) -> None:
    drawn = lines(parallel_coordinates(trials(), "reward", maximize=maximize))
    assert drawn[-1].hovertemplate.startswith("trial 4: 4" if maximize else "trial 0: 0")
    assert drawn[-1].line.color == colour(1.0)
    assert drawn[0].line.color == colour(0.0)
    assert drawn[-1].line.width > drawn[0].line.width


def luminance(text: str) -> float:
    """Return the relative luminance of a colour by WCAG 2.1."""
    parts = [part / 255 for part in red_green_blue(text)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_every_colour_shows_on_a_light_and_on_a_dark_page() -> None:
    for step in range(21):
        for page in (DARK, LIGHT):
            darker, lighter = sorted((luminance(colour(step / 20)), luminance(page)))
            assert (lighter + 0.05) / (darker + 0.05) >= LEAST_CONTRAST, (step, page)


def test_trials_that_lack_a_parameter_or_differ_in_nothing_can_be_drawn() -> None:
    same = optuna.distributions.FloatDistribution(1.0, 1.0)
    few = trials()[:2]
    few.append(optuna.trial.create_trial(value=0.0, params={"fixed": 1.0}, distributions={"fixed": same}))
    figure = parallel_coordinates(few, "reward")
    assert any(math.isnan(y) for line in lines(figure) for y in line.y)
    assert png(figure).startswith(b"\x89PNG")
    assert "no complete trial yet" in parallel_coordinates([], "reward").to_json()
    assert png(parallel_coordinates([], "reward")).startswith(b"\x89PNG")


def test_importances_are_bars_with_whole_names_the_greatest_at_the_top() -> None:
    figure = importance_bars({RATE: 0.7, "<b>num_envs": 0.3})
    assert list(figure.data[0].y) == ["&lt;b&gt;num_envs", RATE]
    assert list(figure.data[0].x) == [0.3, 0.7]
    assert drawable(figure)
