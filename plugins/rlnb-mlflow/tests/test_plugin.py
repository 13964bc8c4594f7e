"""MLflow follows a run only if its tags request it and the worker's interpreter allows it."""

from __future__ import annotations

from rlnb_mlflow import plugin

from rlnb.testing import TrackerConformance


class TestMLflow(TrackerConformance):
    plugin = plugin
    tracker = plugin.MLFLOW
    tag = "mlflow"
    package = "mlflow"
    settings = ("MLFLOW_",)
