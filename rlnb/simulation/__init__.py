"""The living simulator, as the kernel holds it.

``process`` is one worker process, spoken to in JSON lines. ``simulator`` is this kernel's (``rlnb.simulator``): it is
started, asked, handed over to a run, and replaced. ``card`` asks it for a task card and caches the answer; ``tuner``
changes reward terms in a living env, with sliders.

Belongs here: requests that a simulator answers without a run. Does not belong here: the worker's half, which has the
same names in ``rlnb.worker.requests``.
"""
