"""From TensorBoard event files to series.

``events`` reads event files as they grow, and ``rows`` is its fast path. ``series`` is one metric as a curve,
``metrics`` the metrics of a run with their newest values, and ``folders`` and ``columns`` hold the scalars of a folder
and of a tag.

Belongs here: numbers over time. Does not belong here: the other content of a run folder (``rlnb.records``), and
figures (``rlnb.curves``).
"""
