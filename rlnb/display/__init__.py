"""Things to show in a terminal, a cell or a page, independent of runs.

``front_end`` detects the front end that shows the output, and has outputs that are replaced later, in Jupyter and in
marimo. ``status`` shows what a cell waits for, ``table`` writes HTML tables and numbers, and ``figures`` turns a Plotly
figure into a PNG. ``server`` runs a server next to the kernel and shows it in a cell, and ``own_user`` keeps other
users away from it. ``links`` shows paths of files with links to download them. ``live_pictures`` streams pictures to a
page, and ``pictures`` arranges them side by side. ``live_objects`` closes the objects that this kernel has open. The
``.js`` files are the page sides of these modules.

Belongs here: code that several kinds of content share. Does not belong here: a function that takes a run.
"""
