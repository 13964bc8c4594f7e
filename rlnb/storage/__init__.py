"""Write values to files and read them back.

``serial`` turns dataclasses into JSON and back, and refuses values that do not match the class. ``files`` writes a
record once and atomically, and reads files that other processes are still writing.

Belongs here: code that needs only the standard library, since the node agent imports it. Does not belong here: names
of files (``rlnb.records.layout``), and their meaning.
"""
