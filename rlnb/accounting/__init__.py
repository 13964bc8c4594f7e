"""How runs used their time, from their records alone.

``account`` holds the parts of one run's wall time, its interruptions, and the iterations that it finished. ``goodput``
is the sum over runs that a notebook shows, with their load, their size on the disk, and bars.

Belongs here: arithmetic on the records of ended and running trainings. Does not belong here: new measurements; the
node agents sample the load (``rlnb.node``), and the worker records the time of each checkpoint.
"""
