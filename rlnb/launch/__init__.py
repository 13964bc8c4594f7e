"""From a manifest to processes, in the kernel.

``command`` writes the argv of a worker as text. ``local`` starts agents on this machine, ``slots`` is the machine's
queue, ``injected`` is for clusters that start the nodes themselves, and ``hosted`` is the base of launchers whose
jobs belong to a process of this machine.

Belongs here: launchers that rlnb brings, and what launchers share. Does not belong here: what runs on the node
(``rlnb.node``).
"""
