"""From TensorBoard event files to series.

``events`` reads event files as they grow, and ``repeats`` is its fast path. ``metrics`` gives series their names and
their x axes, and joins the jobs of one run into one curve. ``thinning`` makes a long curve as short as a screen
needs.

Belongs here: numbers over time. Does not belong here: what a run folder holds otherwise (``rlnb.records``), and
figures (``rlnb.curves``).
"""
