"""Reports of runs, each a single HTML or PDF file.

``report`` executes ``report.ipynb`` with papermill and writes the page. ``sections`` has the functions that the
notebook calls.

Belongs here: the layout of a report. Does not belong here: figures and images that notebook cells show too
(``rlnb.curves``, ``rlnb.display``).
"""
