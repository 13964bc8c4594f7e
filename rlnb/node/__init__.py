"""``python -m rlnb.node``: the agent, one per node of a training.

``agent`` runs one command to its end, with its log, heartbeat, walltime and result. ``peers`` watches the agents of
the other nodes, ``usage`` samples CPU, memory and GPUs, ``alerts`` looks for alerts, ``sampling`` does both during a
training, ``silence`` watches a start, ``torchrun`` reads torchrun's summary, and ``child`` and ``descendants`` start
and end processes. ``simulator`` and ``server`` are the agents of a living simulator and of a server beside a kernel;
``controls`` answers what a kernel asks about its simulator. ``interactive`` serves simulators in a job, to a kernel on
another machine, and ``courier`` carries their files.

Belongs here: code that runs alongside a worker, on its node. The agent imports neither torch nor the simulator.
Does not belong here: the kernel's side of starting it (``rlnb.launch``).
"""
