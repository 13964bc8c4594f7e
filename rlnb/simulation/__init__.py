"""The kernel's side of the living simulator.

``process`` runs one worker process and exchanges JSON lines with it through a ``link``; ``condition`` is what they say
about it. ``simulator`` manages the living simulator of this machine: it starts the simulator, sends it requests, hands
it over to a run and replaces it. ``handle`` is ``rlnb.simulator``. ``far`` manages those in jobs of launchers, ``job``
is such a job with its ``key``, ``relay`` is the process that connects to it, and ``forward`` leads to its node's ports.
``run_files`` names the files of runs that are sent there, and ``whereabouts`` tells other processes where the jobs are.
``card`` requests a task card and caches it. ``tuner`` changes reward terms in a living env, with sliders.
``debugger`` steps an env one call at a time, and ``replay`` repeats the recorded steps of a training.

Belongs here: requests that a simulator answers without a run. Does not belong here: the worker's side, in
``rlnb.worker.requests``, which uses the same names.
"""
