"""The two magics of ``%load_ext rlnb``, ``%%task`` and ``%rlnb``, and ``rlnb.define``.

Belongs here: code that needs IPython's extension points, and what it shares with places without magics. Does not belong
here: content shown in a cell, which is in the folder of its subject (``rlnb.cameras``, ``rlnb.curves``, ``rlnb.run``).
"""
