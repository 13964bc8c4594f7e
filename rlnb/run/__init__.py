"""Runs as the user handles them.

``run`` holds ``rlnb.Run``: the facts read from its folder (``rlnb.records.facts``) and the verbs on it. ``train`` holds
``rlnb.train`` and ``rlnb.check``. ``selection`` finds runs, ``listing`` is a list of runs, ``waiting`` waits for them,
``index`` keeps such a list up to date, ``guesses`` answers names that people guess, and ``pruning`` frees disk space.

Belongs here: verbs on a run, and the call that starts one. Does not belong here: how it is started (``rlnb.training``,
``rlnb.jobs``), and code that only reads its folder (``rlnb.records``).
"""
