"""Display on a terminal, in a cell and in a page, independent of runs.

``front_end`` detects the front end that shows the output, ``place`` shows an output that is replaced later, and
``marimo_page`` does both in marimo. ``main_thread`` tells whether a kernel can hear its pages.
``status`` shows the name of a wait, ``table`` writes HTML tables and numbers, and
``html`` turns any object into HTML. ``server`` runs a server next to the kernel, ``own_user`` keeps other users away
from it, and ``frame`` shows it in a cell. ``live_pictures`` streams pictures to a page, ``pictures`` arranges them side
by side, and ``video`` writes videos. ``live_objects`` closes the objects that this kernel has open, and ``browser``
finds the browser that prints a page.
A ``.js`` file is the page side of the module with the same name.

Belongs here: code that several kinds of content share. Does not belong here: a function that takes a run.
"""
