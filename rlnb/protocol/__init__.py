"""What kernel, node agent and worker say to each other, and how the bytes travel.

``requests`` has one class for each request to a simulator, with the type of its answer. ``messages`` are the lines that
carry them, ``wire`` reads lines from a pipe, and ``tls`` encrypts the connection to a job. ``code_location`` says where
in a user's code a worker is.

Belongs here: what both ends have to agree on. Does not belong here: a process (``rlnb.simulation``, ``rlnb.node`` and
``rlnb.worker``).
"""
