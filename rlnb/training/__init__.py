"""``rlnb.train``, as one straight line: request, plan, checks, create, submit.

``train`` holds the public functions, ``request`` their arguments. ``plan`` turns a request into a plan, ``manifest``
records the request, ``alerts`` reads its rules, ``checks`` finds everything that would make the run fail, with
``ranks`` for roles and shared envs and ``frames`` for ``max_frames``, ``auto_ranks`` measures which number of ranks
trains fastest, and ``create`` makes the run's folder.

Belongs here: everything before the first job of a new run is submitted. Does not belong here: everything after that
(``rlnb.run``).
"""
