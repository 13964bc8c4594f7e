"""Metrics as a person sees them: figures, the live dashboard, progress in one line, TensorBoard.

``figure`` draws the curves of runs, ``bands`` means with intervals, ``png`` a figure without a browser. ``live`` is
the dashboard in a cell, with its page half in ``dashboard.js``; ``stream`` decides what the page has to be told.

Belongs here: what turns series into something to look at; it takes ``RunFacts``. Does not belong here: reading event
files (``rlnb.metrics``), whole reports (``rlnb.reports``), or anything that changes a run.
"""
