"""Write values to files and read them back.

``files`` writes a record once and atomically, and reads files that other processes are still writing. ``serial`` turns
dataclasses into JSON and back, and refuses values that do not match the class. ``access`` opens folders in which other
users may have made entries, and ``entries`` lists and changes what lies there. ``cache`` keeps what was read, ``clock``
reads the time of a file system, ``yaml_file`` bounds YAML of strangers, and ``temporary`` is a private folder.

Belongs here: code that imports only the standard library at its top, since the node agent imports it (``yaml_file``
loads ruamel.yaml when it reads). Does not belong here: names of files (``rlnb.records.layout``), and their meaning.
"""
