"""Display of metrics: figures, the live dashboard, progress in one line, TensorBoard.

``figure`` draws the curves of runs, ``bands`` draws means with intervals, and ``png`` draws a figure without a
browser. ``films`` shows the newest films of trainings. ``live`` is the dashboard in a cell, with its page side in
``dashboard.js``. ``page`` and ``feed.js`` bring it to pages that a busy kernel cannot answer. ``stream`` selects the
points that the page does not have yet.

Belongs here: code that turns the series of ``RunFacts`` into figures or text. Does not belong here: reading event files
(``rlnb.metrics``), whole reports (``rlnb.reports``), and anything that changes a run.
"""
