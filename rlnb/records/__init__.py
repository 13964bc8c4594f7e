"""The run's folder, read side. It writes only small files that are written once; no code here acts.

``layout`` names every file, ``record`` derives the state of a run from its files, and ``facts`` holds ``RunFacts``,
everything that can be read from a run folder. ``find`` finds run folders, ``stock_record`` reads those of stock Isaac
Lab, ``remote`` those of another machine, and ``trust`` says whose they are. Each other module reads one kind of record:
``checkpoints``, ``evaluation``, ``options``, ``arguments``, ``incidents``, ``notes``, ``flight``, ``summary``.

Belongs here: reading run folders. Does not belong here: drawing their content (``rlnb.display``), and verbs.
"""
