"""From TensorBoard event files to series.

``events`` reads event files as they grow, and ``repeats`` is its fast path. ``metrics`` gives series their names and
their x axes, and joins the jobs of one run into one curve. ``thinning`` reduces a long curve to the number of points
that a screen can show.

Belongs here: numbers over time. Does not belong here: the other content of a run folder (``rlnb.records``), and
figures (``rlnb.curves``).
"""
