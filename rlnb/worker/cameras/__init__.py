"""Cameras inside the worker.

``rig`` is the set of a task's cameras: its own, copies of them, or one that is added, which ``framing`` places.
``live`` takes pictures during a training, ``spectator`` draws the scene where nothing renders, and ``films`` writes the
films of evaluations and trainings.
"""
