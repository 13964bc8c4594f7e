"""``rlnb.train``, as one straight line: arguments, plan, checks, create.

``start`` is that line. ``arguments`` holds the arguments, ``plan`` turns them into a plan, ``lookup`` finds what the
checks depend on, ``manifest`` records the request, and ``checks`` finds everything that would make the run fail.
``inputs`` are files of other runs, ``repeat`` is ``like=``, ``script`` a plain training script, and ``auto_ranks``
measures which number of ranks trains fastest. ``create`` makes the run's folder with its first job.

Belongs here: everything before the first job of a new run is submitted. Does not belong here: everything after that
(``rlnb.jobs``, ``rlnb.run``).
"""
