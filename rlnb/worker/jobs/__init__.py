"""The jobs of a run: train, evaluate, export.

``job`` does one job and writes its result, also of a failure. ``context`` is the object that a backend gets. ``ranks``
and ``handshake`` join several processes. ``checkpoints`` vets and writes weights, ``resumed`` reports what a resumed
training restored, and ``retention`` removes older checkpoints.
"""
