"""The living simulator's answers to a kernel, one module for each kind of request.

``serve`` reads requests and dispatches them. The kernel's side of each other module has the same name, in
``rlnb.simulation`` or ``rlnb.cameras``.
"""
