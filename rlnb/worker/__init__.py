"""``python -m rlnb.worker``: the only folder that may import torch and Isaac Lab.

``__main__`` is the command line: a job, the warm simulator (``serve``), the asset packs, the search for an asset
root. ``jobs`` runs the jobs of a run, ``requests`` answers a kernel, and ``cameras``, ``flight``, ``assets`` and
``isaac`` serve both. ``actions`` acts in an env, and ``openmp`` chooses how threads wait. ``probe`` collects facts
about the worker's interpreter for the doctor, which reads the module as text and never imports it.

Belongs here: code that needs the simulator or a GPU. Does not belong here: anything that the kernel imports.
"""
