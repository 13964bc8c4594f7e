"""Reports of runs as one HTML file, or PDF.

``report`` executes ``report.ipynb`` with papermill and writes the page. ``sections`` has the functions that the
notebook calls.

Belongs here: the layout of a report. Does not belong here: figures and pictures that cells also show.
"""
