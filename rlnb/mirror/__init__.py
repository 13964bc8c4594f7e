"""Runs on another machine that shares no folder with this one, as mirrored folders here.

Two processes are connected by their standard streams. ``server`` (``python -m rlnb.mirror``) starts the jobs of a run
on the other machine and sends what changes in its folder. ``host`` (``python -m rlnb.mirror.host JOB_DIR``) runs here:
it connects again and again, and ``replica`` writes what arrives into the run's folder. ``frames`` is what the streams
carry, ``run_files`` which files travel, and ``launcher`` the base of launchers that say how the machine is reached.

A warm simulator there needs no mirror. ``server`` starts its job on the other machine and ends it with the connection
that ``simulator`` keeps here; relays beside the job carry its requests.

Belongs here: code that knows two machines. Does not belong here: how one reaches the other, such as SSH (a plugin).
"""
