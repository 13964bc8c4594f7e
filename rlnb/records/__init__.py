"""Readers of run folders.

``layout`` names every file, ``record`` derives the state of a run from its files, and ``facts`` holds ``RunFacts``,
everything that can be read from a run folder. ``checkpoint_files`` says which files are one checkpoint.
``checkpoints``, ``evaluation``, ``export``, ``ranks``, ``notes``, ``config``, ``submission``, ``options``, ``flight``,
``alerts``, ``saves`` and ``asked`` read one kind of record each; ``trained`` has the task of a run, ``repetition`` what
differs from the run that it repeats; ``find`` finds run folders, and ``camera_files`` exchanges camera frames.

Belongs here: reading run folders. Does not belong here: drawing their content (``rlnb.display``), and verbs.
"""
