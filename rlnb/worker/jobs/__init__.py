"""The jobs of a run: train, evaluate, export.

``job`` does one job; a failure becomes its result. ``context`` is the object that a backend gets. ``ranks`` and
``handshake`` join several processes. ``checkpoints`` vets and writes weights, ``tensors`` what lies beside them,
``resumed`` reports what a resumed training restored, and ``retention`` removes older checkpoints.
"""
