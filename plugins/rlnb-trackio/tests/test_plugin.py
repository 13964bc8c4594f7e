"""Trackio follows a run only if its tags request it and the worker's interpreter allows it."""

from __future__ import annotations

from rlnb_trackio import plugin

from rlnb.testing import TrackerConformance


class TestTrackio(TrackerConformance):
    plugin = plugin
    tracker = plugin.TRACKIO
    tag = "trackio"
    package = "trackio"
    settings = ("TRACKIO_", "HF_")
