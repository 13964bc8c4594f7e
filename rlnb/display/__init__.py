"""How anything is shown: on a terminal, in a cell, in a page. Knows nothing of runs.

``front_end`` tells which front end shows the output, ``status`` says what is being waited for, ``table`` writes HTML
tables and numbers. ``server`` keeps a server beside the kernel and ``frame`` shows it in a cell. ``live_pictures``
streams pictures to a page, ``pictures`` puts them side by side, and ``video`` writes films. ``live_objects`` closes
what this kernel has open, and ``browser`` finds the browser that prints a page. A ``.js`` file is the page's half of
the module of its name.

Belongs here: what two kinds of content share. Does not belong here: a function that takes a run.
"""
