"""The kit for experiment trackers: a plugin that sends a run's metrics to a service, such as Weights & Biases.

:class:`Tracker` checks, starts and ends the process that follows a run, for the plugin's hooks. That process calls
:func:`main`, reads the new :class:`Row` objects of :func:`follow`, and asks :func:`outcome` for the end. All else
that a service needs belongs to its plugin.
"""

from rlnb.tracking.process import Row, follow, main, outcome
from rlnb.tracking.tracker import Tracker

__all__ = ["Row", "Tracker", "follow", "main", "outcome"]
