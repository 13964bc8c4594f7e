"""``rlnb doctor``: the faults of a machine, its notebook host and the worker's interpreter, each with its fix.

``doctor`` runs all checks at once, ``machine`` looks at the hardware and the tools of this machine, ``interpreter``
at the worker's Python, and ``notebook_host`` at the hosted JupyterLab around the kernel. A ``Finding`` is one answer.

Belongs here: checks that need no task. Does not belong here: checks of a training (``rlnb.training.checks``).
"""
