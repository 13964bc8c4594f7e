"""``rlnb doctor``: the faults of a machine, its notebook host and the worker's interpreter, each with a fix.

``doctor`` runs all checks at once. ``machine`` checks the hardware and tools of this machine, and the hosted JupyterLab
around the kernel; ``interpreter`` checks the worker's Python. A ``Finding`` is the result of a check.

Belongs here: checks that need no task. Does not belong here: checks of a training (``rlnb.training.checks``).
"""
