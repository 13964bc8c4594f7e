"""The kernel's side of the living simulator.

``process`` runs one worker process and exchanges JSON lines with it. ``simulator`` manages this kernel's living
simulator (``rlnb.simulator``): it starts the simulator, sends it requests, hands it over to a run and replaces it.
``card`` requests a task card from it and caches the card. ``tuner`` changes reward terms in a living env, with sliders.
``debugger`` steps an env one call at a time, and ``replay`` repeats the recorded steps of a training.

Belongs here: requests that a simulator answers without a run. Does not belong here: the worker's side, in
``rlnb.worker.requests``, which uses the same names.
"""
