"""Cameras inside the worker.

``rig`` is the set of a task's cameras: its own, copies of them, or one that is added. ``live`` takes pictures during a
training, ``spectator`` draws the scene where nothing renders, ``film`` writes the film of an evaluation, and ``films``
those of a training.
"""
