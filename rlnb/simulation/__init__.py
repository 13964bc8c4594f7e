"""The kernel's simulator processes: which there are, how they start, and how a message gets there.

``pool`` has one simulator on this machine and one in the job of each launcher, and ``placement`` says which of them
answers a call. ``process`` is one of them, ``link`` the pipes to it, ``remote_job`` the job that holds it, and
``relay`` the connection to that job.

Belongs here: the kernel's side of a simulator. Does not belong here: what a cell does with it (``rlnb.interactive``,
``rlnb.cameras``), and the simulator's own side (``rlnb.node`` and ``rlnb.worker``).
"""
