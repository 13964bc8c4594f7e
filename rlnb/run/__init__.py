"""Runs as the user handles them.

``run`` holds ``rlnb.Run``: the facts read from its folder (``rlnb.records.facts``) and the verbs on it. ``jobs``
starts another job of a run and waits for it, ``in_simulator`` does the job in a living simulator, ``continuation`` says
where a training goes on, ``find`` and ``selection`` find runs, ``listing`` is a list of runs,
``catalog`` keeps such a list up to date, ``alerts`` prints the alerts of a run, and ``pruning`` frees disk space.
``hosted_job`` and ``render`` serve launchers.

Belongs here: verbs on an existing run. Does not belong here: creating a run (``rlnb.training``), and code that only
reads its folder (``rlnb.records``).
"""
