"""Things to show in a terminal, a cell or a page, independent of runs.

``front_end`` detects the front end that shows the output, and has outputs that are replaced later, in Jupyter and in
marimo. ``status`` shows what a cell waits for, ``table`` writes HTML tables and numbers, and ``figures`` turns a Plotly
figure into a PNG. ``server`` runs a server next to the kernel and shows it in a cell, and ``own_user`` keeps other
users away from it. ``live_pictures`` streams pictures to a page, ``pictures`` arranges them side by side, and ``video``
writes videos. ``live_objects`` closes the objects that this kernel has open.
A ``.js`` file is the page side of the module with the same name.

Belongs here: code that several kinds of content share. Does not belong here: a function that takes a run.
"""
