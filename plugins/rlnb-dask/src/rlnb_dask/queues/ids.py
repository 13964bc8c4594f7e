"""The form of the ids of each queue's jobs. An id of another form is never an argument of a queue's command."""

from __future__ import annotations

NUMBER = "[0-9]{1,18}"
SLURM = rf"{NUMBER}(_{NUMBER})?"
"""A job, or an element of an array, such as ``17_3``."""
GRID_ENGINE = rf"{NUMBER}(\.{NUMBER})?"
"""A job, or an element of an array, such as ``17.4``."""
HTCONDOR = rf"{NUMBER}\.{NUMBER}"
"""Cluster and process."""
