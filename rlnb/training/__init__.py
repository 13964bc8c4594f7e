"""``rlnb.train``, as one straight line: request, plan, checks, create, submit.

``train`` holds the public functions, ``plan`` turns arguments into a plan, ``manifest`` writes down what was asked,
``checks`` finds everything that would make the run fail, ``auto_ranks`` measures how many ranks train fastest, and
``create`` makes the run's folder.

Belongs here: everything before the first job of a new run is submitted. Does not belong here: what is done with a run
afterwards (``rlnb.run``).
"""
