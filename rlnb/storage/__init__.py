"""Values to files, and files to values again.

``serial`` turns dataclasses into JSON and back, refusing what does not fit. ``files`` writes a record once, whole or
not at all, and reads files that other processes are still writing.

Belongs here: what needs only the standard library, since the node agent imports it. Does not belong here: names of
files (``rlnb.records.layout``), and what a file means.
"""
