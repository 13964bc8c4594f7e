"""From a manifest to processes, in the kernel.

``command`` writes the argv of a worker as text. ``local`` starts agents on this machine, ``slots`` is the machine's
queue, ``injected`` is for clusters that start the nodes themselves, and ``detached`` is the base of launchers whose
jobs belong to a process of this machine. ``plugin`` registers the two launchers of rlnb itself.

Belongs here: rlnb's own launchers, and the code that launchers share. Does not belong here: the agent that runs on a
node (``rlnb.node``).
"""
