"""The run's folder: what it holds, and small records about a run.

``layout`` names every file, ``record`` derives the state of a run from its files, and ``facts`` holds ``RunFacts``,
everything that can be read from a run folder. ``find`` finds run folders, ``stock_record`` reads those of stock Isaac
Lab, ``remote`` those of another machine, ``trust`` says whose they are, and ``task_copy`` what they trained. Each other
module has one kind of record, such as ``checkpoints``, ``evaluation``, ``incidents`` or ``notes``.

Belongs here: reading run folders. Does not belong here: drawing their content (``rlnb.curves``, ``rlnb.reports``), and
starting anything.
"""
