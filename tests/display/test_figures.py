import io

import numpy as np
import plotly.graph_objects as go
import pytest
from PIL import Image
from plotly.subplots import make_subplots

from rlnb.curves import figure as curves
from rlnb.display.figures import png

MATHTEXT_ERROR = "$\\frac{$"


def test_the_picture_shows_every_subplot_in_its_place_and_colour():
    shown = make_subplots(rows=2, cols=2, subplot_titles=["a", "b", "c", "d"])
    shown.add_trace(go.Scatter(x=[0, 1], y=[1, 1], line={"color": "#ff0000", "width": 3}, mode="lines"), row=1, col=2)
    shown.add_trace(go.Scatter(x=[0, 1], y=[1, 1], line={"color": "#0000ff", "width": 3}, mode="lines"), row=2, col=1)
    pixels = np.asarray(Image.open(io.BytesIO(png(shown))).convert("RGB")).astype(int)
    height, width, _ = pixels.shape
    red = np.argwhere((pixels[..., 0] > 200) & (pixels[..., 1:] < 60).all(axis=2)).mean(axis=0)
    blue = np.argwhere((pixels[..., 2] > 200) & (pixels[..., :2] < 60).all(axis=2)).mean(axis=0)
    assert red[0] < height / 2 < blue[0]
    assert blue[1] < width / 2 < red[1]


def test_runs_that_logged_nothing_can_be_drawn():
    assert png(curves.figure([])).startswith(b"\x89PNG")


def test_text_with_dollars_and_a_leading_underscore_is_drawn_as_it_is():
    shown = make_subplots(rows=1, cols=1, subplot_titles=[MATHTEXT_ERROR])
    named, unnamed = go.Figure(shown), go.Figure(shown)
    for figure, visible in ((named, True), (unnamed, False)):
        figure.add_trace(go.Scatter(x=[0, 1], y=[0, 1], name="_" + MATHTEXT_ERROR, showlegend=visible), row=1, col=1)
    assert png(named) != png(unnamed)


def test_texts_and_hidden_axes_are_drawn_at_the_figures_size():
    shown = go.Figure(go.Scatter(x=[0.5], y=[0.5], text=["<b>a.<br>b</b>"], mode="text"))
    bare = go.Figure(go.Scatter(x=[0.5], y=[0.5], mode="lines"))
    hidden = {"visible": False, "range": [0, 1]}
    for figure in (shown, bare):
        figure.update_layout(width=960, height=480, xaxis=hidden, yaxis=hidden)
    image, empty = (np.asarray(Image.open(io.BytesIO(png(figure))).convert("L")) for figure in (shown, bare))
    assert image.shape[1] == 2 * image.shape[0]
    assert (empty == 255).all()
    rows, columns = np.nonzero(image < 128)
    assert rows.mean() / image.shape[0] == pytest.approx(0.5, abs=0.05)
    assert columns.mean() / image.shape[1] == pytest.approx(0.5, abs=0.05)
