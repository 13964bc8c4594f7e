"""``python -m rlnb.worker``: the only folder that may import torch and Isaac Lab.

``__main__`` has its forms: a job, the living simulator (``serve``), the search for an asset root. ``jobs`` does the
jobs of a run, ``requests`` answers a kernel, ``cameras``, ``assets`` and ``isaac`` serve both, ``acting`` acts in an
env, and ``probe`` is the doctor's look from within this interpreter, read as text.

Belongs here: whatever needs the simulator or a GPU. Does not belong here: anything the kernel imports.
"""
