"""How runs used their time, from their records alone.

``parts`` holds the seconds of each kind, ``causes`` the reason of an interruption, ``iterations`` the work that a
training finished and when, ``account`` the parts and interruptions of one run, ``usage`` its load and its size on the
disk, ``goodput`` the sum over runs that a notebook shows, and ``figure`` its bars.

Belongs here: arithmetic on the records of ended and running trainings. Does not belong here: new measurements; the
node agents sample the load (``rlnb.node``), and the worker records the time of each checkpoint.
"""
