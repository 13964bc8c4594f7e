"""The two magics of ``%load_ext rlnb``: ``%%task`` and ``%rlnb``.

Belongs here: what needs IPython's own extension points. Does not belong here: anything that is shown in a cell, which
is in the folder of its subject (``rlnb.cameras``, ``rlnb.curves``, ``rlnb.run``).
"""
