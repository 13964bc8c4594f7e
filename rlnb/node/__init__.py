"""``python -m rlnb.node``: one command to its end on one node. No orphan, no torn record.

``supervisor`` runs the command, with its log, heartbeat, walltime and result. ``child`` starts the process and
describes its end, ``descendants`` ends every process below it, and ``watchdog`` watches a start. ``peers`` watches the
other nodes, ``usage`` samples CPU, memory and GPUs, and ``alerts`` looks for alerts. ``simulator`` keeps a warm
simulator for a kernel. ``remote_job`` does so in a job, for a kernel on another machine, and ``file_transfer`` carries
the files.

Belongs here: code that runs alongside a worker, on its node. It imports neither torch nor the simulator.
Does not belong here: the kernel's side of starting it (``rlnb.launch``).
"""
