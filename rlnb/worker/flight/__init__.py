"""The flight recorder: the last steps of a training, and the first value in them that is not finite.

``parts`` reads the values of a step from an env, and ``recorder`` keeps them and looks at them. ``rewind`` keeps what a
replay needs: ``snapshot`` copies the state of an env and restores it, with the ``variables`` of the env's objects.
An evaluation keeps nothing: its ``guard`` ends it at the first such value.
"""
