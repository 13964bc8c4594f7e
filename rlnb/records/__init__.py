"""Readers of run folders.

``layout`` names every file, ``files`` reads and writes them, ``record`` derives the state of a run from them, and
``facts`` is ``RunFacts``, everything a folder tells. ``checkpoints``, ``evaluation``, ``export``, ``ranks``, ``notes``,
``config``, ``submission``, ``options`` and ``asked`` read one kind of record each; ``find`` finds run folders.

Belongs here: reading run folders. Does not belong here: pictures of what they hold, and verbs.
"""
