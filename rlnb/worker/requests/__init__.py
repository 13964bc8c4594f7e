"""The living simulator's answers to a kernel, one module for each kind of request.

``serve`` reads requests and dispatches them. The kernel's side of each kind has the same module name, in
``rlnb.simulation`` or ``rlnb.cameras``.
"""
