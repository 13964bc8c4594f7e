"""Several trainings at once, and what they show together.

``groups`` compares runs that exist (``rlnb.compare``). ``libraries`` trains one task with several RL libraries,
``scaling`` with several numbers of GPUs, ``sweep`` with many agent configs (``trials`` drives them, ``space`` is where
they search, ``journal`` is the file of the search), and ``verify`` proves that ranks stay in step.

Belongs here: what starts or compares several runs. Does not belong here: one training (``rlnb.training``).
"""
