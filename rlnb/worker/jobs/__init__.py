"""The jobs of a run: train, evaluate, export.

``job`` does one and turns a failure into its result. ``context`` is what a backend gets, ``ranks`` and ``handshake``
join several processes, ``checkpoints`` vets and writes weights, ``resumed`` restores what a resumption needs, and
``retention`` removes older checkpoints.
"""
