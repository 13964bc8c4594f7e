"""The jobs of a run: how one starts, in a new process or in the warm simulator, and how it ended.

``jobs`` starts a job of an existing run and waits for it. ``detached_job`` is what a launcher's own process does with a
job, and continues a training that its cluster interrupted. ``alerts`` prints the alerts of a training in the notebook.

Belongs here: code that makes the folder of a job and hands it to a launcher. Does not belong here: the verbs of a run
(``rlnb.run``), and a new run (``rlnb.training``).
"""
