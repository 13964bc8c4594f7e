"""A run as a person holds it.

``run`` is ``rlnb.Run``: what its folder tells (``rlnb.records.facts``) and the verbs on it. ``jobs`` starts a further
job of a run and waits for it, ``find`` and ``selection`` find runs, ``listing`` is a list of them, ``catalog`` keeps
such a list up to date, and ``pruning`` makes room. ``hosted_job`` and ``render`` serve launchers.

Belongs here: verbs on a run that exists. Does not belong here: creating one (``rlnb.training``), and what only reads
its folder (``rlnb.records``).
"""
