"""The living simulator's answers to a kernel, one module for each kind of request.

``serve`` reads requests and dispatches them. The kernel's halves have the same names in ``rlnb.simulation`` and
``rlnb.cameras``.
"""
