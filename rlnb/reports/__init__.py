"""Reports of runs as one HTML file, or PDF.

``report`` executes ``report.ipynb`` by papermill and writes the page, and ``sections`` are the parts that the
notebook calls.

Belongs here: the layout of a report. Does not belong here: figures and pictures that a cell shows too.
"""
