"""From a manifest to processes, in the kernel.

``command`` writes the argv of a worker as text. ``local`` starts agents on this machine, ``slots`` is the machine's
queue, ``nvml`` reads the use of its GPUs, ``injected`` is for clusters that start the nodes themselves, and ``hosted``
is the base of launchers whose jobs belong to a process of this machine. ``tls`` encrypts the connection between a
kernel and its living simulator in a job.

Belongs here: rlnb's built-in launchers, and the code that launchers share. Does not belong here: the agent that
runs on a node (``rlnb.node``).
"""
