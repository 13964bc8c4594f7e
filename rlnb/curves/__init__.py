"""Metrics as figures, live and still.

``figure`` draws the curves of runs, and means with intervals. ``live`` is the dashboard in a cell, with its page side
in ``dashboard.js`` and ``feed.js``, also for pages that a busy kernel cannot answer. ``stream`` selects the points that
the page does not have yet. ``progress`` is a run in one line, ``panels`` are figures of plugins, and ``tensorboard``
starts TensorBoard.

Belongs here: code that turns the series of ``RunFacts`` into figures or text. Does not belong here: reading event files
(``rlnb.metrics``), whole reports (``rlnb.reports``), and anything that changes a run.
"""
