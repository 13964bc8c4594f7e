"""The jobs of a run: train, evaluate, export.

``job`` does one job; a failure becomes its result. ``context`` is the object that a backend gets, and ``envs`` makes
its envs. ``ranks`` and ``handshake`` join several processes, and ``exchange`` tells those with different roles about
each other. ``checkpoints`` vets and writes weights, ``tensors`` what lies beside them, ``resumed`` reports what a
resumed training restored, and ``retention`` removes older checkpoints. ``no_simulator`` is what only libraries that
train without Isaac Lab need.
"""
