"""The jobs of a run: train, evaluate, export.

``job`` does one job; a failure becomes its result. ``train``, ``evaluate`` and ``export`` are the kinds. ``context`` is
the object that a backend gets, ``envs`` makes its envs, and ``inputs`` loads the policies of other runs. ``ranks`` and
``handshake`` join several processes. ``checkpoints`` vets, writes and removes weights, ``resume`` reports what a
resumed training restored, and ``policy_metadata`` says what an exported policy means. ``no_simulator`` is what only
libraries that train without Isaac Lab need.
"""
